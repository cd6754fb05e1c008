"""The conformance kit for policies that hide data: two databases that differ only in hidden data must answer alike."""

from __future__ import annotations

import asyncio
import json
import re
import sqlite3
from collections.abc import AsyncGenerator, Iterator, Mapping, Sequence
from contextlib import AsyncExitStack
from copy import copy
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
"""The common part of the twins. Its visible part must suit every engine, so it has only names without quotes."""
_BROKEN: Final = frozenset({"INTERNAL_ERROR", "DIALECT_ERROR", "CONFIGURATION_ERROR"})
_TIMED: Final = ("elapsed_ms", "actual_time_ms", "notices", "expires", "kept")
_MEASURED: Final = re.compile(r"\d+\.\d+\s?\w*|\d+(?=\s?(?:[mnu]?s|µs|[kMG]?B)\b)")
"""Measured values in a plan with actual times. They differ at each run."""
_SHOWN: Final = 600


class Twins:
    """Two databases, of which one has more hidden data, each behind a gateway. `tables`: their relations.

    `volatile`: patterns of text that differs by itself in answers.
    """

    def __init__(self, boxes: Sequence[Toolbox], tables: Sequence[Table], volatile: Sequence[str] = ()) -> None:
        self.boxes = boxes
        self.tables = tables
        self._volatile = re.compile("|".join(volatile) or r"(?!)")

    async def reopen(self, stack: AsyncExitStack) -> Twins:
        """Return the same databases behind gateways that nobody has asked yet. The stack closes them."""
        fresh = copy(self)
        fresh.boxes = [
            await _open(stack, Gateway(each.gateway.configuration, each.gateway.plugins)) for each in self.boxes
        ]
        return fresh

    async def ask(self, attack: Attack, principal: Principal) -> list[Any]:
        """Return the answers of both, without what depends on time, and regardless of order."""
        return [await self._answer(box, attack, principal) for box in self.boxes]

    async def leak(self, attack: Attack, principal: Principal) -> str | None:
        """Return how an attack reveals hidden data, or None. Raises `AssertionError` for one that breaks the policy."""
        one, other = await self.ask(attack, principal)
        codes = {answer["error"]["code"] for answer in (one, other) if "error" in answer}
        assert not codes & _BROKEN, f"{attack.tool} {attack.arguments} broke it: {one}"
        told = f"{attack.tool} {attack.arguments}\n  answers {one}\n  or {other}"
        return None if one == other else told[:_SHOWN]

    async def _answer(self, toolbox: Toolbox, attack: Attack, principal: Principal) -> Any:
        text = (await toolbox.call(attack.tool, attack.arguments, principal=principal)).text
        # Twins on one server are in schemas with different names.
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
    """Tries every way to the data a policy hides, with its real entry point, a real database and every tool.

    - `policy`: the name of its entry point.
    - `options`: its options, as under `[policies.NAME]`.
    - `caller`: a caller from whom it hides something.
    - `hidden`: statements that change only data that this caller must not see.
    - `neighbour`: a caller who sees another part, and asks first.
    - `exempt`: a caller from whom nothing is hidden.
    - `sample`: the statements that build the database.
    - `queries`: further attacks of your own.
    - `failing`: conditions on a column `{c}` that fail for some values, in the engine's SQL.
    - `volatile`: patterns of text that differs by itself in answers, such as numbers of tables in plans.

    The database is SQLite, which can confine callers to filters and masks. Override `build` for another, or `databases`
    for a server. Twins may be in two schemas of one server: set `Database.schema` of each.
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
        """Build a database with statements, in an empty folder, and return its configuration."""
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
        """The twins with the installed policies."""
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
        """Return the attacks of a family, or all attacks, on the data of the twins."""
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
    async def test_who_only_resembles_others_sees_no_more(self, twins: Twins) -> None:
        for each in self._look_alikes():
            await self._compare(twins, "plain", each)

    @required
    async def test_callers_at_once_see_each_their_own(self, twins: Twins) -> None:
        if self.neighbour is None:
            pytest.skip("there is no neighbour")
        callers = (self.caller, self.neighbour, self.exempt or Principal("stranger"))
        async with AsyncExitStack() as stack:
            # Gateways that have just opened read the catalog for each caller, while the others ask.
            fresh = await twins.reopen(stack)
            for attack in self.attacks(twins, "plain"):
                together = await asyncio.gather(*(fresh.ask(attack, each) for each in callers))
                alone = [await twins.ask(attack, each) for each in callers]
                assert together == alone, (
                    f"Callers who ask {attack.arguments} at the same time are answered otherwise than each alone: keep"
                    " nothing of a caller in the policy. Every hook gets the principal."
                )

    @required
    async def test_something_is_left(self, twins: Twins) -> None:
        found = [(await twins.ask(each, self.caller))[0] for each in self.attacks(twins, "plain")]
        codes = {answer["error"]["code"] for answer in found if "error" in answer}
        assert any("error" not in answer for answer in found), (
            f"The caller may query nothing at all ({', '.join(sorted(codes))}): a policy that refuses everybody hides"
            " nothing worth testing. Check that the policy knows `caller`."
        )

    @required
    async def test_equal_callers_share_what_is_made_for_them(self, twins: Twins) -> None:
        gateway = twins.boxes[0].gateway
        again = replace(self.caller, client="another program")
        assert (
            gateway.for_principal(self.caller).database().catalog is gateway.for_principal(again).database().catalog
        ), (
            "Restrictors for equal callers differ, so every call would need a catalog of its "
            "own: make the restrictor a frozen dataclass."
        )

    @required
    async def test_from_an_exempt_caller_nothing_is_hidden(self, twins: Twins) -> None:
        if self.exempt is None:
            pytest.skip("nobody is exempt")
        found = [await twins.ask(each, self.exempt) for each in self.attacks(twins, "plain")]
        assert any(one != other for one, other in found), "The exempt caller does not see what is hidden from others."

    def _look_alikes(self) -> Iterator[Principal]:
        """Yield callers with another's display name, or with a group whose name contains that of a group."""
        for known in (self.caller, self.neighbour, self.exempt):
            if known is not None:
                yield Principal(known.name, subject=f"another {known.name}")
        for group in self.exempt.groups if self.exempt else ():
            yield Principal("stranger", groups=frozenset({f"x{group}", f"{group}x", f"x-{group}-x"}))

    async def _compare(self, twins: Twins, family: str, principal: Principal) -> None:
        leaks = [leak for each in self.attacks(twins, family) if (leak := await twins.leak(each, principal))]
        assert not leaks, (
            f"{len(leaks)} calls reveal hidden data to {principal.name}: their answers differ, "
            f"and only the hidden data differs. The first: {leaks[0]}"
        )


def _configure(database: Database) -> Configuration:
    return Configuration(databases={database.name: database})


async def _open(stack: AsyncExitStack, gateway: Gateway) -> Toolbox:
    return Toolbox(await stack.enter_async_context(gateway.run()), profile="full")
