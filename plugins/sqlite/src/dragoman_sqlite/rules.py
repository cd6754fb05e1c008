"""SQLite's lexer and read-only policy, for the core's guard and validator. The worker's authorizer checks again."""

from __future__ import annotations

import re

from dragoman import Lexicon, Rules

from dragoman_sqlite.allowed import FUNCTIONS, PRAGMAS, TABLE_FUNCTIONS

# FTS5 tables are searched as notes('words'). Calling anything that is not a table fails, and the authorizer checks
# functions.
LEXICON = Lexicon(
    identifier_quotes='"[`',
    unclosed_comment_ends=True,
    dollar_names=True,
    parameters="?",
    table_functions=TABLE_FUNCTIONS,
    outer_members=True,
)

_NAME = r"""(?:[a-z_][\w$]*|"(?:[^"]|"")+"|'(?:[^']|'')+'|`(?:[^`]|``)+`|\[[^\]]+\])"""
_ARGUMENT = rf"(?:{_NAME}|\d+)"
_SCHEMA = rf"(?:{_NAME}\s*\.\s*)?"


def _pattern(text: str) -> re.Pattern[str]:
    return re.compile(text, re.IGNORECASE)


_ANY_PRAGMA = "|".join(sorted(PRAGMAS))
_NAMED_PRAGMA = "|".join(sorted(name for name, named in PRAGMAS.items() if named))


RULES = Rules(
    functions=FUNCTIONS,
    table_functions=TABLE_FUNCTIONS,
    substitutes={
        **dict.fromkeys(("now", "getdate", "sysdate"), "CURRENT_TIMESTAMP, or datetime('now')"),
        **dict.fromkeys(("nvl", "isnull"), "ifnull(a, b)"),
        **dict.fromkeys(("extract", "date_part", "year"), "strftime('%Y', x)"),
        **dict.fromkeys(("datediff", "date_diff", "timestampdiff"), "julianday(later) - julianday(earlier)"),
        **dict.fromkeys(("dateadd", "date_add", "adddate"), "date(x, '+1 day')"),
        **dict.fromkeys(("left", "right"), "substr(x, 1, 3), or substr(x, -3) for the end,"),
        **dict.fromkeys(("charindex", "locate", "strpos"), "instr(x, 'part')"),
        **dict.fromkeys(("countif", "count_if"), "count(*) FILTER (WHERE condition)"),
        "month": "strftime('%m', x)",
        "day": "strftime('%d', x)",
        "curdate": "CURRENT_DATE",
        "date_format": "strftime('%Y-%m-%d', x)",
        "date_trunc": "date(x, 'start of month'), or strftime()",
        "to_char": "strftime() or printf()",
        "listagg": "group_concat(x, ', ')",
        "greatest": "max(a, b)",
        "least": "min(a, b)",
        "len": "length(x)",
        "rand": "random()",
        "convert": "CAST(x AS type)",
    },
    statements=(
        _pattern(rf"pragma\s+{_SCHEMA}(?:{_ANY_PRAGMA})"),
        # `PRAGMA name = value` and `PRAGMA name(value)` are the same to SQLite. For these PRAGMAs both only read.
        _pattern(rf"pragma\s+{_SCHEMA}(?:{_NAMED_PRAGMA})\s*(?:\(\s*{_ARGUMENT}\s*\)|=\s*{_ARGUMENT})"),
    ),
    telling={name: () for name in TABLE_FUNCTIONS if name.startswith("pragma_")},
    prefixes=(_pattern(r"explain\s+(?:query\s+plan\s+)?(?=[^\s])"),),
    refused_relations=(
        # Any PRAGMA can be read as a table, and some act when they are read.
        _pattern(rf"(?:.*\.)?pragma_(?!(?:{_ANY_PRAGMA})$).*"),
        # Pages as they are in the file, including deleted rows; other statements of the process; files of the host; the
        # machine's memory.
        _pattern(
            r"(?:.*\.)?(?:sqlite_(?!(?:master|schema|sequence|stat\d|temp_master|temp_schema)$).*|bytecode|tables_used|fsdir"
            r"|zipfile|csv|carray|completion|vfsstat|wholenumber|fts3tokenize)"
        ),
        # Not tables, but functions that reach files or code where they exist. Nobody names a table like this.
        _pattern(
            r"(?:.*\.)?(?:load_extension|readfile|writefile|lsmode|lsdir|edit|eval|shell|system|fts3_tokenizer|fts5|optimize"
            r"|rtreecheck|geopoly_debug|sha3_query)"
        ),
        # Nothing can be in the temporary schema; sqlite_temp_master shows the same.
        _pattern(r"temp\..*"),
    ),
)
