"""What no query may reach: files, servers, programs. Also checks that the lexer matches the engine."""

from __future__ import annotations

import contextlib
import os
from collections.abc import Iterable, Iterator
from contextlib import AbstractAsyncContextManager
from itertools import product
from pathlib import Path
from typing import Final

import pytest

from dragoman.dialect import Capability, Dialect
from dragoman.errors import DragomanError, InvalidSql, NotFound, Refused, UnsafeSql
from dragoman.gateway import Gateway
from dragoman.model import Database, Request, RowStream
from dragoman.sql import Statement
from dragoman.testing import sample
from dragoman.testing.base import OpenDatabase, Suite, ask, run
from dragoman.testing.idleness import family
from dragoman.testing.tiers import recommended, required
from dragoman.validators import read

# Engines' names of functions that read or write files, query other servers, run programs, change something or only
# wait.
REACHING: Final = """
    benchmark bfile csv_scan current_setting dblink dblink_exec delta_scan dictget duckdb_secrets duckdb_settings edit
    eval executable get_lock getenv globalin globalnotin hdfs http_get http_post iceberg_metadata iceberg_scan joinget
    last_insert_id lo_export lo_import load_extension load_file master_pos_wait mysql_query nextval notin
    opendatasource openquery openrowset parquet_metadata parquet_scan parquet_schema pg_advisory_lock pg_ls_dir
    pg_notify pg_read_binary_file pg_read_file pg_sleep pg_terminate_backend postgres_query postgres_scan query_table
    query_to_xml read_blob read_csv read_csv_auto read_json read_json_auto read_ndjson read_parquet read_text
    read_xlsx readfile release_lock s3 set_config setseed setval shell sleep sleep_ms sniff_csv sqlite_scan st_read
    sys_eval sys_exec utl_http waitfor writefile xp_cmdshell
""".split()
# Constructs that may compute between SELECT and FROM, and that list files in place of a table.
LISTING: Final = frozenset({"glob"})
READING: Final = (
    "SELECT * FROM '{path}'",
    'SELECT * FROM "{path}"',
    "SELECT * FROM read_text('{path}')",
    "SELECT * FROM read_csv('{path}')",
    "SELECT * FROM file('{path}')",
    "SELECT readfile('{path}') AS t",
    "SELECT load_file('{path}') AS t",
)
MARKER: Final = "kit-file-4711"
# A field of the lexicon, the statement that only an engine with it answers, and the answer.
LEXED: Final = {
    "nested_comments": ("SELECT 1 /* a /* b */ c */ AS v", 1),
    "dollar_quotes": ("SELECT $kit$it's$kit$ AS v", "it's"),
    "escape_strings": (r"SELECT E'it\'s' AS v", "it's"),
    "backslash_escapes": (r"SELECT 'it\'s' AS v", "it's"),
    "hash_comments": ("SELECT 1 AS v # a comment", 1),
    "colon_casts": ("SELECT 1::INTEGER AS v", 1),
    "spaced_comments": ("SELECT 5--1 AS v", 6),
    "unclosed_comment_ends": ("SELECT 1 AS v /* kit", 1),
    "tables_in_lists": (f"SELECT max(id) AS v FROM {sample.TRACK} WHERE (1, 'Jazz') IN ({sample.GENRE})", 5),
}


# Engines' names of columns that tables have without declaring them.
IMPLICIT: Final = "rowid _rowid_ _rowid oid ctid xmin tableoid rdb$db_key".split()
# Statements that read nothing and change the session, the server or the transaction.
TELLING_NOTHING: Final = (
    "SET kit = 1",
    "RESET kit",
    "USE kit",
    "PRAGMA kit = 1",
    "CALL kit()",
    "BEGIN",
    "COMMIT",
    "LOCK TABLE kit_track",
    "COPY kit_track TO 'kit.csv'",
    "ATTACH 'kit.db' AS kit",
    "LOAD kit",
    "INSTALL kit",
    "GRANT SELECT ON kit_track TO PUBLIC",
    "VACUUM",
    "KILL 1",
)
# A letter in both cases, and letters that some lower-casing functions map to it.
TWINS: Final = ("aA", "üÜ", "éÉ", "жЖ", "ωΩ", "σς", "\u212ak", "ıI", "iİ", "ßẞ", "ǆǅ", "ａＡ", "\U00010428\U00010400")
# Ways to write a name, and the foldings with which it finds a table that was declared in lower case without quotes.
WRITTEN: Final = {
    "another case without quotes": frozenset({"lower", "upper", "insensitive"}),
    "another case in quotes": frozenset({"insensitive"}),
}

KELVIN: Final = "\u212a"
"""A letter that `str.lower` turns into `k`, and engines do not."""
WITH_NAMES: Final = {
    "in another case": ("{upper}", "{name}"),
    "in another case in quotes": ("{quoted_upper}", "{quoted_name}"),
    "with another letter": ("{odd}", "{name}"),
    "with another letter in quotes": ("{quoted_odd}", "{quoted_name}"),
}
"""How a WITH name is written that is nearly the name of a table, and the table's name."""
WITH_SCOPES: Final = {
    "in its own member": "WITH {t}(name) AS (SELECT name FROM {t}) SELECT name FROM {t}",
    "in its own member with RECURSIVE": "WITH RECURSIVE {t}(name) AS (SELECT name FROM {t}) SELECT name FROM {t}",
    "in the first part of its own member": "WITH RECURSIVE {t}(name) AS"
    " (SELECT name FROM {t} UNION ALL SELECT name FROM {t} WHERE 1 = 0) SELECT name FROM {t}",
    "in its own member under another WITH": "WITH RECURSIVE {t}(name) AS (SELECT name FROM"
    " (WITH q(name) AS (SELECT name FROM {t}), {t}(x) AS (SELECT 1) SELECT name FROM q) AS s) SELECT name FROM {t}",
    "in an earlier member": "WITH q(name) AS (SELECT name FROM {t}), {t}(x) AS (SELECT 1) SELECT name FROM q",
    "in an earlier member with RECURSIVE": "WITH RECURSIVE q(name) AS (SELECT name FROM {t}), {t}(x) AS (SELECT 1)"
    " SELECT name FROM q",
    "in a member of an inner WITH": "WITH {t}(x) AS (SELECT 1) SELECT name FROM"
    " (WITH q(name) AS (SELECT name FROM {t}) SELECT name FROM q) AS s",
    "in a member of an inner WITH in a value": "WITH {t}(x) AS (SELECT 1) SELECT"
    " (WITH q(name) AS (SELECT name FROM {t}) SELECT max(name) FROM q) AS name",
    "in an inner query": "WITH {t}(x) AS (SELECT 1) SELECT name FROM (SELECT name FROM {t}) AS s",
}
"""Where the name `t` of a table with a column `name` stands beside a WITH name that is the same."""


PAST: Final = (
    "FOR SYSTEM_TIME ALL",
    "FOR SYSTEM_TIME AS OF CURRENT_TIMESTAMP",
    "FOR TIMESTAMP AS OF CURRENT_TIMESTAMP",
    "FOR VERSION AS OF 1",
    "VERSION AS OF 1",
    "TIMESTAMP AS OF CURRENT_TIMESTAMP",
    "AT (VERSION => 1)",
    "AT (OFFSET => 0)",
    "BEFORE (OFFSET => 0)",
    "AS OF TIMESTAMP CURRENT_TIMESTAMP",
)
"""How engines write that a table is read as it was."""


# Words that most engines reserve.
RESERVED: Final = """
    add all alter and any array as asc asymmetric authorization between both by case cast check collate column
    constraint create cross cube current current_date current_role current_time current_timestamp current_user cursor
    declare default delete desc describe distinct do drop else end escape except exists extract false fetch for foreign
    from full function grant group grouping groups having if in index inner insert intersect interval into is join key
    lateral leading left like limit localtime localtimestamp merge natural no not null of offset on only or order outer
    over partition placing prepare primary procedure qualify range rank recursive references revoke right rollup row
    rows select session_user set show similar some symmetric table then to trailing trigger true union unique unnest
    update user using values view when where window with
""".split()


class ReachCases(Suite):
    """Cases through the gateway, with the dialect's own lists; then in the engine, without the gateway's checks."""

    @required
    async def test_functions_that_reach_beyond_the_database_are_refused(
        self, gateway: Gateway, dialect: Dialect
    ) -> None:
        taken = [sql for name in REACHING for sql in _calls(name) if not await _is_refused(gateway, sql)]
        taken += [f"SELECT * FROM {name}('kit')" for name in LISTING & dialect.loaded_rules.table_functions]
        assert not taken, (
            f"These were not refused: {taken}. Remove functions that read files, query other "
            "servers, change something or only wait from Rules.functions and "
            "Rules.table_functions."
        )

    @required
    async def test_what_a_table_was_is_seen_as_an_older_version(self, gateway: Gateway, dialect: Dialect) -> None:
        for clause in PAST:
            sql = f"SELECT * FROM {sample.TRACK} {clause}"
            try:
                await ask(gateway, sql)
            except DragomanError:
                continue
            parsed = read(dialect, Statement.parse(sql, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon))
            assert any(dialect.same(each.relation.name, sample.TRACK) for each in parsed.versions), (
                f"{sql} was answered, and it is not among the versions that Dialect.read returned: an older version may"
                " have columns that a role hides."
            )

    @required
    async def test_no_file_is_read_as_a_table(self, gateway: Gateway, tmp_path: Path) -> None:
        path = _plant(tmp_path)
        for statement in READING:
            sql = statement.format(path=path)
            try:
                told: object = (await ask(gateway, sql)).rows
            except DragomanError as error:
                told = error.as_dict()
            assert MARKER not in str(told), (
                f"{sql} read a file: disable the engine's access to files, and refuse such relations."
            )

    @recommended
    async def test_the_engine_itself_reads_no_file(self, opened: OpenDatabase, tmp_path: Path) -> None:
        if opened.config.host is not None:
            return  # files of a server are for its role to reach, and for the doctor to report
        path = _plant(tmp_path)
        for statement in READING:
            sql = statement.format(path=path)
            try:
                told: object = (await run(opened, sql))[1]
            except DragomanError as error:
                told = error.as_dict()
            assert MARKER not in str(told), (
                f"{sql} read a file without our own checks: disable the engine's access to files."
            )

    @required
    async def test_a_database_file_is_open_for_reading_only(
        self, gateway: Gateway, database: Database, dialect: Dialect
    ) -> None:
        if database.host is not None or Capability.READ_ONLY_SESSION not in dialect.capabilities:
            return
        await ask(gateway, f"SELECT id FROM {sample.GENRE}")
        assert not list(_writers(database.folder / (database.database or ""))), (
            "The database's file is open for writing: open it read-only, so that the engine and "
            "the system refuse writes even if every check of ours fails."
        )

    @required
    async def test_statements_that_are_no_queries_are_refused_before_the_engine(
        self, gateway: Gateway, opened: OpenDatabase, monkeypatch: pytest.MonkeyPatch
    ) -> None:
        reached: list[str] = []

        def open_and_note(request: Request) -> AbstractAsyncContextManager[RowStream]:
            reached.append(request.statement)
            raise UnsafeSql("The kit refuses everything here.")

        monkeypatch.setattr(opened.executor, "open", open_and_note)
        for statement in TELLING_NOTHING:
            with contextlib.suppress(DragomanError):
                await ask(gateway, statement)
        assert not reached, (
            f"{reached} passed the checks: Rules.statements and Rules.prefixes must match only harmless inspection."
        )

    @required
    async def test_columns_that_no_table_lists_are_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        there: set[str] = set()
        for name in IMPLICIT:
            with contextlib.suppress(DragomanError):
                await run(opened, f"SELECT {name} FROM {sample.GENRE}")
                there.add(name)
        missing = sorted(there - dialect.implicit_columns)
        assert not missing, (
            f"A table with the columns id and name also has {missing}: list them in "
            "Dialect.implicit_columns, so that policies know them."
        )

    @required
    def test_columns_that_a_table_lists_are_not_declared_as_implicit(self, dialect: Dialect) -> None:
        listed = sorted({"id", "name"} & dialect.implicit_columns)
        assert not listed, (
            f"{sample.GENRE} lists the columns {listed}, which are in Dialect.implicit_columns: "
            "those are columns that relations have without listing them, such as `rowid`."
        )

    @required
    @pytest.mark.parametrize("written", list(WRITTEN))
    async def test_the_folding_is_the_engine_s(self, opened: OpenDatabase, dialect: Dialect, written: str) -> None:
        other = sample.stored_name(dialect, sample.GENRE).swapcase()
        if "in quotes" in written:
            other = dialect.quote_marks[0] + other + dialect.quote_marks[1]
        try:
            await run(opened, f"SELECT id FROM {other}")
        except DragomanError:
            return  # the engine finds no more than the dialect says
        assert dialect.folding in WRITTEN[written], (
            f"Dialect.folding is {dialect.folding!r}, and the engine finds {sample.GENRE} by "
            f"{other}: what is hidden under one name would be visible under another. Use "
            "`insensitive` if case makes no difference."
        )

    @required
    async def test_the_letters_that_fold_are_the_engine_s(self, opened: OpenDatabase, dialect: Dialect) -> None:
        quotes = dialect.quote_marks if dialect.folding == "insensitive" else ("", "")
        if dialect.folding == "exact" or not await _is_one(opened, "kit_a".join(quotes), "kit_a".join(quotes)):
            return  # the engine has no queries of this form
        names = ("kit_" + letter for twins in TWINS for letter in twins)
        wrong: list[tuple[str, str]] = []
        for one, other in product(names, repeat=2):
            told = dialect.fold(one) == dialect.fold(other)
            if _is_near(one, other) and await _is_one(opened, one.join(quotes), other.join(quotes)) != told:
                wrong.append((one, other))
        ascii_too = any((one + other).isascii() for one, other in wrong)
        remedy = (
            "`folding` to what the engine does" if ascii_too else "`ascii_folding` if only ASCII letters are folded"
        )
        assert not wrong, (
            "Dialect.fold and the engine disagree about which names are equal, as in "
            f"{wrong[:3]}: what a role denies under one name would be visible under another. Set {remedy}."
        )

    @recommended
    async def test_words_that_need_quotes_are_declared(self, opened: OpenDatabase, dialect: Dialect) -> None:
        words = [word for word in RESERVED if word not in dialect.reserved]
        if await _are_names(opened, dialect, words):
            return
        missing = [word for word in words if not await _are_names(opened, dialect, [word])]
        assert not missing, (
            f"The engine does not take {missing} as names of columns without quotes: add these words to"
            " Dialect.reserved, with all others of the engine's own list."
        )

    @required
    @pytest.mark.parametrize("written", list(WITH_NAMES))
    async def test_a_relation_beside_a_with_name_is_read(
        self, opened: OpenDatabase, dialect: Dialect, written: str
    ) -> None:
        stored = sample.stored_name(dialect, sample.GENRE)
        names = {"name": stored, "upper": stored.swapcase(), "odd": stored.lower().replace("k", KELVIN)}
        opening, closing = dialect.quote_marks[0], dialect.quote_marks[1]
        quoted = {f"quoted_{name}": f"{opening}{text}{closing}" for name, text in names.items()}
        member, table = (part.format(**names, **quoted) for part in WITH_NAMES[written])
        sql = f"WITH {member} AS (SELECT 1 AS marker) SELECT name FROM {table}"
        assert not await _reads_unseen(opened, dialect, sql, stored), (
            f"The engine reads {stored} in {sql}, and the dialect does not: a hidden table could "
            "be read. Fold names as the engine does, and no further: see "
            "dragoman.words.lower_ascii."
        )

    @required
    @pytest.mark.parametrize("place", list(WITH_SCOPES))
    async def test_a_relation_of_the_name_of_a_with_name_is_read(
        self, opened: OpenDatabase, dialect: Dialect, place: str
    ) -> None:
        stored = sample.stored_name(dialect, sample.GENRE)
        sql = WITH_SCOPES[place].format(t=sample.GENRE)
        assert not await _reads_unseen(opened, dialect, sql, stored), (
            f"The engine reads {stored} in {sql}, and the dialect does not: a hidden table could be read. Let"
            " Dialect.read take a name for a WITH name only where the engine does; without it, `outer_members` of the"
            " lexicon is wrong."
        )

    @required
    def test_placeholders_are_what_the_lexer_reads(self, dialect: Dialect) -> None:
        assert dialect.placeholder[0] == dialect.lexicon.parameters, (
            f"Agents write {dialect.placeholder!r}, and the lexer expects "
            f"{dialect.lexicon.parameters!r}: make Dialect.placeholder and Lexicon.parameters "
            "agree."
        )

    @required
    @pytest.mark.parametrize("field", list(LEXED))
    async def test_the_lexicon_says_what_the_engine_does(
        self, opened: OpenDatabase, dialect: Dialect, field: str
    ) -> None:
        if field == "colon_casts" and Capability.GRAMMAR in dialect.capabilities:
            return  # parsed by the dialect's own grammar
        sql, wanted = LEXED[field]
        try:
            engine = (await run(opened, sql))[1] == [[wanted]]
        except DragomanError:
            engine = False
        declared = bool(getattr(dialect.lexicon, field))
        assert engine == declared, (
            f"Lexicon.{field} is {declared}, and the engine {'answers' if engine else 'refuses'} "
            f"{sql!r}: a text that the lexer and the engine read differently may hide a statement."
        )


def _is_near(one: str, other: str) -> bool:
    return one != other and (one.lower() == other.lower() or one.upper() == other.upper())


async def _is_one(opened: OpenDatabase, member: str, name: str) -> bool:
    """Return whether the engine takes the name in FROM for the member of WITH."""
    try:
        await run(opened, f"WITH {member} AS (SELECT 1 AS n) SELECT n FROM {name}")
    except DragomanError:
        return False
    return True


async def _reads_unseen(opened: OpenDatabase, dialect: Dialect, sql: str, stored: str) -> bool:
    """Return whether the engine reads a relation of which the dialect says nothing."""
    try:
        await run(opened, sql)
    except DragomanError:
        return False  # it takes the name for that of WITH, which has no such column, or for neither
    return not _sees(dialect, sql, stored)


async def _are_names(opened: OpenDatabase, dialect: Dialect, words: Iterable[str]) -> bool:
    """Return whether the engine takes words for names of columns, without quotes, and not for values."""
    opening, closing = dialect.quote_marks[0], dialect.quote_marks[1]
    columns = ", ".join(f"id AS {opening}{sample.stored_name(dialect, word)}{closing}" for word in words)
    try:
        _, rows = await run(opened, f"SELECT id, {', '.join(words)} FROM (SELECT id, {columns} FROM {sample.GENRE}) q")
    except DragomanError:
        return False
    return all(value == row[0] for row in rows for value in row)


def _calls(name: str) -> tuple[str, str]:
    return f"SELECT {name}('kit') AS v", f"SELECT * FROM {name}('kit')"


async def _is_refused(gateway: Gateway, sql: str) -> bool:
    try:
        await ask(gateway, sql)
    except (Refused, NotFound):
        return True
    except DragomanError:
        pass  # it reached the engine, which raised an error
    return False


def _plant(folder: Path) -> Path:
    path = folder / "kit_planted.csv"
    path.write_text(f"a\n{MARKER}\n", encoding="utf-8")
    return path


def _writers(file: Path) -> Iterator[int]:
    """Yield our processes that have a file open for writing, if the kernel reports them."""
    for pid in family():
        for descriptor in Path(f"/proc/{pid}/fd").glob("*"):
            try:
                if not os.path.samefile(descriptor, file):
                    continue
                flags = (Path(f"/proc/{pid}/fdinfo") / descriptor.name).read_text().split("flags:")[1].split()[0]
            except OSError:
                continue  # it was closed meanwhile, or we may not inspect it
            if int(flags, 8) & (os.O_WRONLY | os.O_RDWR):
                yield pid


def _sees(dialect: Dialect, sql: str, table: str) -> bool:
    """Return whether a dialect sees a table in a statement, or refuses the statement."""
    try:
        parsed = read(dialect, Statement.parse(sql, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon))
    except InvalidSql:
        return True
    return parsed.refusal is not None or any(dialect.same(each.name, table) for each in parsed.names)
