"""Writes names and texts into SQL."""


def quote_text(text: str) -> str:
    """Return a text as a literal."""
    return "'" + text.replace("'", "''") + "'"


def quote_name(name: str) -> str:
    """Return a name in quotes."""
    return '"' + name.replace('"', '""') + '"'
