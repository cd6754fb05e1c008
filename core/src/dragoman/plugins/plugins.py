"""The plugins of one process behind one typed front: a method per hook, routed to the owner of a database."""

from __future__ import annotations

import dataclasses
import difflib
import importlib.metadata
import logging
from collections import defaultdict
from collections.abc import Mapping, Sequence
from importlib.metadata import EntryPoint
from typing import Any, Final, cast

import pluggy

from dragoman.dialect import Capability, Dialect, Executor, Inspector, Validator
from dragoman.errors import ConfigurationError, DialectError, DragomanError
from dragoman.hookspecs import PROJECT, DialectPlugin, PolicyPlugin
from dragoman.model import Database
from dragoman.plugins.loading import broken, distribution_of, driver_of, load_dialect, load_policy, version_of
from dragoman.plugins.options import checked_options

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

    def __init__(self, entry_points: Mapping[str, Sequence[EntryPoint]]) -> None:
        self._entry_points = entry_points
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(DialectPlugin)
        self._loaded: dict[str, DialectPlugin] = {}
        self._failed: dict[str, DialectError] = {}
        self._policies: list[str] = []

    @classmethod
    def discover(cls) -> Plugins:
        """Scan the installed entry points. Raises `DialectError` when a policy does not load: none may be missed."""
        found: dict[str, list[EntryPoint]] = defaultdict(list)
        for entry_point in importlib.metadata.entry_points(group=DIALECTS):
            found[entry_point.name].append(entry_point)
        plugins = cls(found)
        for entry_point in importlib.metadata.entry_points(group=POLICIES):
            plugins._register(load_policy(entry_point), entry_point)
            plugins._policies.append(f"{entry_point.name} of {distribution_of(entry_point)}")
        return plugins

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the installed dialects, broken ones included."""
        return tuple(sorted(self._entry_points))

    def load(self, name: str) -> DialectPlugin:
        """Return the plugin of a dialect, loading it at first. Raises `DialectError`, the same one each time."""
        if name in self._failed:
            raise self._failed[name].with_traceback(None)
        if name not in self._loaded:
            try:
                self._loaded[name] = self._load(name)
            except DialectError as error:
                self._failed[name] = error
                raise
        return self._loaded[name]

    def _load(self, name: str) -> DialectPlugin:
        entry_point = self._claim(name)
        plugin = load_dialect(entry_point)
        own = self._entry_points.get(plugin.dialect.name, ())
        if distribution_of(entry_point) not in map(distribution_of, own):
            raise broken(entry_point, f"it calls itself {plugin.dialect.name!r}, a name it does not register.")
        if not any(plugin is other for other in self._loaded.values()):  # one plugin may have two names
            self._register(plugin, entry_point)
        return plugin

    def _claim(self, name: str) -> EntryPoint:
        claims = {distribution_of(entry_point): entry_point for entry_point in self._entry_points.get(name, ())}
        if not claims:
            raise _missing(name, self.names)
        if len(claims) > 1:
            raise DialectError(
                f"The dialect {name!r} is claimed by several distributions: {' and '.join(sorted(claims))}.",
                suggestion=f"Uninstall all but one of them, for instance `pip uninstall {sorted(claims)[-1]}`.",
            )
        return next(iter(claims.values()))

    def _register(self, plugin: DialectPlugin | PolicyPlugin, entry_point: EntryPoint) -> None:
        try:
            self._manager.register(plugin)
        except (pluggy.PluginValidationError, ValueError) as error:
            if self._manager.is_registered(plugin):  # as far as pluggy came: those hooks would be called
                self._manager.unregister(plugin)
            raise broken(entry_point, f"its hooks do not fit ({type(error).__name__}).") from None

    def installed(self) -> list[Installed]:
        """Every installed dialect, loaded to see whether it works; a broken one says why."""
        return [self._installed(name) for name in self.names]

    def _installed(self, name: str) -> Installed:
        distributions = {distribution_of(point): version_of(point) for point in self._entry_points[name]}
        known = Installed(name, ", ".join(distributions), ", ".join(distributions.values()))
        try:
            dialect = self.load(name).dialect
        except DialectError as error:
            return dataclasses.replace(known, status="broken", error=f"{error.message} {error.suggestion}")
        capabilities = tuple(sorted(capability.name.lower() for capability in dialect.capabilities))
        return dataclasses.replace(known, driver=driver_of(dialect), capabilities=capabilities)

    def prepare(self, database: Database) -> Database:
        """Return `database` as its dialect takes it: its options checked, defaults filled in.

        Raises `DialectError` when the dialect does not load, `ConfigurationError` for an option it does not take and
        for a dialect without read-only sessions that was not accepted as such.
        """
        dialect = self.load(database.dialect).dialect
        _check_enforced(dialect, database)
        return dataclasses.replace(database, options=checked_options(dialect.options, database))

    def executor(self, database: Database) -> Executor:
        """Return the owner's executor for `database`, wrapped by the policies."""
        return cast(Executor, self._ask("executor", Executor, database=database))

    def inspector(self, database: Database, executor: Executor) -> Inspector:
        """Return the owner's inspector for `database`, wrapped by the policies."""
        return cast(Inspector, self._ask("inspector", Inspector, database=database, executor=executor))

    def validators(self, database: Database) -> list[Validator]:
        """Return the owner's validators for `database`, then the policies'."""
        validators: list[Validator] = []
        for answer in self._ask("validators", list, database=database):  # last registered first: the owner
            given: Any = answer if isinstance(answer, Sequence) else (answer,)  # pyright: ignore[reportUnknownVariableType]
            for validator in given:
                if not isinstance(validator, Validator):
                    raise self._fault("validators", database, f"gave a {type(validator).__name__}, not a Validator")
                validators.append(validator)
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
            raise self._fault(hook, database, f"returned {type(answer).__name__}, not an {kind.__name__}")
        return answer

    def _fault(self, hook: str, database: Database, what: str) -> DialectError:
        """The error of a hook that misbehaves; with policies about, any of them may be the one."""
        owner = distribution_of(self._entry_points[database.dialect][0])
        candidates = " or ".join([f"{database.dialect!r} of {owner}", *self._policies])
        return DialectError(
            f"The hook {hook} of {candidates} {what}.",
            suggestion=f"Upgrade {owner} or report it to its authors; the log has the details.",
        )


def _missing(name: str, installed: Sequence[str]) -> DialectError:
    near = difflib.get_close_matches(name, installed, n=1)
    meant = f"Did you mean {near[0]!r}? Otherwise install" if near else "Install"
    return DialectError(
        f"No plugin for the dialect {name!r} is installed; installed are: {', '.join(installed) or 'none'}.",
        suggestion=f"{meant} it, for instance `pip install dragoman-{name}`.",
    )


def _check_enforced(dialect: Dialect, database: Database) -> None:
    if Capability.READ_ONLY_SESSION in dialect.capabilities or database.accept_unenforced:
        return
    raise ConfigurationError(
        f"The dialect {dialect.name!r} has no read-only sessions: only our own checks would keep writes from the"
        f" database {database.name!r}.",
        suggestion=f"Set databases.{database.name}.accept_unenforced = true, with a role that may only read.",
    )
