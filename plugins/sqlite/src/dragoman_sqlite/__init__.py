"""SQLite for dragoman."""
