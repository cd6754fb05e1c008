import unicodedata

import pytest
from dragoman import DragomanError, InvalidSql, Lexicon, Statement, UnsafeSql
from dragoman.sql.text import INVISIBLE, MAX_BYTES, MAX_NESTING, caret, clean, tokens
from hypothesis import example, given
from hypothesis import strategies as st

SQLITE = Lexicon(identifier_quotes='"[`', unclosed_comment_ends=True, dollar_names=True)
POSTGRES = Lexicon(escape_strings=True, dollar_quotes=True, nested_comments=True, dollar_names=True, parameters="$")
SPACED = Lexicon(spaced_comments=True)
MYSQL = Lexicon(identifier_quotes="`", backslash_escapes=True, hash_comments=True)
TRINO = Lexicon(marks="{}$:")

CLEANED = [
    (SQLITE, "select 1 -- one", "select 1"),
    (SQLITE, "select 1; -- one", "select 1"),
    (SQLITE, " select 1 ;\n", " select 1"),
    (SQLITE, "a /* b\n c */ d", "a     \n      d"),
    (SQLITE, "a /* /* b */ d", "a            d"),
    (SQLITE, "a /* unclosed", "a"),
    (SQLITE, "'--' /**/ \"/*\" [--] `--`", "'--'      \"/*\" [--] `--`"),
    (SQLITE, "'it''s -- no'", "'it''s -- no'"),
    (SQLITE, "'\\' -- one", "'\\'"),
    (POSTGRES, "a /* /* b */ c */ d", "a                 d"),
    (POSTGRES, "E'\\'--' -- one", "E'\\'--'"),
    (POSTGRES, "type'\\' -- one", "type'\\'"),
    (POSTGRES, "$$ -- ; $$ -- one", "$$ -- ; $$"),
    (POSTGRES, "$a$ $$ ; $b$ $a$ -- one", "$a$ $$ ; $b$ $a$"),
    (POSTGRES, "a$b$ -- one\n, c$b$", "a$b$       \n, c$b$"),
    (POSTGRES, "tags @> array['x'] and a @@ b and c #>> d", "tags @> array['x'] and a @@ b and c #>> d"),
    (POSTGRES, "$1 + $2", "$1 + $2"),
    (MYSQL, "'\\'#' # one", "'\\'#'"),
    (MYSQL, '"\\"#" # one', '"\\"#"'),
    (MYSQL, "a /*! b */ c", "a          c"),
    (TRINO, "a /* /* b */ c", "a            c"),
    (TRINO, "pattern (a{1,2} {- b -} $) -- c", "pattern (a{1,2} {- b -} $)"),
    (TRINO, "json_object('a':b, 'c' : d)", "json_object('a':b, 'c' : d)"),
]


@pytest.mark.parametrize(("lexicon", "text", "expected"), CLEANED)
def test_comments_become_spaces_as_the_dialect_reads_them(lexicon: Lexicon, text: str, expected: str):
    assert clean(text, lexicon) == expected


REFUSED = [
    (POSTGRES, "select 1 /* /* */", InvalidSql, 9),
    (POSTGRES, "$a$ $$", InvalidSql, 0),
    (POSTGRES, "select @ -5", InvalidSql, 7),
    (POSTGRES, "select E'\\'", InvalidSql, 7),
    (POSTGRES, "select $name", InvalidSql, 7),
    (TRINO, "select 1 /* a", InvalidSql, 9),
    (TRINO, "select `a`", InvalidSql, 7),
    (SQLITE, "select :a", InvalidSql, 7),
    (SQLITE, "select a $", InvalidSql, 9),
    (SQLITE, "select {a", InvalidSql, 7),
    (SQLITE, "select 12ab", InvalidSql, 7),
    (SQLITE, "select [a", InvalidSql, 7),
    (SQLITE, "select 1 -- a\rb", InvalidSql, 9),
    (SQLITE, "select u&'a'", InvalidSql, 7),
    (SQLITE, "select a\xa0", InvalidSql, 8),
    (SQLITE, "select 1;select 2", UnsafeSql, 8),
    (SQLITE, "select 1; -- a\n select 2", UnsafeSql, 8),
    (MYSQL, "select @a := 1", InvalidSql, 7),
]


@pytest.mark.parametrize(("lexicon", "text", "kind", "offset"), REFUSED)
def test_ambiguous_text_is_refused_where_it_stands(lexicon: Lexicon, text: str, kind: type[DragomanError], offset: int):
    with pytest.raises(kind) as refusal:
        clean(text, lexicon)
    assert refusal.value.offset == offset
    assert refusal.value.suggestion


def test_nesting_is_counted_outside_quotes_and_comments():
    inner = "(" * (MAX_NESTING - 1) + f"'{'(' * 90}' /* {'(' * 90} */" + ")" * (MAX_NESTING - 1)
    assert clean(f"select ({inner})", SQLITE)
    with pytest.raises(InvalidSql, match="nested"):
        clean(f"select (({inner}))", SQLITE)


def test_brackets_nest_where_they_are_no_quotes():
    with pytest.raises(InvalidSql, match="nested"):
        clean("select " + "array[" * (MAX_NESTING + 1), POSTGRES)


def test_the_length_is_counted_in_bytes():
    assert clean("é" * (MAX_BYTES // 2), SQLITE)
    with pytest.raises(InvalidSql, match="bytes"):
        clean("é" * (MAX_BYTES // 2 + 1), SQLITE)


def test_every_character_that_cannot_be_seen_is_refused_outside_quotes():
    hidden = {"Zs", "Zl", "Zp", "Cc", "Cf", "Cs", "Co"}
    passed = [
        f"U+{point:04X}"
        for point in range(0x80, 0x110000)
        if unicodedata.category(chr(point)) in hidden and _passes(f"select a{chr(point)}")
    ]
    assert passed == []


def _passes(text: str) -> bool:
    try:
        return bool(clean(text, SQLITE))
    except InvalidSql:
        return False


def test_letters_of_every_script_may_stand_in_names():
    for name in ("größe", "名前", "имя", "नाम", "שם", "ชื่อ", "이름", "ñandú", "x\u0301"):
        assert clean(f"select {name}", SQLITE) == f"select {name}"
        assert tokens(name, SQLITE)[0].text == name


def test_quotes_may_hold_what_cannot_be_seen():
    assert clean("select 'a\xa0\u200bb', \"a\u3000b\"", SQLITE)
    assert "\xa0" in INVISIBLE


CARETS = [
    ("select x", 7, "select x\n       ^"),
    ("a\nselect x\nb", 9, "select x\n       ^"),
    ("select\tx", 7, "select x\n       ^"),
    ("", 5, "\n^"),
    ("a" * 50 + "X" + "b" * 50, 50, "a" * 30 + "X" + "b" * 29 + "\n" + " " * 30 + "^"),
    ("b" * 99 + "X", 99, "b" * 59 + "X\n" + " " * 59 + "^"),
]


@pytest.mark.parametrize(("text", "offset", "expected"), CARETS)
def test_a_caret_points_at_the_offset_in_a_short_line(text: str, offset: int, expected: str):
    assert caret(text, offset) == expected


PIECES = st.sampled_from("' \" ` [ ] -- /* */ ; $$ $a$ E' \\ ( ) a 1 ? $1 u& # : { é . e5".split() + list(" \n\r\xa0"))
LEXICONS = st.sampled_from([SQLITE, POSTGRES, MYSQL, TRINO])


@given(st.lists(PIECES).map("".join), LEXICONS)
@example("a /*/ b */", SQLITE)
def test_cleaning_keeps_offsets_and_is_done_once(text: str, lexicon: Lexicon):
    try:
        cleaned = clean(text, lexicon)
    except DragomanError:
        return
    assert len(cleaned) <= len(text)
    assert all(new == old or (new == " " and old not in "\r\n") for new, old in zip(cleaned, text, strict=False))
    assert clean(cleaned, lexicon) == cleaned
    assert all(token.text == cleaned[token.start : token.end] for token in tokens(cleaned, lexicon))
    assert not {token.kind for token in tokens(cleaned, lexicon)} - {
        "word",
        "name",
        "string",
        "number",
        "parameter",
        "open",
        "close",
        "mark",
    }


def test_a_statement_keeps_its_secrets_out_of_its_repr():
    statement = Statement.parse("select 'secret' -- x", sqlglot="sqlite", lexicon=SQLITE)
    assert repr(statement) == f"Statement({statement.hash})"
    assert (statement.original, statement.text) == ("select 'secret' -- x", "select 'secret'")
    assert len(statement.hash) == 16


@pytest.mark.parametrize(
    ("text", "cleaned"),
    [("SELECT 1 -- one", "SELECT 1"), ("SELECT 1 --", "SELECT 1"), ("SELECT 5 - -1", "SELECT 5 - -1")],
)
def test_where_a_comment_needs_a_space_dashes_before_one_begin_it(text, cleaned):
    assert clean(text, SPACED) == cleaned


@pytest.mark.parametrize("text", ["SELECT 5--1", "SELECT 1 --x\n FROM t", "SELECT 1 --\x0b"])
def test_where_a_comment_needs_a_space_dashes_without_one_are_refused(text):
    with pytest.raises(InvalidSql):
        clean(text, SPACED)
