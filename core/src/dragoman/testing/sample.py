"""The tables of every conformance run: the statements that create them, and their rows."""

from __future__ import annotations

from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Final

from dragoman.dialect import Capability, Dialect
from dragoman.model import Relation, Table
from dragoman.sql.lexicon import Lexicon
from dragoman.sql.text import tokens

GENRE: Final = "kit_genre"
TRACK: Final = "kit_track"
RATING: Final = "kit_rating"
LISTING: Final = "kit_listing"
APPEAL: Final = "kit_appeal"
"""A table with every kind of constraint.

The columns of its composite foreign key are in another order than the referenced key.
"""
LATER: Final = "kit_later"
LATER_VIEW: Final = "kit_later_shown"
COUNT: Final = "kit_count"
"""A function that reads a table, if users of the engine can define one, and that the view `COUNTED` calls."""
COUNTED: Final = "kit_counted"
_COUNTING: Final = f"SELECT COUNT(*) FROM {GENRE}"
FUNCTIONS: Final = (
    f"CREATE FUNCTION {COUNT}() RETURNS INTEGER READS SQL DATA RETURN ({_COUNTING})",
    f"CREATE FUNCTION {COUNT}() RETURNS BIGINT LANGUAGE SQL AS '{_COUNTING}'",
    f"CREATE FUNCTION {COUNT}() RETURNS INTEGER AS BEGIN RETURN ({_COUNTING}) END",
    f"CREATE FUNCTION {COUNT} RETURNS INTEGER AS BEGIN RETURN ({_COUNTING}); END",
    f"CREATE FUNCTION {COUNT} RETURN NUMBER IS n NUMBER; BEGIN SELECT COUNT(*) INTO n FROM {GENRE}; RETURN n; END;",
)
"""How engines write that function."""
MADE: Final = "kit_made"
"""A table with a generated column `made` of its `id`, if the engine has such columns."""
ODD: Final = "kit odd"
"""A name that needs quotes, with a column that needs them too."""
MARK: Final = "Kit Mark"
"""A column whose name has capitals, if the engine keeps them."""
DOTTED: Final = " kit.dotted"
"""A name that contains a separator and begins with a blank, with a column whose name has a dot too."""
PART: Final = "kit.part"
CAPITAL: Final = "Kit Capital"
"""A table whose name has capitals, if the engine keeps them."""
QUOTED: Final = frozenset({ODD, MARK, DOTTED, PART, CAPITAL, "select"})
KIN: Final = "kit_kin"
"""A table with two foreign keys to one table, one to itself, and keys, checks and indexes that begin alike."""
LONG_VIEW: Final = "kit_long"
"""A view whose definition is longer than a column of 4,000 characters."""
LAST: Final = "the_last_of_the_columns_of_a_long_view"
MANY: Final = "kit_many"
"""The prefix of the many similar relations."""
HARD: Final = """kit's "hard" `100%`"""
"""A name of characters that mean something in SQL, in patterns and in drivers. Its table is wide."""
WIDTH: Final = 101

APPEAL_INDEX: Final = "kit_appeal_parts"
TITLE_INDEX: Final = "kit_track_title"
KIN_INDEXES: Final = {"kit_kin_one": ("first_id",), "kit_kin_two": ("first_id", "parent_id")}
KIN_KEYS: Final = {"first_id": TRACK, "second_id": TRACK, "parent_id": KIN}
KIN_UNIQUE: Final = (("first_id", "second_id"), ("first_id", "parent_id"))
KIN_CHECKS: Final = ("first_id <> 17", "first_id < 1000")
TRACK_COMMENT: Final = f"What can be played{', and again' * 40}."
TITLE_COMMENT: Final = f"As printed on the sleeve, Zoë said{', and again' * 40}."
"""Comments are longer than the 60 or 255 characters that some catalogs show of them."""
HOSTILE_TITLE: Final = """it's "odd"; -- 100% ? $1 :x %s Zoë"""
GENRES: Final = ((1, "Jazz"), (2, "Folk"), (3, "Raï"))
TRACKS: Final = ((1, 1, "So What"), (2, 1, "Naima"), (3, 2, HOSTILE_TITLE), (4, 3, ""), (5, 2, "Zombie"))

TYPES: Final[Mapping[str, str]] = {"integer": "INTEGER", "text": "VARCHAR(100)", "decimal": "DECIMAL(7, 3)"}


def statements(
    dialect: Dialect,
    types: Mapping[str, str],
    lacks: Collection[Capability],
    many: int,
    generated: str = "",
    hard: str = HARD,
) -> Iterator[str]:
    """Yield the statements that build the sample, without what the engine lacks. `many`: the number of similar tables.

    `generated`: the definition of a generated column. `hard`: the name of the wide table.
    """
    key = "" if Capability.PRIMARY_KEYS in lacks else " PRIMARY KEY"
    integer, text = types["integer"], types["text"]
    reference = "" if Capability.FOREIGN_KEYS in lacks else f" REFERENCES {GENRE} (id)"
    composite = "" if Capability.PRIMARY_KEYS in lacks else ", PRIMARY KEY (judge, track_id)"
    yield f"CREATE TABLE {GENRE} (id {integer} NOT NULL{key}, name {text} NOT NULL)"
    yield (
        f"CREATE TABLE {TRACK} (id {integer} NOT NULL{key}, genre_id {integer} NOT NULL{reference},"
        f" title {text} NOT NULL, note {text})"
    )
    yield (
        f"CREATE TABLE {RATING} (track_id {integer} NOT NULL, judge {text} NOT NULL, stars {integer}{composite}"
        f"{_track_reference(lacks)})"
    )
    yield f"CREATE VIEW {LISTING} AS SELECT t.title, g.name FROM {TRACK} t JOIN {GENRE} g ON g.id = t.genre_id"
    yield (
        f"CREATE TABLE {APPEAL} (id {integer} NOT NULL{key}, rated {integer}, rater {text}, code {text} NOT NULL,"
        f" amount {types['decimal']}, grade {integer}{_appeal_constraints(lacks)})"
    )
    if generated:
        yield f"CREATE TABLE {MADE} (id {integer}, made {integer} {generated})"
    yield f"CREATE TABLE {KIN} (id {integer} NOT NULL{key}, {', '.join(_kin_columns(integer, lacks))})"
    yield f"CREATE VIEW {LONG_VIEW} AS SELECT {', '.join(_long_columns())} FROM {GENRE} WHERE name <> 'Kit A'"
    yield f"CREATE TABLE {dialect.quote(CAPITAL)} (id {integer})"
    yield f"CREATE TABLE {dialect.quote(DOTTED)} ({dialect.quote(PART)} {integer})"
    wide = ", ".join(f"c{number} {integer}" for number in range(1, WIDTH + 1))
    yield f"CREATE TABLE {dialect.quote(hard)} ({wide})"
    yield from (f"CREATE TABLE {MANY}_{number} (id {integer})" for number in range(1, many + 1))
    yield f"CREATE TABLE {dialect.quote(ODD)} ({dialect.quote('select')} {integer}, {dialect.quote(MARK)} {integer})"
    if Capability.INDEXES not in lacks:
        yield f"CREATE INDEX {TITLE_INDEX} ON {TRACK} (title)"
        yield f"CREATE UNIQUE INDEX {APPEAL_INDEX} ON {APPEAL} (rated, id, grade)"
        yield from (f"CREATE INDEX {name} ON {KIN} ({', '.join(parts)})" for name, parts in KIN_INDEXES.items())
    if Capability.COMMENTS in dialect.capabilities:
        yield f"COMMENT ON TABLE {TRACK} IS {literal(TRACK_COMMENT)}"
        yield f"COMMENT ON COLUMN {TRACK}.title IS {literal(TITLE_COMMENT)}"
    # One row at a time: not every engine accepts several.
    yield from (f"INSERT INTO {GENRE} (id, name) VALUES ({id}, '{name}')" for id, name in GENRES)
    for id, genre, title in TRACKS:
        yield f"INSERT INTO {TRACK} (id, genre_id, title) VALUES ({id}, {genre}, {literal(title)})"
    yield from (
        f"INSERT INTO {RATING} (track_id, judge, stars) VALUES ({track}, 'Ada', {stars})"
        for track, stars in ((1, 5), (2, 4))
    )
    yield f"INSERT INTO {dialect.quote(ODD)} ({dialect.quote('select')}) VALUES (7)"


def changes(integer: str, text: str, lacks: Collection[Capability] = ()) -> Iterator[str]:
    """Yield statements that change the schema one after the other, and finally restore it.

    The two views differ only in their queries. Tables differ in one thing each: a column's type, whether it may be
    null, the order of two columns, a key.
    """
    yield f"CREATE TABLE {LATER} (id {integer})"
    for condition in ("id = 1", "id = 2"):
        yield f"CREATE VIEW {LATER_VIEW} AS SELECT id FROM {LATER} WHERE {condition}"
        yield f"DROP VIEW {LATER_VIEW}"
    yield f"ALTER TABLE {LATER} ADD COLUMN note {text}"
    yield f"DROP TABLE {LATER}"
    for columns in _variants(integer, text, lacks):
        yield f"CREATE TABLE {LATER} ({columns})"
        yield f"DROP TABLE {LATER}"


def _variants(integer: str, text: str, lacks: Collection[Capability]) -> Iterator[str]:
    """Yield the columns of tables that differ in one thing each."""
    yield f"id {text}"
    yield f"id {integer} NOT NULL"
    yield f"id {integer}, note {text}"
    yield f"note {text}, id {integer}"
    if Capability.PRIMARY_KEYS not in lacks:
        yield f"id {integer} NOT NULL PRIMARY KEY"
        yield f"id {integer} NOT NULL PRIMARY KEY, note {text} UNIQUE"
    if not {Capability.PRIMARY_KEYS, Capability.FOREIGN_KEYS} & {*lacks}:
        yield f"id {integer}, FOREIGN KEY (id) REFERENCES {GENRE} (id)"
        yield f"id {integer}, FOREIGN KEY (id) REFERENCES {TRACK} (id)"


def _appeal_constraints(lacks: Collection[Capability]) -> str:
    checks = "" if Capability.PRIMARY_KEYS in lacks else " DEFAULT 3 CHECK (grade > 0), UNIQUE (rated, code)"
    keyed = not {Capability.PRIMARY_KEYS, Capability.FOREIGN_KEYS} & {*lacks}
    return checks + (f", FOREIGN KEY (rater, rated) REFERENCES {RATING} (judge, track_id)" if keyed else "")


def _kin_columns(integer: str, lacks: Collection[Capability]) -> Iterator[str]:
    keyed = Capability.PRIMARY_KEYS not in lacks
    yield from (f"{column} {integer}" for column in KIN_KEYS)
    if keyed:
        yield from (f"UNIQUE ({', '.join(columns)})" for columns in KIN_UNIQUE)
        yield from (f"CHECK ({condition})" for condition in KIN_CHECKS)
    if keyed and Capability.FOREIGN_KEYS not in lacks:
        yield from (f"FOREIGN KEY ({column}) REFERENCES {table} (id)" for column, table in KIN_KEYS.items())


def _long_columns() -> Iterator[str]:
    yield from (f"id AS one_of_the_columns_of_a_long_view_{number}" for number in range(1, WIDTH + 1))
    yield f"id AS {LAST}"


def _track_reference(lacks: Collection[Capability]) -> str:
    return "" if Capability.FOREIGN_KEYS in lacks else f", FOREIGN KEY (track_id) REFERENCES {TRACK} (id)"


def stored_name(dialect: Dialect, name: str) -> str:
    """Return a name of the sample as the database stores it. Names that need quotes are kept as they are."""
    return name.upper() if dialect.folding == "upper" and name not in QUOTED else name


def as_written(dialect: Dialect, table: Table) -> Table:
    """Return a relation with its names as in the sample, if the inspector reported them as stored.

    Where names are stored in upper case, a name reported in lower case becomes upper case and matches nothing.
    """

    def name(told: str) -> str:
        return told if told in QUOTED else told.swapcase()

    def names(told: Iterable[str]) -> tuple[str, ...]:
        return tuple(map(name, told))

    def relation(told: Relation) -> Relation:
        return replace(told, name=name(told.name))

    if stored_name(dialect, TRACK) == TRACK:
        return table
    return replace(
        table,
        relation=relation(table.relation),
        columns=tuple(replace(column, name=name(column.name)) for column in table.columns),
        constraints=tuple(replace(constraint, columns=names(constraint.columns)) for constraint in table.constraints),
        foreign_keys=tuple(
            replace(
                key,
                relation=relation(key.relation),
                columns=names(key.columns),
                references=relation(key.references),
                referenced_columns=names(key.referenced_columns),
            )
            for key in table.foreign_keys
        ),
        indexes=tuple(replace(index, name=name(index.name), parts=names(index.parts)) for index in table.indexes),
    )


def literal(text: str) -> str:
    """Return a text as SQL."""
    return "'" + text.replace("'", "''") + "'"


def with_from(sql: str, clause: str) -> str:
    """Return a statement in which `clause` follows each SELECT without FROM, for engines that need one."""
    if not clause:
        return sql
    parts: list[str] = []
    open_selects: list[bool] = []  # for each depth of parentheses, whether a SELECT still has no FROM
    copied, bare = 0, False
    for token in [*tokens(sql, Lexicon()), None]:
        word = token.text.upper() if token else ")"
        ends = word in {")", "UNION", "ORDER"}
        if ends and bare:
            end = token.start if token else len(sql)
            parts += (sql[copied:end].rstrip(), f" {clause} ")
            copied, bare = end, False
        if word == "(":
            open_selects.append(bare)
            bare = False
        elif word == ")" and open_selects:
            bare = open_selects.pop()
        elif word in {"SELECT", "FROM"}:
            bare = word == "SELECT"
    return "".join((*parts, sql[copied:])).rstrip()


def numbers(count: int) -> str:
    """Return a query of `count` rows, whose column `n` counts from 1. It is portable and uses no function."""
    return "SELECT 1 AS n" + "".join(f" UNION ALL SELECT {n}" for n in range(2, count + 1))
