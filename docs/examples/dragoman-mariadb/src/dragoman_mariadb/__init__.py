"""MariaDB for dragoman: read-only transactions, the server's own time limit, and its own text for exact values."""

import re
import ssl
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import dragoman
from asyncmy import converters
from asyncmy.constants import FIELD_TYPE
from dragoman import Capability, Column, Database, Executor, Inspector, Kind, Request, Schema, hookimpl
from dragoman.sqlalchemy import (
    STANDARD_FUNCTIONS,
    STANDARD_RESERVED,
    SYSTEM_SCHEMAS,
    InformationSchemaInspector,
    SQLAlchemyExecutor,
    url_for,
)

FUNCTIONS = """
    adddate addtime bin bit_and bit_count bit_or bit_xor char conv convert convert_tz crc32 curdate current_date
    curtime date_add date_format date_sub datediff dayname dayofmonth dayofweek dayofyear elt field find_in_set format
    from_days from_unixtime group_concat hex inet6_ntoa inet_aton inet_ntoa instr interval isnull json_array
    json_arrayagg json_contains json_contains_path json_extract json_keys json_length json_object json_objectagg
    json_query json_type json_unquote json_valid json_value last_day lcase locate makedate maketime md5 microsecond mid
    monthname nvl oct ord period_diff quote rand regexp_instr regexp_replace regexp_substr sec_to_time sha1 sha2
    soundex space std str_to_date strcmp subdate substring_index subtime sysdate time time_format time_to_sec timediff
    timestamp timestampadd timestampdiff to_days to_seconds ucase unhex unix_timestamp utc_date utc_time utc_timestamp
    weekday weekofyear yearweek
"""
SECRETS = r"(mysql|performance_schema|sys)\..*|information_schema\.(processlist|user_variables|.*_privileges)"
# Pinned: modes change what quotes, || and a backslash mean, and the guard reads them as these.
MODES = "STRICT_TRANS_TABLES,ERROR_FOR_DIVISION_BY_ZERO"

NUMBERS = {
    FIELD_TYPE.TINY: Column("", "tinyint", Kind("integer")),
    FIELD_TYPE.SHORT: Column("", "smallint", Kind("integer")),
    FIELD_TYPE.INT24: Column("", "mediumint", Kind("integer")),
    FIELD_TYPE.LONG: Column("", "int", Kind("integer")),
    FIELD_TYPE.LONGLONG: Column("", "bigint", Kind("integer")),
    FIELD_TYPE.YEAR: Column("", "year", Kind("integer")),
    FIELD_TYPE.FLOAT: Column("", "float", Kind("float")),
    FIELD_TYPE.DOUBLE: Column("", "double", Kind("float")),
}
TYPES = NUMBERS | {
    FIELD_TYPE.NEWDECIMAL: Column("", "decimal", Kind("text")),
    FIELD_TYPE.DATE: Column("", "date", Kind("text")),
    FIELD_TYPE.TIME: Column("", "time", Kind("text")),
    FIELD_TYPE.DATETIME: Column("", "datetime", Kind("text")),
    FIELD_TYPE.TIMESTAMP: Column("", "timestamp", Kind("text")),
    FIELD_TYPE.BIT: Column("", "bit", Kind("binary")),
    FIELD_TYPE.JSON: Column("", "json", Kind("json")),
    FIELD_TYPE.GEOMETRY: Column("", "geometry", Kind("binary")),
    FIELD_TYPE.STRING: Column("", "char"),
    FIELD_TYPE.BLOB: Column("", "text"),
}
# Without the driver's decoders every value but a number is the server's own text: zero dates and long times survive.
DRIVER: Any = converters  # its stub leaves out what its dictionaries hold
CONVERSIONS = {key: how for key, how in DRIVER.conversions.items() if not isinstance(key, int) or key in NUMBERS}

KEYS = """
SELECT c.table_schema, c.table_name, c.constraint_name, t.constraint_type, c.column_name,
       c.referenced_table_schema, c.referenced_table_name, c.referenced_column_name, r.update_rule, r.delete_rule
FROM information_schema.key_column_usage AS c
JOIN information_schema.table_constraints AS t
  ON t.constraint_schema = c.constraint_schema AND t.table_name = c.table_name AND t.constraint_name = c.constraint_name
LEFT JOIN information_schema.referential_constraints AS r
  ON r.constraint_schema = c.constraint_schema AND r.table_name = c.table_name AND r.constraint_name = c.constraint_name
ORDER BY c.table_schema, c.table_name, c.constraint_name, c.ordinal_position"""


@dataclass(frozen=True)
class Options:
    """What `databases.NAME.options` may hold. `tls`: encrypt, and verify the server's certificate and name."""

    tls: bool = False


class MariaDBExecutor(SQLAlchemyExecutor):
    """One statement in a read-only transaction, which the server itself ends in time."""

    failures = (
        (r"^\(1146, .*Table '(?:[^'.]+\.)?(?P<name>[^'.]+)'", dragoman.TableNotFound),
        (r"^\(1054, .*Unknown column '(?:[^'.]+\.)*(?P<name>[^'.]+)'", dragoman.ColumnNotFound),
        (r"^\(1049,", dragoman.SchemaNotFound),
        (r"^\((1064|1295|1305|1630),", dragoman.InvalidSql),
        (r"^\((1290|1792),", dragoman.WriteDenied),
        (r"^\((1044|1142|1143|1227|1370),", dragoman.PermissionDenied),
        (r"^\(1969,", dragoman.QueryTimeout),
        (r"^\(1317,", dragoman.QueryCancelled),
        (r"^\((1053|2006|2013),", dragoman.ConnectionFailed),
        (r"^\(\d+,", dragoman.QueryError),
    )

    def prelude(self, request: Request) -> Sequence[str]:
        """Pin what a session may have otherwise, and let the server refuse writes and keep the deadline.

        START TRANSACTION READ ONLY refuses changes of rows only; DDL commits it and runs, unless the session is too.
        """
        return (
            f"SET sql_mode = '{MODES}', max_statement_time = {request.limits.timeout:.3f}",
            "SET SESSION TRANSACTION READ ONLY",
            "START TRANSACTION READ ONLY",
        )

    def bind(self, request: Request, paramstyle: str) -> tuple[str, tuple[Any, ...]]:
        """Have the server prepare the text: the driver would send two statements, EXECUTE IMMEDIATE refuses them."""
        text, values = super().bind(request, "qmark")
        places = ", ".join("%s" for _ in values or ())
        return f"EXECUTE IMMEDIATE %s{f' USING {places}' if places else ''}", (text, *(values or ()))

    def column(self, name: str, code: Any) -> Column:
        """Tell a type by the protocol's number; where that stands for text and bytes alike, any."""
        known = TYPES.get(code, Column("", "varchar"))
        return Column(name, known.type, known.kind)

    async def interrupt(self, connection: Any) -> None:
        """Kill the statement from beside: a server does not notice that nobody waits for it."""
        await self.beside(f"KILL QUERY {int(connection.thread_id())}")


class MariaDBInspector(InformationSchemaInspector):
    """The standard's views, and what MariaDB's have beside."""

    column_type = "column_type"
    keys_query = KEYS
    table_comment = "table_comment"
    column_comment = "column_comment"

    async def schemas(self) -> Sequence[Schema]:
        """Tell databases, which MariaDB calls schemas too; names are looked for in the one we are connected to."""
        rows = await self.fetch("SELECT schema_name FROM information_schema.schemata")
        return [
            Schema(
                name=name,
                system=name.lower() in SYSTEM_SCHEMAS,
                search_order=0 if name == self.database.database else None,
            )
            for (name,) in rows
        ]


class MariaDBPlugin(dragoman.DialectPlugin):
    """What dragoman asks for when a MariaDB database is opened."""

    dialect = dragoman.Dialect(
        name="mariadb",
        contract=1,
        sqlglot="mysql",
        driver="asyncmy",
        capabilities=frozenset(
            {
                Capability.READ_ONLY_SESSION,
                Capability.CANCEL,
                Capability.PARAMETERS,
                Capability.PRIMARY_KEYS,
                Capability.FOREIGN_KEYS,
                Capability.COMMENTS,
            }
        ),
        lexicon=dragoman.Lexicon(
            identifier_quotes="`",
            backslash_escapes=True,
            hash_comments=True,
            spaced_comments=True,
            dollar_names=True,
        ),
        rules=dragoman.Rules(
            functions=STANDARD_FUNCTIONS | frozenset(FUNCTIONS.split()),
            refused_relations=(re.compile(SECRETS, re.IGNORECASE),),
        ),
        options=Options,
        quote_marks="``",
        folding="exact",
        reserved=STANDARD_RESERVED | {"key", "keys", "rank", "system", "usage"},
    )

    @hookimpl
    def executor(self, database: Database) -> Executor:
        """As the base class says."""
        url = url_for(database, "mysql+asyncmy", {"charset": "utf8mb4"})
        arguments: dict[str, Any] = {"conv": CONVERSIONS, "connect_timeout": 10}
        if database.options.get("tls"):
            arguments["ssl"] = ssl.create_default_context()
        return MariaDBExecutor(database, self.dialect, url, connect_args=arguments)

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """As the base class says."""
        return MariaDBInspector(database, executor)


plugin = MariaDBPlugin()
