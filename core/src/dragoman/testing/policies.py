"""The conformance kit for policies that hide something: two databases that differ only in that must answer alike."""

from __future__ import annotations

import json
import re
import sqlite3
from collections.abc import AsyncGenerator, Mapping, Sequence
from contextlib import AsyncExitStack
from dataclasses import replace
from pathlib import Path
from typing import Any, ClassVar, Final

import pytest

from dragoman.config import Configuration
from dragoman.gateway import Gateway
from dragoman.model import Claims, Database, Principal, Table
from dragoman.plugins import Plugins
from dragoman.testing.attacks import FAMILIES, Attack, list_attacks
from dragoman.testing.tiers import required
from dragoman.tools import Toolbox

SAMPLE: Final = (
    "CREATE TABLE customer (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL, name TEXT NOT NULL, email TEXT, ssn TEXT)",
    "CREATE TABLE orders (id INTEGER PRIMARY KEY, tenant TEXT NOT NULL,"
    " customer_id INTEGER REFERENCES customer (id), total INTEGER, note TEXT)",
    "CREATE TABLE country (code TEXT PRIMARY KEY, name TEXT)",
    "CREATE INDEX customer_email ON customer (email)",
    "CREATE VIEW contact AS SELECT id, name, email FROM customer",
    "CREATE VIEW spent AS SELECT customer_id, sum(total) AS total FROM orders GROUP BY customer_id",
    "CREATE VIEW place AS SELECT name FROM country",
    "INSERT INTO customer VALUES (1, 'a', 'Ada', 'ada@one', '111'), (2, 'b', 'Bob', 'bob@one', '222'),"
    " (3, 'a', 'Cem', NULL, '333')",
    "INSERT INTO orders VALUES (1, 'a', 1, 10, '{}'), (2, 'b', 2, 20, 'second'), (3, 'a', 3, 30, NULL)",
    "INSERT INTO country VALUES ('de', 'Germany'), ('fr', 'France')",
)
"""What the twins have in common. The visible part must be of one kind for every engine: names without quotes."""
_BROKEN: Final = frozenset({"INTERNAL_ERROR", "DIALECT_ERROR", "CONFIGURATION_ERROR"})
_TIMED: Final = ("elapsed_ms", "actual_time_ms", "notices", "expires", "kept")
_MEASURED: Final = re.compile(r"\d+\.\d+\s?\w*|\d+(?=\s?(?:[mnu]?s|µs|[kMG]?B)\b)")
"""What a plan with actual times measures: another number at each run."""
_SHOWN: Final = 600


class Twins:
    """Two databases, of which one has more that is hidden, each behind a gateway; `tables`: what is in them.

    `volatile`: patterns of what differs by itself in answers.
    """

    def __init__(self, boxes: Sequence[Toolbox], tables: Sequence[Table], volatile: Sequence[str] = ()) -> None:
        self.boxes = boxes
        self.tables = tables
        self._volatile = re.compile("|".join(volatile) or r"(?!)")

    async def ask(self, attack: Attack, principal: Principal) -> list[Any]:
        """Return what both answer, without what depends on time; no order was asked for."""
        return [await self._answer(box, attack, principal) for box in self.boxes]

    async def leak(self, attack: Attack, principal: Principal) -> str | None:
        """Return how an attack tells what is hidden, if it does. Raises `AssertionError` for one that breaks it."""
        one, other = await self.ask(attack, principal)
        codes = {answer["error"]["code"] for answer in (one, other) if "error" in answer}
        assert not codes & _BROKEN, f"{attack.tool} {attack.arguments} broke it: {one}"
        told = f"{attack.tool} {attack.arguments}\n  answers {one}\n  or {other}"
        return None if one == other else told[:_SHOWN]

    async def _answer(self, toolbox: Toolbox, attack: Attack, principal: Principal) -> Any:
        text = (await toolbox.call(attack.tool, attack.arguments, principal=principal)).text
        # Twins on one server stand in schemas of different names.
        schema = toolbox.gateway.database().config.schema
        answer: Any = json.loads(self._volatile.sub("#", text.replace(schema, "twin") if schema else text))
        for timed in _TIMED:
            answer.pop(timed, None)
        if attack.arguments.get("analyze") and "plan" in answer:
            answer["plan"] = _MEASURED.sub("#", str(answer["plan"]))
        if isinstance(answer.get("rows"), list):
            answer["rows"].sort(key=json.dumps)
        return answer


class PolicyConformance:
    """Every way to what a policy hides, over its real entry point, a real database and every tool.

    `volatile`: patterns of what differs by itself in answers, as numbers of tables do in plans.
    `policy`: its name, that of the entry point; `options`: what would stand under `[policies.NAME]`. `caller`: from
    whom it hides something; `hidden`: statements that change only what that caller must not see. `neighbour`: a caller
    who sees another part, and asks first. `exempt`: one from whom nothing is hidden. `sample`: the statements that
    build the database. `queries`: further attacks of your own. `failing`: conditions on a column `{c}` that fail for
    some values, in the engine's SQL.

    The database is SQLite's, which holds callers to filters and masks; override `build` for another, or `databases`
    where a server must be asked first. Twins may stand in two schemas of one server: give each as `Database.schema`.
    """

    pytestmark = pytest.mark.anyio

    policy: ClassVar[str]
    options: ClassVar[Mapping[str, Any]] = {}
    caller: ClassVar[Principal] = Principal("ann", subject="ann", claims=Claims({"tenant": "a"}))
    hidden: ClassVar[Sequence[str]]
    neighbour: ClassVar[Principal | None] = None
    exempt: ClassVar[Principal | None] = None
    sample: ClassVar[Sequence[str]] = SAMPLE
    queries: ClassVar[Sequence[str]] = ()
    failing: ClassVar[Sequence[str]] = (
        "json({c}) IS NOT NULL",
        "abs(CASE WHEN {c} > 'm' THEN -9223372036854775808 ELSE 1 END) > 0",
    )
    volatile: ClassVar[Sequence[str]] = ()
    deadline: ClassVar[float] = 90.0

    @classmethod
    def build(cls, folder: Path, statements: Sequence[str]) -> Database:
        """Build a database by statements, in an empty folder, and return it configured."""
        connection = sqlite3.connect(folder / "twin.db")
        for statement in statements:
            connection.execute(statement)
        connection.commit()
        connection.close()
        return Database(name="twin", dialect="sqlite", database="twin.db", folder=folder)

    @pytest.fixture(scope="class")
    @classmethod
    def anyio_backend(cls) -> str:
        """The kit runs on asyncio, as drivers do."""
        return "asyncio"

    @pytest.fixture(scope="class")
    @classmethod
    def databases(cls, tmp_path_factory: pytest.TempPathFactory) -> list[Database]:
        """The twins' databases."""
        plain, more = tuple(cls.sample), (*cls.sample, *cls.hidden)
        return [cls.build(tmp_path_factory.mktemp("twin"), statements) for statements in (plain, more)]

    @pytest.fixture(scope="class")
    @classmethod
    async def open_twins(cls, databases: list[Database], anyio_backend: str) -> AsyncGenerator[Twins]:
        """The twins without any policy."""
        async with AsyncExitStack() as stack:
            boxes = [await _open(stack, Gateway(_configure(each), Plugins.without_policies())) for each in databases]
            snapshot = await boxes[0].gateway.database().catalog.snapshot()
            yield Twins(boxes, snapshot.tables, cls.volatile)

    @pytest.fixture(scope="class")
    @classmethod
    async def twins(cls, databases: list[Database], open_twins: Twins, anyio_backend: str) -> AsyncGenerator[Twins]:
        """The twins with the policies that are installed."""
        async with AsyncExitStack() as stack:
            configured = [replace(_configure(each), policies={cls.policy: cls.options}) for each in databases]
            boxes = [await _open(stack, Gateway(each, Plugins.discover())) for each in configured]
            twins = Twins(boxes, open_twins.tables, cls.volatile)
            if cls.neighbour is not None:
                for attack in cls.attacks(twins, "plain"):
                    await twins.ask(attack, cls.neighbour)
            yield twins

    @classmethod
    def attacks(cls, twins: Twins, family: str | None = None) -> list[Attack]:
        """Return the attacks of a family, or all, on what is in the twins."""
        dialect = twins.boxes[0].gateway.database().dialect
        return [
            each
            for each in list_attacks(twins.tables, dialect, cls.failing, cls.queries)
            if family in (None, each.family)
        ]

    # The cases

    @required
    async def test_what_is_hidden_shows_without_the_policy(self, open_twins: Twins) -> None:
        found = [await open_twins.ask(each, self.caller) for each in self.attacks(open_twins, "plain")]
        assert any(one != other for one, other in found), (
            "`hidden` changes nothing that a query could show: let it change rows and columns that the policy hides."
        )

    @required
    @pytest.mark.parametrize("family", FAMILIES)
    async def test_what_is_hidden_changes_no_answer(self, twins: Twins, family: str) -> None:
        await self._compare(twins, family, self.caller)

    @required
    @pytest.mark.parametrize("family", FAMILIES)
    async def test_who_says_nothing_of_himself_sees_no_more(self, twins: Twins, family: str) -> None:
        await self._compare(twins, family, Principal("stranger"))

    @required
    async def test_something_is_left(self, twins: Twins) -> None:
        found = [(await twins.ask(each, self.caller))[0] for each in self.attacks(twins, "plain")]
        codes = {answer["error"]["code"] for answer in found if "error" in answer}
        assert any("error" not in answer for answer in found), (
            f"The caller may ask nothing at all ({', '.join(sorted(codes))}): a policy that refuses everybody hides"
            " nothing worth testing. Is `caller` one of those it knows?"
        )

    @required
    async def test_equal_callers_share_what_is_made_for_them(self, twins: Twins) -> None:
        gateway = twins.boxes[0].gateway
        again = replace(self.caller, client="another program")
        assert (
            gateway.for_principal(self.caller).database().catalog is gateway.for_principal(again).database().catalog
        ), (
            "Restrictors for equal callers differ, so that a catalog is made for every call: make the restrictor a"
            " frozen dataclass."
        )

    @required
    async def test_from_an_exempt_caller_nothing_is_hidden(self, twins: Twins) -> None:
        if self.exempt is None:
            pytest.skip("nobody is exempt")
        found = [await twins.ask(each, self.exempt) for each in self.attacks(twins, "plain")]
        assert any(one != other for one, other in found), "The exempt caller does not see what is hidden from others."

    async def _compare(self, twins: Twins, family: str, principal: Principal) -> None:
        leaks = [leak for each in self.attacks(twins, family) if (leak := await twins.leak(each, principal))]
        assert not leaks, (
            f"{len(leaks)} calls tell {principal.name} what is hidden: their answers differ where only that does."
            f" The first: {leaks[0]}"
        )


def _configure(database: Database) -> Configuration:
    return Configuration(databases={database.name: database})


async def _open(stack: AsyncExitStack, gateway: Gateway) -> Toolbox:
    return Toolbox(await stack.enter_async_context(gateway.run()), profile="full")
