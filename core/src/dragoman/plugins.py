"""Find, load, isolate and route plugins. The only toucher of entry points and of pluggy's manager.

A plugin that is missing, broken, claimed twice or of a wrong version is a `DialectError` that names the distribution
and the remedy; the other databases keep working. Dialects load when a database needs them, policies all at the start.
"""

from __future__ import annotations

import dataclasses
import difflib
import importlib.metadata
import logging
import typing
from collections import defaultdict
from collections.abc import Mapping, Sequence
from typing import Any, Final, cast

import pluggy

from dragoman.dialect import CONTRACT, Dialect, Executor, Inspector, Validator
from dragoman.errors import ConfigurationError, DialectError, DragomanError
from dragoman.hookspecs import PROJECT, DialectPlugin, PolicyPlugin
from dragoman.model import Database

DIALECTS: Final = "dragoman.dialects"
POLICIES: Final = "dragoman.policies"
_log = logging.getLogger(__name__)


@dataclasses.dataclass(frozen=True, slots=True)
class Installed:
    """An installed dialect as `dragoman dialects` shows it. `status`: ok or broken; `error`: why, and what to do."""

    name: str
    distribution: str
    version: str
    driver: str = ""
    capabilities: tuple[str, ...] = ()
    status: str = "ok"
    error: str = ""


class Plugins:
    """The plugins of this process. `discover()` scans entry points once and loads only the policies."""

    def __init__(self, entry_points: Mapping[str, Sequence[importlib.metadata.EntryPoint]]) -> None:
        self._entry_points = entry_points
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(DialectPlugin)
        self._loaded: dict[str, DialectPlugin] = {}
        self._failed: dict[str, DialectError] = {}

    @classmethod
    def discover(cls) -> Plugins:
        """Scan the installed entry points. Raises `DialectError` when a policy does not load: none may be missed."""
        found: dict[str, list[importlib.metadata.EntryPoint]] = defaultdict(list)
        for entry_point in importlib.metadata.entry_points(group=DIALECTS):
            found[entry_point.name].append(entry_point)
        plugins = cls(found)
        for entry_point in importlib.metadata.entry_points(group=POLICIES):
            plugins.register_policy(_policy(entry_point), entry_point.name)
        return plugins

    def register_policy(self, policy: PolicyPlugin, name: str) -> None:
        """Let `policy` see every database opened from now on."""
        self._manager.register(policy, name=f"policy:{name}")

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the installed dialects, broken ones included."""
        return tuple(sorted(self._entry_points))

    def load(self, name: str) -> DialectPlugin:
        """Return the plugin of a dialect, loading it at first. Raises `DialectError`, the same one each time."""
        if name in self._failed:
            raise self._failed[name]
        if name not in self._loaded:
            try:
                self._loaded[name] = self._load(name)
            except DialectError as error:
                self._failed[name] = error
                raise
        return self._loaded[name]

    def _load(self, name: str) -> DialectPlugin:
        entry_point = self._claim(name)
        plugin = _checked(_imported(entry_point), entry_point)
        if plugin not in self._loaded.values():
            try:
                self._manager.register(plugin, name=f"dialect:{name}")
                self._manager.check_pending()
            except (pluggy.PluginValidationError, ValueError) as error:
                raise _broken(entry_point, f"its hooks do not fit: {error}") from None
        return plugin

    def _claim(self, name: str) -> importlib.metadata.EntryPoint:
        claims = {_distribution(entry_point): entry_point for entry_point in self._entry_points.get(name, ())}
        if not claims:
            raise _missing(name, self.names)
        if len(claims) > 1:
            raise DialectError(
                f"The dialect {name!r} is claimed by two distributions: {' and '.join(sorted(claims))}.",
                suggestion=f"Uninstall one of them, for instance `pip uninstall {sorted(claims)[-1]}`.",
            )
        return next(iter(claims.values()))

    def installed(self) -> list[Installed]:
        """Every installed dialect, loaded to see whether it works; a broken one says why."""
        return [self._installed(name) for name in self.names]

    def _installed(self, name: str) -> Installed:
        distributions = {_distribution(point): _version(point) for point in self._entry_points[name]}
        known = Installed(name, ", ".join(sorted(distributions)), ", ".join(distributions.values()))
        try:
            dialect = self.load(name).dialect
        except DialectError as error:
            return dataclasses.replace(known, status="broken", error=f"{error.message} {error.suggestion}")
        capabilities = tuple(sorted(capability.name.lower() for capability in dialect.capabilities))
        return dataclasses.replace(known, driver=_driver(dialect), capabilities=capabilities)

    def prepare(self, database: Database) -> Database:
        """Return `database` with its options checked against the dataclass its dialect declares.

        Raises `DialectError` when the dialect does not load, `ConfigurationError` for an unknown or ill-typed option.
        """
        options = self.load(database.dialect).dialect.options
        return dataclasses.replace(database, options=_checked_options(options, database))

    def executor(self, database: Database) -> Executor:
        """Return the owner's executor for `database`, wrapped by the policies."""
        return cast(Executor, self._ask("executor", Executor, database=database))

    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """Return the owner's inspector for `database`, wrapped by the policies."""
        return cast(Inspector, self._ask("inspector", Inspector, database=database, executor=executor))

    def validators(self, database: Database) -> list[Validator]:
        """Return the owner's validators for `database`, then the policies'."""
        answers: list[Sequence[Validator]] = self._ask("validators", list, database=database)
        validators = [validator for answer in answers for validator in answer]  # last registered first: the owner
        for validator in validators:
            if not isinstance(validator, Validator):  # pyright: ignore[reportUnnecessaryIsInstance]
                raise self._fault("validators", database, f"returned {type(validator).__name__}, not a Validator")
        return validators

    def _ask(self, hook: str, kind: type[Any], **values: Any) -> Any:
        database: Database = values["database"]
        owner = self.load(database.dialect)
        others = [plugin for plugin in self._loaded.values() if plugin is not owner]
        try:
            answer = self._manager.subset_hook_caller(hook, remove_plugins=others)(**values)
        except DragomanError:
            raise
        except Exception as error:
            _log.exception("hook %s failed for database %s", hook, database.name)
            raise self._fault(hook, database, f"raised {type(error).__name__}") from None
        if not isinstance(answer, kind):
            raise self._fault(hook, database, f"returned {type(answer).__name__} instead of {kind.__name__}")
        return answer

    def _fault(self, hook: str, database: Database, what: str) -> DialectError:
        names = " or ".join({_distribution(point) for point in self._entry_points[database.dialect]})
        return DialectError(
            f"The hook {hook} of the dialect {database.dialect!r} ({names}), or of a policy, {what}.",
            suggestion=f"Upgrade {names} or report it to its authors; the log has the details.",
        )


def _distribution(entry_point: importlib.metadata.EntryPoint) -> str:
    return entry_point.dist.name if entry_point.dist else "an unknown distribution"


def _version(entry_point: importlib.metadata.EntryPoint) -> str:
    return entry_point.dist.version if entry_point.dist else ""


def _driver(dialect: Dialect) -> str:
    try:
        return f"{dialect.driver} {importlib.metadata.version(dialect.driver)}" if dialect.driver else ""
    except importlib.metadata.PackageNotFoundError:
        return dialect.driver


def _missing(name: str, installed: Sequence[str]) -> DialectError:
    near = difflib.get_close_matches(name, installed, n=1)
    meant = f"Did you mean {near[0]!r}? Otherwise install" if near else "Install"
    return DialectError(
        f"No plugin for the dialect {name!r} is installed; installed are: {', '.join(installed) or 'none'}.",
        suggestion=f"{meant} it, for instance `pip install dragoman-{name}`.",
    )


def _broken(entry_point: importlib.metadata.EntryPoint, why: str, remedy: str = "") -> DialectError:
    distribution = _distribution(entry_point)
    return DialectError(
        f"The plugin {entry_point.name!r} of {distribution} {_version(entry_point)} is broken: {why}",
        suggestion=remedy or f"Upgrade or reinstall it: `pip install --upgrade {distribution}`.",
    )


def _imported(entry_point: importlib.metadata.EntryPoint) -> Any:
    try:
        return entry_point.load()
    except ModuleNotFoundError as error:
        raise _broken(
            entry_point,
            f"it needs the module {error.name!r}, which is not installed.",
            f"Reinstall it with what it needs: `pip install --force-reinstall {_distribution(entry_point)}`.",
        ) from None
    except Exception as error:
        _log.exception("the plugin %s of %s does not import", entry_point.name, _distribution(entry_point))
        raise _broken(entry_point, f"importing it raised {type(error).__name__}.") from None


def _checked(plugin: Any, entry_point: importlib.metadata.EntryPoint) -> DialectPlugin:
    if isinstance(plugin, type):
        raise _broken(entry_point, "its entry point names a class; it must name an instance.")
    if not isinstance(plugin, DialectPlugin):
        raise _broken(entry_point, f"its entry point names a {type(plugin).__name__}, not a DialectPlugin.")
    dialect = getattr(plugin, "dialect", None)
    if not isinstance(dialect, Dialect):
        raise _broken(entry_point, "its `dialect` is not a dragoman.Dialect.")
    if dialect.contract != CONTRACT:
        older = dialect.contract < CONTRACT
        raise _broken(
            entry_point,
            f"it is written for contract version {dialect.contract}, this dragoman has {CONTRACT}.",
            f"Upgrade {_distribution(entry_point) if older else 'dragoman'}.",
        )
    _check_hooks(plugin, entry_point)
    return plugin


def _check_hooks(plugin: DialectPlugin, entry_point: importlib.metadata.EntryPoint) -> None:
    """Refuse a hook without its mark: pluggy would not see it, and the dialect would do nothing."""
    overridden = (hook for hook in ("executor", "inspector", "validators") if hook in _defined(plugin))
    for hook in overridden:
        if not hasattr(getattr(plugin, hook), f"{PROJECT}_impl"):
            raise _broken(entry_point, f"its hook {hook} is not marked with @hookimpl.")


def _defined(plugin: DialectPlugin) -> set[str]:
    classes = type(plugin).__mro__
    return {name for kind in classes[: classes.index(DialectPlugin)] for name in vars(kind)}


def _policy(entry_point: importlib.metadata.EntryPoint) -> PolicyPlugin:
    policy = _imported(entry_point)
    if not isinstance(policy, PolicyPlugin):
        raise _broken(entry_point, f"its entry point names a {type(policy).__name__}, not a PolicyPlugin.")
    return policy


def _checked_options(declared: type[Any] | None, database: Database) -> dict[str, Any]:
    fields = {field.name: field for field in dataclasses.fields(declared)} if declared else {}
    for key in database.options:
        if key not in fields:
            raise _unknown_option(key, sorted(fields), database)
    types = typing.get_type_hints(declared) if declared else {}
    return {key: _converted(value, types[key], key, database) for key, value in database.options.items()}


def _unknown_option(key: str, known: Sequence[str], database: Database) -> ConfigurationError:
    near = difflib.get_close_matches(key, known, n=1)
    return ConfigurationError(
        f"databases.{database.name}.options: unknown option {key!r} for the dialect {database.dialect!r}.",
        suggestion=f"Did you mean {near[0]!r}?" if near else f"Known options: {', '.join(known) or 'none'}.",
    )


def _converted(value: Any, wanted: Any, key: str, database: Database) -> Any:
    """An option's value in its declared type; a URL brings texts, whose value no message repeats."""
    import msgspec  # only when there are options

    try:
        return msgspec.convert(value, wanted, strict=not isinstance(value, str))
    except msgspec.ValidationError as error:
        raise ConfigurationError(
            f"databases.{database.name}.options.{key}: {str(error).split(' - at')[0]}.",
            suggestion=f"Give {key} as {getattr(wanted, '__name__', wanted)}.",
        ) from None
