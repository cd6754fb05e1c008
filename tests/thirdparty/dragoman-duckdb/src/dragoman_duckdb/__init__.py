"""DuckDB for dragoman: a file opened read-only, cut off from every other file and from the network."""

from typing import Any

import dragoman
from dragoman import Capability, Column, Database, Executor, Inspector, Kind, hookimpl
from dragoman.sqlalchemy import STANDARD_FUNCTIONS, STANDARD_RESERVED, InformationSchemaInspector, SQLAlchemyExecutor

SEALED = {"enable_external_access": "false", "python_enable_replacements": "false", "lock_configuration": "true"}


class DuckDBExecutor(SQLAlchemyExecutor):
    failures = (
        (r'Table with name "?(?P<name>\S+?)"? does not exist', dragoman.TableNotFound),
        (r'Referenced column "(?P<name>[^"]+)" not found', dragoman.ColumnNotFound),
        (r"^(Parser|Binder|Catalog) Error", dragoman.InvalidSql),
        (r"read-only mode", dragoman.WriteDenied),
        (r"^Permission Error", dragoman.PermissionDenied),
    )

    def column(self, name: str, code: Any) -> Column:
        return Column(name, str(code).lower(), Kind("native"))

    async def interrupt(self, connection: Any) -> None:
        connection.interrupt()


class DuckDBInspector(InformationSchemaInspector):
    catalog = "current_database()"
    table_comment = "table_comment"
    column_comment = "column_comment"


class DuckDBPlugin(dragoman.DialectPlugin):
    dialect = dragoman.Dialect(
        name="duckdb",
        contract=1,
        sqlglot="duckdb",
        driver="duckdb-engine",
        capabilities=frozenset(
            {
                Capability.READ_ONLY_SESSION,
                Capability.CANCEL,
                Capability.PARAMETERS,
                Capability.PRIMARY_KEYS,
                Capability.FOREIGN_KEYS,
                Capability.COMMENTS,
                Capability.ARRAYS,
                Capability.NESTED,
            }
        ),
        rules=dragoman.Rules(functions=STANDARD_FUNCTIONS | {"map", "row"}, table_functions=frozenset({"range"})),
        folding="insensitive",
        reserved=STANDARD_RESERVED,
        default_schema="main",
    )

    @hookimpl
    def executor(self, database: Database) -> Executor:
        url = f"duckdb:///{database.folder / (database.database or '')}"
        return DuckDBExecutor(database, self.dialect, url, connect_args={"read_only": True, "config": SEALED})

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        return DuckDBInspector(database, executor)


plugin = DuckDBPlugin()
