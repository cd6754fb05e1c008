"""Turns an entry point into a plugin that keeps the contract, or raises a `DialectError` with the reason."""

from __future__ import annotations

import dataclasses
import importlib
import importlib.metadata
import inspect
import logging
import typing
from collections.abc import Iterator
from importlib.metadata import EntryPoint
from typing import Any, TypeVar

from dragoman.dialect import CONTRACT, Dialect
from dragoman.errors import DialectError
from dragoman.hookspecs import PROJECT, DialectPlugin, PolicyPlugin
from dragoman.plugins.mistakes import check_dialect, place_of, words_of
from dragoman.shapes import Malformed
from dragoman.words import nearest, with_article

_log = logging.getLogger(__name__)
PluginT = TypeVar("PluginT", DialectPlugin, PolicyPlugin)

HOOKS = {
    hook: frozenset(inspect.signature(getattr(DialectPlugin, hook)).parameters) - {"self"}
    for hook in ("executor", "inspector", "validators")
}
"""The hooks, and the parameters that each may take."""


def load_dialect(entry_point: EntryPoint) -> DialectPlugin:
    """Import a dialect plugin and check everything that can be checked without a database."""
    plugin = _instance(_import(entry_point), DialectPlugin, entry_point)  # type: ignore[type-abstract]
    dialect = getattr(plugin, "dialect", None)
    if not isinstance(dialect, Dialect):
        raise unusable(entry_point, "its `dialect` is not a dragoman.Dialect.")
    _check_contract(dialect.contract, entry_point)
    _check_declared_options(dialect.options, entry_point)
    try:
        check_dialect(dialect)
    except Malformed as error:
        raise unusable(entry_point, f"it {error}.") from None
    for hook in HOOKS:
        if hook in _list_overridden(plugin) and _specname(getattr(plugin, hook), hook) is None:
            # pluggy would not see it, and the hook would do nothing.
            raise unusable(entry_point, f"its hook {hook} is not marked with @hookimpl.")
    _check_hooks(plugin, entry_point)
    return plugin


def load_policy(entry_point: EntryPoint) -> PolicyPlugin:
    """Import a policy plugin and check it."""
    policy = _instance(_import(entry_point), PolicyPlugin, entry_point)
    _check_contract(policy.contract, entry_point)
    _check_declared_options(policy.options, entry_point)
    for hook, _ in _find_hooks(policy):
        raise unusable(
            entry_point,
            f"it marks {hook!r} with @hookimpl, which is not a hook of a policy: override restrictor, wrap_executor,"
            " wrap_inspector or further_validators.",
        )
    return policy


def unusable(entry_point: EntryPoint, why: str, remedy: str = "") -> DialectError:
    """Return the error for an unusable plugin, with the command that most likely fixes it."""
    distribution = distribution_of(entry_point)
    return DialectError(
        f"The plugin {entry_point.name!r} of {distribution} {version_of(entry_point)} is broken: {why}",
        suggestion=remedy or f"Upgrade or reinstall it: `pip install --upgrade {distribution}`.",
    )


def origin_of(entry_point: EntryPoint) -> str:
    """Return the name and distribution of a plugin, for messages: 'odd' of dragoman-odd 1.0."""
    return f"{entry_point.name!r} of {distribution_of(entry_point)} {version_of(entry_point)}".rstrip()


def distribution_of(entry_point: EntryPoint) -> str:
    """Return the name of the distribution that an entry point belongs to."""
    return entry_point.dist.name if entry_point.dist else "an unknown distribution"


def version_of(entry_point: EntryPoint) -> str:
    """Return that distribution's version."""
    return entry_point.dist.version if entry_point.dist else ""


def driver_of(dialect: Dialect) -> str:
    """Return the name and version of a dialect's driver, as far as they are known."""
    try:
        return f"{dialect.driver} {importlib.metadata.version(dialect.driver)}" if dialect.driver else ""
    except importlib.metadata.PackageNotFoundError:
        return dialect.driver


def _import(entry_point: EntryPoint) -> Any:
    try:
        importlib.import_module(entry_point.module)
    except ImportError as error:
        raise _explain_import(entry_point, error) from None
    except (Exception, SystemExit) as error:
        raise _explain_failure(entry_point, error) from None
    try:
        return entry_point.load()
    except AttributeError:
        what = f"its entry point names {entry_point.attr!r}, which the module {entry_point.module} does not have."
        raise unusable(entry_point, what) from None


def _explain_import(entry_point: EntryPoint, error: ImportError) -> DialectError:
    words = words_of(error)
    if words and (error.name or "").split(".")[0] == "dragoman":
        return unusable(entry_point, f"it {words}; this dragoman does not have it.", "Upgrade dragoman, or both.")
    if isinstance(error, ModuleNotFoundError):
        return unusable(
            entry_point,
            f"it needs the module {error.name!r}, which is not installed.",
            f"Reinstall it with its dependencies: `pip install --force-reinstall {distribution_of(entry_point)}`.",
        )
    return _explain_failure(entry_point, error)


def _explain_failure(entry_point: EntryPoint, error: BaseException) -> DialectError:
    _log.error("the plugin %s of %s does not import", entry_point.name, distribution_of(entry_point), exc_info=error)
    if words := words_of(error):
        return unusable(entry_point, f"it {words}.")
    place = place_of(error, entry_point.module)
    return unusable(entry_point, f"importing it raised {type(error).__name__}{place}; the log has the details.")


def _instance(plugin: Any, kind: type[PluginT], entry_point: EntryPoint) -> PluginT:
    if isinstance(plugin, type):
        raise unusable(entry_point, "its entry point names a class; it must name an instance.")
    if not isinstance(plugin, kind):
        raise unusable(entry_point, f"its entry point names a {type(plugin).__name__}, not a {kind.__name__}.")
    return plugin


def _check_contract(contract: Any, entry_point: EntryPoint) -> None:
    if contract == CONTRACT and type(contract) is int:
        return
    if type(contract) is not int:
        raise unusable(
            entry_point,
            f"it gave its contract as {with_article(type(contract).__name__)}, not as an int: contract={CONTRACT}.",
        )
    older = contract < CONTRACT
    raise unusable(
        entry_point,
        f"it is written for contract version {contract}, this dragoman has {CONTRACT}.",
        f"Upgrade {distribution_of(entry_point) if older else 'dragoman'}.",
    )


def _check_declared_options(options: Any, entry_point: EntryPoint) -> None:
    try:
        if options is not None:
            dataclasses.fields(options)
            typing.get_type_hints(options)
    except Exception:  # not a dataclass, or an annotation names something that does not exist at run time
        raise unusable(entry_point, "its `options` is not a dataclass whose types can be read.") from None


def _check_hooks(plugin: object, entry_point: EntryPoint) -> None:
    for hook, function in _find_hooks(plugin):
        if hook not in HOOKS:
            near = nearest(hook, HOOKS)
            hint = f"did you mean {near[0]}?" if near else f"there are {', '.join(HOOKS)}."
            raise unusable(entry_point, f"it marks {hook!r} with @hookimpl, which is not a hook: {hint}")
        if inspect.iscoroutinefunction(function):
            raise unusable(
                entry_point,
                f"its hook {hook} is async; hooks are synchronous, and the objects they return are asynchronous.",
            )
        surplus = inspect.signature(function).parameters.keys() - HOOKS[hook] - {"self"}
        if surplus:
            raise unusable(
                entry_point,
                f"its hook {hook} takes {', '.join(sorted(surplus))}; it may take {', '.join(sorted(HOOKS[hook]))}.",
            )


def _find_hooks(plugin: object) -> Iterator[tuple[str, Any]]:
    for name in dir(plugin):
        function = inspect.getattr_static(plugin, name)
        hook = _specname(function, name)
        if hook is not None:
            yield hook, function


def _specname(function: Any, name: str) -> str | None:
    """Return the hook that a function is marked as, or None."""
    mark = getattr(function, f"{PROJECT}_impl", None)
    return (mark["specname"] or name) if mark else None


def _list_overridden(plugin: DialectPlugin) -> set[str]:
    classes = type(plugin).__mro__
    return {name for kind in classes[: classes.index(DialectPlugin)] for name in vars(kind)}
