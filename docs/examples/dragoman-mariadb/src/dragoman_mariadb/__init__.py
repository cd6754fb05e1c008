"""MariaDB for dragoman: read-only transactions, the server's own time limit, and its own text for exact values."""

import contextlib
import re
import ssl
import time
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import dragoman
from asyncmy import converters
from asyncmy.constants import FIELD_TYPE
from dragoman import (
    Capability,
    Column,
    ColumnProfile,
    Database,
    Executor,
    Inspection,
    Inspector,
    Kind,
    ProfileBudget,
    Relation,
    Request,
    Schema,
    Scope,
    Table,
    TableColumn,
    hookimpl,
    profile_columns,
)
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
# Standard functions that MariaDB lacks. A stored function could have such a name, and do what its owner may.
LACKING = """
    any_value array_agg bool_and bool_or corr covar_pop covar_samp date_part date_trunc grouping iif listagg overlay
    split_part starts_with string_agg strpos translate trunc try_cast
"""
# What needs quotes in addition to the standard's words.
RESERVED = """
    accessible add alter asensitive before bigint blob by call cascade change char character condition continue convert
    cursor databases day_hour day_microsecond day_minute day_second dec decimal declare delayed delete delete_domain_id
    describe deterministic distinctrow div do_domain_ids double drop dual each elseif enclosed escaped exists exit
    explain fetch float float4 float8 force fulltext high_priority hour_microsecond hour_minute hour_second if ignore
    ignore_domain_ids index infile inout insensitive insert int int1 int2 int3 int4 int8 integer interval iterate key
    keys kill leave linear lines load lock long longblob longtext loop low_priority master_demote_to_replica
    master_demote_to_slave master_ssl_verify_server_cert match maxvalue mediumblob mediumint mediumtext middleint
    minute_microsecond minute_second mod modifies no_write_to_binlog numeric optimize optionally out outfile over
    page_checksum parse_vcol_expr partition portion precision procedure purge range rank read read_write reads real
    recursive ref_system_id regexp release rename repeat replace require resignal restrict return returning revoke rlike
    row_number rows schemas second_microsecond sensitive separator show signal smallint spatial specific sql
    sql_big_result sql_buffer_result sql_cache sql_calc_found_rows sql_no_cache sql_small_result sqlexception sqlstate
    sqlwarning ssl starting stats_auto_recalc stats_persistent stats_sample_pages straight_join system terminated
    tinyblob tinyint tinytext trigger undo unlock unsigned update usage use utc_date utc_time utc_timestamp values
    varbinary varchar varcharacter varying while with write xor year_month zerofill
"""
SECRETS = r"(mysql|performance_schema|sys)\..*|information_schema\.(processlist|user_variables|.*_privileges)"
# Settings by which the server would cut rows, recursion, and what GROUP_CONCAT makes, and at most warn of it.
UNCUT = (
    f"sql_select_limit = {2**64 - 1}, max_recursive_iterations = {2**32 - 1}, "
    "group_concat_max_len = @@max_allowed_packet"
)
# A timestamp is a moment and shows no zone, so that it would be another one beside those of other databases.
PINNED = f"time_zone = '+00:00', {UNCUT}"
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
  ON t.constraint_schema = c.constraint_schema AND BINARY t.table_name = c.table_name
  AND t.constraint_name = c.constraint_name
LEFT JOIN information_schema.referential_constraints AS r
  ON r.constraint_schema = c.constraint_schema AND BINARY r.table_name = c.table_name
  AND r.constraint_name = c.constraint_name
{where}
ORDER BY c.table_schema, c.table_name, c.constraint_name, c.ordinal_position"""

PARTITIONS = """
SELECT MIN(table_schema), MIN(table_name), MIN(partition_expression), MIN(subpartition_expression)
FROM information_schema.partitions WHERE partition_expression IS NOT NULL
GROUP BY BINARY table_schema, BINARY table_name"""
# The sum of a hash of every row: a list of them all would be cut at group_concat_max_len.
FINGERPRINT = """
SELECT GROUP_CONCAT(told ORDER BY told) FROM (
    SELECT CONCAT(origin, COUNT(*), ':', BIT_XOR(CAST(CONV(LEFT(MD5(fact), 16), 16, 10) AS UNSIGNED))) AS told FROM (
        SELECT 'c' AS origin, table_schema AS place, CONCAT_WS('|', table_schema, table_name, ordinal_position,
            column_name, column_type, is_nullable, QUOTE(column_default), QUOTE(generation_expression),
            column_comment) AS fact
        FROM information_schema.columns
        UNION ALL SELECT 't', table_schema, CONCAT_WS('|', table_schema, table_name, table_type, table_comment)
        FROM information_schema.tables
        UNION ALL SELECT 'k', table_schema, CONCAT_WS('|', table_schema, table_name, constraint_name, column_name,
            ordinal_position, QUOTE(referenced_table_name), QUOTE(referenced_column_name))
        FROM information_schema.key_column_usage
        UNION ALL SELECT 'p', table_schema, CONCAT_WS('|', table_schema, table_name, partition_expression)
        FROM information_schema.partitions WHERE partition_expression IS NOT NULL
        UNION ALL SELECT 'v', table_schema, CONCAT_WS('|', table_schema, table_name, view_definition)
        FROM information_schema.views
    ) AS facts WHERE LOWER(place) NOT IN ({system}) GROUP BY origin
) AS sums""".format(system=", ".join(f"'{name}'" for name in sorted(SYSTEM_SCHEMAS)))
LONGEST = 64


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
        (r"^\(1290, .*--max-session-mem-used", dragoman.QueryError),
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
            f"SET sql_mode = '{MODES}', max_statement_time = {request.limits.timeout:.3f}, {PINNED}",
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

    async def tables(self, scope: Scope) -> Inspection:
        """As the base class says, and what tables are partitioned by; a partition is no table of its own here."""
        seen = await super().tables(scope)
        rows = await self.fetch(PARTITIONS)
        parts = {Relation(name, schema): _name_parts(by) for schema, name, *by in rows}
        return replace(seen, tables=tuple(_partitioned(table, parts.get(table.relation)) for table in seen.tables))

    async def profiles(
        self, tables: Sequence[Table], budget: ProfileBudget
    ) -> Mapping[Relation, tuple[ColumnProfile, ...]]:
        """Tell of the first rows of each table, where they may be read: no plain role sees the server's statistics."""
        end = time.monotonic() + budget.seconds
        found: dict[Relation, tuple[ColumnProfile, ...]] = {}
        for table in tables if budget.sample else ():
            if table.type == "view" or time.monotonic() > end:
                continue
            with contextlib.suppress(dragoman.DragomanError):  # the others are still told
                rows = await self.fetch(_sample(table, budget))
                names, whole = [column.name for column in table.columns], len(rows) <= budget.rows
                found[table.relation] = profile_columns(names, rows[: budget.rows], budget, whole=whole)
        return found

    async def fingerprint(self) -> str | None:
        """Tell a sum over columns, keys, comments, partitions and queries of views; checks may change without it."""
        return str((await self.fetch(FINGERPRINT))[0][0])


def _name_parts(by: Iterable[str | None]) -> tuple[str, ...]:
    """The expressions of partitions and subpartitions, of which either may be missing."""
    return tuple(each for each in by if each)


def _partitioned(table: Table, by: tuple[str, ...] | None) -> Table:
    return replace(table, type="partitioned table", partitioned_by=by) if by else table


def _sample(table: Table, budget: ProfileBudget) -> str:
    """A query of the first rows; texts, and what has no plain value of its own, are cut."""

    def quote(name: str) -> str:
        return "`" + name.replace("`", "``") + "`"

    def value(column: TableColumn) -> str:
        if re.match(r"((tiny|small|medium|big)?int|float|double)\b", column.type):
            return quote(column.name)
        return f"LEFT(CAST({quote(column.name)} AS CHAR), {LONGEST})"

    place = ".".join(quote(part) for part in (table.relation.schema, table.relation.name) if part)
    return f"SELECT {', '.join(map(value, table.columns))} FROM {place} LIMIT {budget.rows + 1}"


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
                Capability.STATISTICS,
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
            functions=(STANDARD_FUNCTIONS - frozenset(LACKING.split())) | frozenset(FUNCTIONS.split()),
            refused_relations=(re.compile(SECRETS, re.IGNORECASE),),
        ),
        stored_functions=True,
        options=Options,
        open_options=frozenset({"tls"}),
        quote_marks="``",
        folding="exact",
        implicit_columns=frozenset({"_rowid"}),
        reserved=STANDARD_RESERVED | frozenset(RESERVED.split()),
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
