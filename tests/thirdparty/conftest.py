"""The distributions below are strangers: they are tested where they are installed, not here."""

collect_ignore = ["dragoman-duckdb"]
