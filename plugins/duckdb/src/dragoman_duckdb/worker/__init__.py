"""The process callers' SQL runs in: `session` holds the connection and runs statements, `opening` seals it off."""
