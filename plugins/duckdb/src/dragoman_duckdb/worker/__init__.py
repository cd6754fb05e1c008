"""The process that runs callers' SQL: `session` holds the connection and runs statements, `opening` seals it off."""
