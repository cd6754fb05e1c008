"""Calls the hooks of policies and checks their answers against the contract. A fault is reported as the policy's."""

from __future__ import annotations

import inspect
import logging
from collections.abc import Callable, Mapping, Sequence
from collections.abc import Set as AbstractSet
from dataclasses import dataclass
from typing import Any, TypeVar

from dragoman.dialect import Dialect, Executor, Inspector, Restriction, Restrictor, Validator
from dragoman.errors import DialectError, DragomanError
from dragoman.hookspecs import PolicyPlugin
from dragoman.model import Database, Principal, Table
from dragoman.plugins.mistakes import words_of
from dragoman.shapes import check
from dragoman.words import with_article

T = TypeVar("T")
_log = logging.getLogger(__name__)


@dataclass(frozen=True, slots=True)
class Restricting:
    """A policy's restrictor, whose answers are checked. `policy`: the policy's name.

    `origin`: with its distribution, for messages.

    Equal if policy and restrictor are equal.
    """

    restrictor: Restrictor
    policy: str
    origin: str

    def restrict(self, table: Table, dialect: Dialect) -> Restriction | None:
        """Return what is left of a relation; None: the policy does not restrict it. Raises `DialectError`."""
        method = f"{type(self.restrictor).__name__}.restrict"
        answer = call_hook(lambda: self.restrictor.restrict(table, dialect), method, self.origin)
        if answer is None:
            return None
        given = check_type(answer, Restriction, method, self.origin)
        return call_hook(lambda: _settle(given), method, self.origin)

    def fault(self, what: str) -> DialectError:
        """Return the error for an impossible restriction."""
        return fault(f"{type(self.restrictor).__name__}.restrict", self.origin, what)


def _settle(given: Restriction) -> Restriction:
    """Return a copy in collections of ours. Raises `Malformed` for a field of another type than declared.

    What a policy returns may be readable only once, or say something else the next time.
    """
    settled = Restriction(
        filter=given.filter,
        masks=_copy(given.masks, Mapping, dict),
        hidden_columns=_copy(given.hidden_columns, AbstractSet, frozenset),
        hidden=given.hidden,
    )
    check(Restriction, [settled], "what it returned")
    return settled


def _copy(given: Any, kind: type[Any], make: Callable[[Any], Any]) -> Any:
    return make(given) if isinstance(given, kind) else given


class Enforced:
    """Wraps what the owner of a database returns. `origin`: the policy and its distribution, for messages."""

    def __init__(self, policy: PolicyPlugin, origin: str, name: str = "") -> None:
        self._policy = policy
        self.origin = origin
        self.name = name

    @property
    def restricts(self) -> bool:
        """Whether it may restrict principals to a part of a database's relations."""
        return type(self._policy).restrictor is not PolicyPlugin.restrictor

    def restricting(self, database: Database, principal: Principal) -> Restricting | None:
        """Return the restrictor of a database for a principal, or None. Raises `DialectError`."""
        answer = call_hook(lambda: self._policy.restrictor(database, principal), "restrictor", self.origin)
        if answer is None:
            return None
        check_type(answer, Restrictor, "restrictor", self.origin)  # type: ignore[type-abstract]
        found = Restricting(answer, self.name, self.origin)
        call_hook(lambda: hash(found), "restrictor", self.origin)  # an object that is not frozen has no hash
        return found

    def value(self, name: str, database: Database, principal: Principal) -> Any:
        """Return the value of `$value.NAME`. Raises `DialectError`."""
        values = call_hook(lambda: self._policy.values(database, principal), "values", self.origin)
        check_type(values, Mapping, "values", self.origin)  # type: ignore[type-abstract]
        if name not in values:
            raise fault("values", self.origin, f"gave no {name!r}, which a filter or mask of it names")
        return values[name]

    def executor(self, inner: Executor, database: Database, dialect: Dialect) -> Executor:
        """Return the executor to use instead of `inner`. Raises `DialectError`."""
        return self._wrap("wrap_executor", self._policy.wrap_executor, inner, Executor, database, dialect)

    def inspector(self, inner: Inspector, database: Database, dialect: Dialect) -> Inspector:
        """Return the inspector to use instead of `inner`. Raises `DialectError`."""
        return self._wrap("wrap_inspector", self._policy.wrap_inspector, inner, Inspector, database, dialect)

    def validators(self, database: Database, executor: Executor, inspector: Inspector) -> Sequence[Validator]:
        """Return the policy's own validators. Raises `DialectError`."""
        method = "further_validators"
        answer = call_hook(lambda: self._policy.further_validators(database, executor, inspector), method, self.origin)
        return check_validators(answer, method, self.origin)

    def _wrap(
        self,
        method: str,
        wrap: Callable[[T, Database, Dialect], T],
        inner: T,
        kind: type[Any],
        database: Database,
        dialect: Dialect,
    ) -> T:
        answer = call_hook(lambda: wrap(inner, database, dialect), method, self.origin)
        check_type(answer, kind, method, self.origin)
        return answer


def configure_policy(policy: PolicyPlugin, options: Any, origin: str, name: str) -> Enforced:
    """Return the policy configured for one gateway. Raises `DialectError` for one that does not accept its options."""
    method = "configure"
    made = check_type(call_hook(lambda: policy.configure(options), method, origin), PolicyPlugin, method, origin)
    return Enforced(made, origin, name)


def call_hook(ask: Callable[[], T], hook: str, origin: str) -> T:
    """Return the answer of a hook. Raises `DialectError`, naming `origin`, for any exception that is not ours."""
    try:
        return ask()
    except (DragomanError, KeyboardInterrupt):
        raise
    except BaseException as error:  # a library in Rust panics with one; a hook awaits nothing that could be cancelled
        _log.error("the hook %s of %s failed", hook, origin, exc_info=error)
        raise fault(hook, origin, words_of(error) or f"raised {type(error).__name__}") from None


def check_type(answer: Any, kind: type[T], hook: str, origin: str) -> T:
    """Return `answer` if it is a `kind`. Raises `DialectError`."""
    if isinstance(answer, kind):
        return answer
    raise fault(hook, origin, f"returned {_name_type(answer)}, not {with_article(kind.__name__)}{_hint(answer)}")


def check_validators(answer: Any, hook: str, origin: str) -> list[Validator]:
    """Return `answer` as a list if it is a sequence of validators. Raises `DialectError`."""
    given: Sequence[Any] = answer if isinstance(answer, Sequence) else (answer,)  # pyright: ignore[reportUnknownVariableType]
    for validator in given:
        if not isinstance(validator, Validator):
            raise fault(hook, origin, f"gave {with_article(_name_type(validator))}, not a Validator{_hint(validator)}")
    return list(given)


def fault(hook: str, origin: str, what: str) -> DialectError:
    """Return the error of a hook, or a `Class.method`, that breaks the contract.

    `origin` ends with distribution and version.
    """
    return DialectError(
        f"{hook if '.' in hook else f'The hook {hook}'} of {origin} {what}.",
        suggestion=f"Upgrade {origin.rpartition(' of ')[2].partition(' ')[0]} or report it to its authors;"
        " the log has the details.",
    )


def _name_type(answer: Any) -> str:
    return f"the class {answer.__name__}" if isinstance(answer, type) else type(answer).__name__


def _hint(answer: Any) -> str:
    if isinstance(answer, type):
        return ": return an instance"
    if inspect.iscoroutine(answer):
        answer.close()  # nobody will await it
        return ": a hook is synchronous, only the object it returns is asynchronous"
    return ""
