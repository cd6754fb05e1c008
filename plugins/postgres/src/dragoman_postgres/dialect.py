"""The description of PostgreSQL: facts for the core, and the functions that parse and confine its statements."""

from __future__ import annotations

from typing import Any

from dragoman import Capability, Dialect

from dragoman_postgres.confining import MASKS, confine
from dragoman_postgres.lexicon import LEXICON
from dragoman_postgres.options import OPEN_OPTIONS, Options
from dragoman_postgres.reading import read
from dragoman_postgres.reports import REPORTS
from dragoman_postgres.reserved import RESERVED
from dragoman_postgres.rules import rules

CAPABILITIES = frozenset(Capability) - {Capability.CATALOGS}


def _rewrite(tree: Any) -> Any:
    from dragoman_postgres.rewrite import rewrite  # sqlglot is slow to import, and few queries need it

    return rewrite(tree)


DIALECT = Dialect(
    name="postgres",
    contract=1,
    sqlglot="postgres",
    driver="asyncpg",
    capabilities=CAPABILITIES,
    lexicon=LEXICON,
    rules=rules,
    options=Options,
    open_options=OPEN_OPTIONS,
    placeholder="$1",
    folding="lower",
    ascii_folding=True,
    reserved=RESERVED,
    implicit_columns=frozenset({"ctid", "xmin", "xmax", "cmin", "cmax", "tableoid"}),
    default_schema="public",
    search_path=True,
    foreign_tables=False,  # the gate asks the catalog for them, and for views that read them
    rewrite=_rewrite,
    read=read,
    confine=confine,
    masks=MASKS,
    reports=REPORTS,
    identities=frozenset({"role", "session"}),
)
