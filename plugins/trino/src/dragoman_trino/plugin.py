"""The plugin: describes Trino and creates its executor and inspector."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import Any

from dragoman import Capability, Database, Dialect, DialectPlugin, Executor, Inspector, hookimpl

from dragoman_trino.client import Client
from dragoman_trino.confining import MASKS, confine
from dragoman_trino.executor import TrinoExecutor
from dragoman_trino.gate import read
from dragoman_trino.inspector import TrinoInspector
from dragoman_trino.lexicon import LEXICON
from dragoman_trino.options import OPEN_OPTIONS, Options
from dragoman_trino.reserved import RESERVED
from dragoman_trino.rules import rules

CAPABILITIES = frozenset(Capability) - {Capability.PRIMARY_KEYS, Capability.FOREIGN_KEYS, Capability.INDEXES}


def _rewrite(tree: Any) -> Any:
    from dragoman_trino.rewrite import rewrite  # sqlglot is slow to import, and few queries need it

    return rewrite(tree)


class CatalogReader(TrinoInspector):
    """The inspector, with connections of its own: callers' slow queries must not delay reading the catalog."""

    def __init__(self, database: Database) -> None:
        self.client = Client(database)
        super().__init__(database, self.client)

    async def aclose(self) -> None:
        """Close the connections."""
        await self.client.aclose()


class TrinoPlugin(DialectPlugin):
    """Trino 476 and later, read only."""

    demo_on_request = True
    dialect = Dialect(
        name="trino",
        contract=1,
        sqlglot="trino",
        driver="trino",
        capabilities=CAPABILITIES,
        lexicon=LEXICON,
        rules=rules,
        options=Options,
        open_options=OPEN_OPTIONS,
        placeholder="?",
        folding="insensitive",
        reserved=RESERVED,
        full_view_names=True,
        implicit_columns=frozenset({"$path", "$partition", "$bucket", "$file_size", "$file_modified_time", "$row_id"}),
        foreign_tables=False,
        probes=False,  # a query costs a place in a queue and a plan, and may cost money
        rewrite=_rewrite,
        read=read,
        confine=confine,
        masks=MASKS,
        identities=frozenset({"user"}),
    )

    @hookimpl
    def executor(self, database: Database) -> Executor:
        """Return the executor."""
        return TrinoExecutor(database)

    @hookimpl
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """Return the inspector, with connections of its own."""
        return CatalogReader(database)

    def demo(self, folder: Path) -> Sequence[Database]:
        """Start the embedded server over the data of TPC-H."""
        from dragoman_trino.demo import build

        return build()


plugin = TrinoPlugin()
