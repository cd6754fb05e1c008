"""The hooks: what a plugin subclasses. Hooks are synchronous and narrow; what they return does the asynchronous work.

A dialect plugin subclasses `DialectPlugin` and marks each hook with `@hookimpl`; type checkers then check it, and a
missing hook cannot be instantiated. A policy plugin subclasses `PolicyPlugin` and overrides what it needs.
"""

from __future__ import annotations

import abc
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import Any, ClassVar

import pluggy

from dragoman.dialect import AuditStore, Dialect, Executor, Inspector, Restrictor, Validator
from dragoman.model import Database, Principal

PROJECT = "dragoman"

hookspec = pluggy.HookspecMarker(PROJECT)
hookimpl = pluggy.HookimplMarker(PROJECT)


class DialectPlugin(abc.ABC):
    """What a dialect provides. Only the plugin that owns `database.dialect` is asked, so plugins need no guards.

    Hooks never grow parameters; `Database` grows by defaulted fields instead. What a hook is given is the owner's own,
    before any policy wraps it: a dialect may rely on what it made, and no policy can take a check away.
    """

    dialect: Dialect
    demo_on_request: ClassVar[bool] = False
    """Whether the demo costs a download or much memory, so that it is built only when it is asked for by name."""

    @hookspec(firstresult=True)
    @abc.abstractmethod
    def executor(self, database: Database) -> Executor:
        """Return the executor for `database`, not yet connected."""

    @hookspec(firstresult=True)
    @abc.abstractmethod
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """Return the inspector for `database`; it may share the executor's connections."""

    @hookspec
    def validators(self, database: Database, executor: Executor, inspector: Inspector) -> Sequence[Validator]:
        """Return further checks of statements sent to `database`, beside the core's.

        `executor` and `inspector` are what this plugin returned for it: a check may ask the database through them.
        """
        return ()

    def audit_store(self, database: Database) -> AuditStore | None:
        """Return where a database keeps the audit's records; None: this dialect keeps none. Not a hook."""
        return None

    def demo(self, folder: Path) -> Sequence[Database]:
        """Build demo databases below `folder` and return them configured; none by default. Not a hook."""
        return ()


class PolicyPlugin:
    """Sees every database, whatever its dialect: may restrict relations, wrap executors and inspectors, add validators.

    `contract`: the contract version it was written for. `options`: a dataclass of its settings, which stand in the
    configuration under `[policies.NAME]`; the core checks and builds it. What wraps should subclass `WrappedExecutor`
    or `WrappedInspector`, so that whatever it does not change goes through, later additions to the contract included.
    """

    contract: int = 1
    options: type[Any] | None = None

    def configure(self, options: Any) -> PolicyPlugin:
        """Return the policy for one gateway; `options` is an instance of the declared dataclass, or None without one.

        Called once when a gateway is made. Keep nothing of it in the module: there may be several gateways.
        """
        return self

    def restrictor(self, database: Database, principal: Principal) -> Restrictor | None:
        """Return what leaves a principal only a part of a database's relations; None: it leaves everything.

        The gateway holds callers to it in every tool, beside what roles grant: of several policies all count. Asked for
        each call, without I/O, and for every database; answers for equal principals are equal.
        """
        return None

    def values(self, database: Database, principal: Principal) -> Mapping[str, Any]:
        """Return what `$value.NAME` stands for in this policy's filters and masks: JSON values, which are bound.

        Asked for each statement that reads a restricted relation, without I/O.
        """
        return {}

    def wrap_executor(self, executor: Executor, database: Database, dialect: Dialect) -> Executor:
        """Return the executor to use instead, usually one that calls `executor`."""
        return executor

    def wrap_inspector(self, inspector: Inspector, database: Database, dialect: Dialect) -> Inspector:
        """Return the inspector to use instead, usually one that calls `inspector`."""
        return inspector

    def further_validators(self, database: Database, executor: Executor, inspector: Inspector) -> Sequence[Validator]:
        """Return further checks of statements sent to `database`, beside the core's and the dialect's.

        `executor` and `inspector` are the dialect's own, which no policy has wrapped: what a check asks of them is what
        the database tells. Their methods raise as the contract says; their time is not bounded.
        """
        return ()
