"""The hooks that a plugin implements. Hooks are synchronous and narrow.

The objects they return do the asynchronous work.

A dialect plugin subclasses `DialectPlugin` and marks each hook with `@hookimpl`. Type checkers then check it, and a
class that lacks a hook cannot be instantiated. A policy plugin subclasses `PolicyPlugin` and overrides what it needs.
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
    """What a dialect provides. Only the plugin that owns `database.dialect` is called, so plugins need no guards.

    Hooks never grow parameters; `Database` grows by fields with defaults instead. A hook gets what this plugin made
    itself, before any policy wraps it, so a dialect may rely on it, and no policy can remove a check.
    """

    dialect: Dialect
    demo_on_request: ClassVar[bool] = False
    """Whether the demo costs a download or much memory. If so, it is built only when it is named."""

    @hookspec(firstresult=True)
    @abc.abstractmethod
    def executor(self, database: Database) -> Executor:
        """Return the executor for `database`, not connected yet."""

    @hookspec(firstresult=True)
    @abc.abstractmethod
    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """Return the inspector for `database`. It may share the executor's connections."""

    @hookspec
    def validators(self, database: Database, executor: Executor, inspector: Inspector) -> Sequence[Validator]:
        """Return checks of statements sent to `database`, beyond the core's.

        `executor` and `inspector` are those that this plugin returned for it. A check may query the database through
        them.
        """
        return ()

    def audit_store(self, database: Database) -> AuditStore | None:
        """Return the database's store for audit records; None if this dialect has none. Not a hook."""
        return None

    def demo(self, folder: Path) -> Sequence[Database]:
        """Build demo databases below `folder` and return their configuration. None by default. Not a hook."""
        return ()


class PolicyPlugin:
    """Sees every database, whatever its dialect.

    May restrict relations, wrap executors and inspectors, and add validators.

    - `contract`: the contract version it was written for.
    - `options`: a dataclass of its settings, which stand in the configuration under `[policies.NAME]`. The core checks
      and builds it.

    Wrappers should subclass `WrappedExecutor` or `WrappedInspector`. They pass on whatever is not overridden, later
    additions to the contract included.
    """

    contract: int = 1
    options: type[Any] | None = None

    def configure(self, options: Any) -> PolicyPlugin:
        """Return the policy for one gateway.

        `options` is an instance of the declared dataclass, or None if none is declared.

        Called once for each gateway. Store nothing in the module: there may be several gateways.
        """
        return self

    def restrictor(self, database: Database, principal: Principal) -> Restrictor | None:
        """Return what decides the part of a database's relations that a principal has. None: the principal has all.

        The gateway applies it in every tool, beside the grants of roles; if there are several policies, all of them
        apply. Called for each call and for every database, without I/O. Answers for equal principals must be equal.
        """
        return None

    def values(self, database: Database, principal: Principal) -> Mapping[str, Any]:
        """Return the values of `$value.NAME` in this policy's filters and masks: JSON values, which are bound.

        Called for each statement that reads a restricted relation, without I/O.
        """
        return {}

    def wrap_executor(self, executor: Executor, database: Database, dialect: Dialect) -> Executor:
        """Return the executor to use instead, usually one that calls `executor`."""
        return executor

    def wrap_inspector(self, inspector: Inspector, database: Database, dialect: Dialect) -> Inspector:
        """Return the inspector to use instead, usually one that calls `inspector`."""
        return inspector

    def further_validators(self, database: Database, executor: Executor, inspector: Inspector) -> Sequence[Validator]:
        """Return checks of statements sent to `database`, beyond the core's and the dialect's.

        `executor` and `inspector` are the dialect's own, which no policy has wrapped, so a check gets what the database
        itself reports. Their methods raise as the contract says; their time is not bounded.
        """
        return ()
