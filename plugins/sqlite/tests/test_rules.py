"""The corpus on a real SQLite: what is allowed runs, what is refused is refused for the right reason."""

import apsw
import pytest
from dragoman import Dialect, DragomanError
from dragoman.testing.corpus import Case, cases, setup
from dragoman.validators import check_text
from dragoman_sqlite.allowed import FUNCTIONS, PRAGMAS
from dragoman_sqlite.reserved import RESERVED
from dragoman_sqlite.rules import LEXICON, RULES

SQLITE = Dialect(
    name="sqlite",
    contract=1,
    sqlglot="sqlite",
    lexicon=LEXICON,
    rules=RULES,
    default_schema="main",
    reserved=RESERVED,
)
CASES = cases("any") + cases("sqlite")
REFUSED_FUNCTIONS = set(
    "fts3_tokenizer fts5 fts5_get_locale fts5_insttoken fts5_locale fts5_source_id geopoly_debug load_extension"
    " optimize rtreecheck sqlite_log".split()
)


@pytest.fixture(scope="module")
def shop() -> apsw.Connection:
    connection = apsw.Connection(":memory:")
    connection.execute(setup("sqlite"))
    connection.execute("PRAGMA query_only = on")
    return connection


def verdict(text: str) -> str:
    try:
        check_text(SQLITE, text)
    except DragomanError as error:
        return error.code
    return ""


@pytest.mark.parametrize("case", CASES, ids=str)
def test_the_verdict_is_the_expected_one(case: Case):
    assert verdict(case.sql) == case.code


@pytest.mark.parametrize("case", [case for case in CASES if case.allow], ids=str)
def test_what_is_allowed_runs(case: Case, shop: apsw.Connection):
    shop.execute(case.sql).fetchall()


def test_every_function_of_this_sqlite_was_judged(shop: apsw.Connection):
    known = {name.lower() for (name,) in shop.execute("SELECT DISTINCT name FROM pragma_function_list")}
    assert known - FUNCTIONS == known & REFUSED_FUNCTIONS


def test_every_listed_pragma_reads_and_changes_nothing(shop: apsw.Connection):
    before = shop.serialize("main")
    for name in PRAGMAS:
        shop.execute(f"PRAGMA {name}").fetchall()
    assert shop.serialize("main") == before
