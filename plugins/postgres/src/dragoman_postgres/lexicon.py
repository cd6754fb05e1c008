"""PostgreSQL's lexer, for the core's guard of texts."""

from dragoman import Lexicon

LEXICON = Lexicon(
    escape_strings=True,
    dollar_quotes=True,
    nested_comments=True,
    dollar_names=True,
    parameters="$",
    outer_members=True,
)
