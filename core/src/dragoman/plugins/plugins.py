"""The plugins of one process behind one typed interface: a method per hook, routed to the owner of a database."""

from __future__ import annotations

import dataclasses
import importlib.metadata
import logging
import re
from collections import defaultdict
from collections.abc import Iterable, Mapping, Sequence
from importlib.metadata import EntryPoint
from types import FrameType, MappingProxyType
from typing import Any, Final, Literal

import pluggy

from dragoman.config import ALIASES
from dragoman.dialect import AuditStore, Capability, Dialect, Executor, Inspector, Validator
from dragoman.errors import ConfigurationError, DialectError
from dragoman.hookspecs import PROJECT, DialectPlugin
from dragoman.model import Database, Principal
from dragoman.plugins.loading import (
    distribution_of,
    driver_of,
    load_dialect,
    load_policy,
    origin_of,
    unusable,
    version_of,
)
from dragoman.plugins.options import check_options, policy_options
from dragoman.plugins.owned import OwnedExecutor, OwnedInspector, Parts, speaks_for_values
from dragoman.plugins.policies import (
    Enforced,
    Restricting,
    call_hook,
    check_type,
    check_validators,
    configure_policy,
)
from dragoman.words import display, nearest

DIALECTS: Final = "dragoman.dialects"
POLICIES: Final = "dragoman.policies"
_log = logging.getLogger(__name__)
_OURS: Final = re.compile(r"""dragoman-([a-z]+)\W.*extra == ['"]all['"]""")
_NONE: Final[Mapping[str, Sequence[EntryPoint]]] = MappingProxyType({})
_NO_OPTIONS: Final[Mapping[str, Mapping[str, Any]]] = MappingProxyType({})


@dataclasses.dataclass(frozen=True, slots=True)
class Installed:
    """An installed plugin, as `dragoman dialects` shows it. `status`: ok or broken.

    `error`: the reason and the remedy.
    """

    name: str
    distribution: str
    version: str
    driver: str = ""
    capabilities: tuple[str, ...] = ()
    status: str = "ok"
    error: str = ""
    kind: Literal["dialect", "policy"] = "dialect"


class Plugins:
    """The plugins of this process. `discover()` scans entry points once and loads none."""

    def __init__(
        self, entry_points: Mapping[str, Sequence[EntryPoint]], policies: Mapping[str, Sequence[EntryPoint]] = _NONE
    ) -> None:
        self._entry_points = entry_points
        self._policies = policies
        self._manager = pluggy.PluginManager(PROJECT)
        self._manager.add_hookspecs(DialectPlugin)
        self._enforced: list[Enforced] = []
        self._loaded: dict[str, DialectPlugin] = {}
        self._failed: dict[str, DialectError] = {}
        self._modules: dict[str, str] = {}
        self._origins: dict[str, str] = {}

    @classmethod
    def discover(cls) -> Plugins:
        """Scan the installed entry points."""
        installed = importlib.metadata.entry_points()  # reads every distribution, whichever group is asked for
        return cls(_by_name(installed.select(group=DIALECTS)), _by_name(installed.select(group=POLICIES)))

    @classmethod
    def without_policies(cls) -> Plugins:
        """Scan only the installed dialects, to see what policies remove."""
        return cls(_by_name(importlib.metadata.entry_points(group=DIALECTS)))

    def enforce(self, options: Mapping[str, Mapping[str, Any]] = _NO_OPTIONS) -> None:
        """Load every installed policy, with its options by the policy's name. Called once, before a database is opened.

        No policy may be left out: raises `DialectError` for one that does not load, `ConfigurationError` for wrong
        options and for options of a policy that is not installed.
        """
        for name in options:
            if name not in self._policies:
                raise _no_policy(name, tuple(self._policies))
        for name, claims in sorted(self._policies.items()):
            entry_point = _only_claim(f"policy {name!r}", claims)
            policy = load_policy(entry_point)
            given = policy_options(policy.options, name, options.get(name, {}))
            self._modules[_package(type(policy))] = origin_of(entry_point)
            self._enforced.append(configure_policy(policy, given, origin_of(entry_point), name))

    @property
    def restrict(self) -> bool:
        """Whether any policy may restrict principals to a part of a database's relations."""
        return any(policy.restricts for policy in self._enforced)

    def restricting(self, database: Database, principal: Principal) -> tuple[Restricting, ...]:
        """Return the policies' restrictions of a database for a principal. Raises `DialectError`."""
        found = (policy.restricting(database, principal) for policy in self._enforced if policy.restricts)
        return tuple(each for each in found if each is not None)

    def value(self, policy: str, name: str, database: Database, principal: Principal) -> Any:
        """Return the value of `$value.NAME` in the filters and masks of a policy. Raises `DialectError`."""
        enforced = next(each for each in self._enforced if each.name == policy)
        return enforced.value(name, database, principal)

    @property
    def names(self) -> tuple[str, ...]:
        """The names of the installed dialects, including broken ones."""
        return tuple(sorted(self._entry_points))

    @property
    def policies(self) -> tuple[str, ...]:
        """The names of the installed policies, including broken ones."""
        return tuple(sorted(self._policies))

    def load(self, name: str) -> DialectPlugin:
        """Return the plugin of a dialect. Loads it at the first call. Raises `DialectError`, the same one each time."""
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
        plugin = _load_plugin(entry_point)
        own = self._entry_points.get(plugin.dialect.name, ())
        if distribution_of(entry_point) not in map(distribution_of, own):
            raise unusable(
                entry_point, f"its dialect is named {plugin.dialect.name!r}, a name that it does not register."
            )
        if not any(plugin is other for other in self._loaded.values()):  # one plugin may have two names
            self._register(plugin, entry_point)
            self._modules[_package(type(plugin))] = self._origins[name] = origin_of(entry_point)
        return plugin

    def _claim(self, name: str) -> EntryPoint:
        if name not in self._entry_points:
            raise _missing(name, self.names)
        claims = self._entry_points[name]
        _refuse_rivals(name, claims)
        return _only_claim(f"dialect {name!r}", claims)

    def origin(self, name: str) -> str:
        """Return whose dialect this is, in words: 'odd' of dragoman-odd 1.0. Read once: that takes a millisecond."""
        if name not in self._origins:
            self._origins[name] = origin_of(self._entry_points[name][0])
        return self._origins[name]

    def owner(self, kind: type[Any]) -> str | None:
        """Return the plugin whose package defines a class."""
        return self._modules.get(_package(kind))

    def culprit(self, frames: Iterable[FrameType]) -> tuple[str, str] | None:
        """Return the first plugin whose code runs in `frames`, and the function's name."""
        for frame in frames:
            own: object = frame.f_locals.get("self")
            packages = (frame.f_globals.get("__name__", "").partition(".")[0], _package(type(own)))
            origin = next((self._modules[package] for package in packages if package in self._modules), None)
            if origin is not None:
                return origin, frame.f_code.co_qualname.rpartition("<locals>.")[2]
        return None

    def _register(self, plugin: DialectPlugin, entry_point: EntryPoint) -> None:
        try:
            self._manager.register(plugin)
        except (pluggy.PluginValidationError, ValueError) as error:
            # pluggy may have failed halfway, and would call the hooks that it registered
            if self._manager.is_registered(plugin):
                self._manager.unregister(plugin)
            raise unusable(entry_point, f"its hooks do not fit ({type(error).__name__}).") from None

    def list_installed(self) -> list[Installed]:
        """Return every installed dialect, then every policy.

        Loads each to see whether it works; a broken one has the reason.
        """
        dialects = [self._describe_dialect(name) for name in self.names]
        return dialects + [_describe_policy(name, self._policies[name]) for name in sorted(self._policies)]

    def _describe_dialect(self, name: str) -> Installed:
        known = _report_conflict(name, self._entry_points[name])
        try:
            dialect = self.load(name).dialect
        except DialectError as error:
            return _report_broken(known, error)
        capabilities = tuple(sorted(capability.name.lower() for capability in dialect.capabilities))
        return dataclasses.replace(known, driver=driver_of(dialect), capabilities=capabilities)

    def prepare(self, database: Database) -> Database:
        """Return `database` as its dialect takes it: options checked, defaults filled in.

        Raises `DialectError` if the dialect does not load. Raises `ConfigurationError` for an unknown option, and for a
        dialect without read-only sessions that the configuration does not accept.
        """
        dialect = self.load(database.dialect).dialect
        _check_enforced(dialect, database)
        return dataclasses.replace(database, options=check_options(dialect, database))

    def audit_store(self, database: Database) -> AuditStore:
        """Return a database's store for audit records. Raises `DialectError`, `ConfigurationError`."""
        store = self.load(database.dialect).audit_store(self.prepare(database))
        if store is None:
            raise ConfigurationError(
                f"audit.url: {database.dialect} cannot keep the audit.", suggestion="Use sqlite or postgres."
            )
        return store

    def open(self, database: Database, own: Executor | None = None) -> Parts:
        """Return the objects that serve `database`: those of the dialect, and what policies add.

        `own`: an executor that the owner made for it before, to be used again. Every hook gets what the owner returned,
        so no policy stands between a dialect and its own checks. Raises `DialectError` for a plugin that breaks the
        contract.
        """
        made: Executor = own or self._ask("executor", Executor, database=database)
        executor = made
        inspector: Inspector = self._ask("inspector", Inspector, database=database, executor=executor)
        own_validators = self._own_validators(database, executor, inspector)
        validators = list(own_validators)
        for policy in self._enforced:
            validators += policy.validators(database, executor, inspector)
        if not self._enforced:
            return Parts(executor, inspector, made, inspector, own_validators, validators, ())
        owned = OwnedInspector(inspector), OwnedExecutor(executor)
        inspector, executor = owned
        vetoed, dialect = False, self.load(database.dialect).dialect
        for policy in self._enforced:
            before = inspector
            inspector = policy.inspector(inspector, database, dialect)
            executor = policy.executor(executor, database, dialect)
            vetoed |= not speaks_for_values(inspector, before)
        return Parts(executor, inspector, made, owned[0], own_validators, validators, owned, vetoed)

    def _own_validators(self, database: Database, executor: Executor, inspector: Inspector) -> list[Validator]:
        hook = "validators"
        own = self._ask(hook, list, database=database, executor=executor, inspector=inspector)
        origin = self.origin(database.dialect)
        return [validator for answer in own for validator in check_validators(answer, hook, origin)]

    def _ask(self, hook: str, kind: type[Any], **values: Any) -> Any:
        database: Database = values["database"]
        owner = self.load(database.dialect)
        others = [plugin for plugin in self._loaded.values() if plugin is not owner]
        call = self._manager.subset_hook_caller(hook, remove_plugins=others)
        origin = self.origin(database.dialect)
        return check_type(call_hook(lambda: call(**values), hook, origin), kind, hook, origin)


def _report_conflict(name: str, entry_points: Sequence[EntryPoint]) -> Installed:
    distributions = {distribution_of(entry_point): version_of(entry_point) for entry_point in entry_points}
    return Installed(name, ", ".join(distributions), ", ".join(distributions.values()))


def _report_broken(known: Installed, error: DialectError) -> Installed:
    return dataclasses.replace(known, status="broken", error=f"{error.message} {error.suggestion}")


def _describe_policy(name: str, entry_points: Sequence[EntryPoint]) -> Installed:
    known = dataclasses.replace(_report_conflict(name, entry_points), kind="policy")
    try:
        load_policy(_only_claim(f"policy {name!r}", entry_points))
    except DialectError as error:
        return _report_broken(known, error)
    return known


def _package(kind: type[Any]) -> str:
    return kind.__module__.partition(".")[0]


def _by_name(installed: Iterable[EntryPoint]) -> dict[str, list[EntryPoint]]:
    found: dict[str, list[EntryPoint]] = defaultdict(list)
    for entry_point in installed:
        found[entry_point.name].append(entry_point)
    return dict(found)


def _load_plugin(entry_point: EntryPoint) -> DialectPlugin:
    """Return the plugin of an entry point.

    Attributes any error in it to the plugin, so that it stops no other plugin.
    """
    try:
        return load_dialect(entry_point)
    except DialectError:
        raise
    except Exception as error:
        _log.error("inspecting the plugin of %s failed", origin_of(entry_point), exc_info=error)
        raise unusable(entry_point, f"inspecting it raised {type(error).__name__}; the log has the details.") from None


def _refuse_rivals(name: str, claims: Sequence[EntryPoint]) -> None:
    """Raise `DialectError` if only other distributions claim an official name: users of that name expect our plugin."""
    ours = _distributions_of_ours().get(ALIASES.get(name, name))
    rivals = [entry_point for entry_point in claims if _normal(distribution_of(entry_point)) != ours]
    if ours is None or len(rivals) < len(claims):
        return
    rival = distribution_of(rivals[0])
    raise DialectError(
        f"The name {name!r} belongs to the dialect of {ours}, which is not installed; {rival} claims it.",
        suggestion=f"Install {ours}, or have {rival} register a name of its own.",
    )


def _normal(distribution: str) -> str:
    return re.sub(r"[-_.]+", "-", distribution).lower()


def _only_claim(what: str, entry_points: Sequence[EntryPoint]) -> EntryPoint:
    """Return the entry point of a name, which only one distribution may claim."""
    claims = {distribution_of(entry_point): entry_point for entry_point in entry_points}
    if len(claims) > 1:
        raise DialectError(
            f"The {what} is claimed by several distributions: {' and '.join(sorted(claims))}.",
            suggestion=f"Uninstall all but one of them, for instance `pip uninstall {sorted(claims)[-1]}`.",
        )
    return next(iter(claims.values()))


def _no_policy(name: str, installed: Sequence[str]) -> ConfigurationError:
    near = nearest(name, installed)
    return ConfigurationError(
        f"policies.{name}: no policy of that name is installed.",
        suggestion=f"Did you mean {near[0]!r}?" if near else "Install its distribution, or remove the section.",
    )


def _missing(name: str, installed: Sequence[str]) -> DialectError:
    return DialectError(
        f"No plugin for the dialect {display(name)!r} is installed; installed are: {', '.join(installed) or 'none'}.",
        suggestion=_how_to_get(name, installed),
    )


def _how_to_get(name: str, installed: Sequence[str]) -> str:
    """Return how to get a dialect.

    Names only official distributions, since anybody may register the name of any other.
    """
    ours = _distributions_of_ours()
    meant = next((dialect for dialect in ours if name.startswith(dialect)), "")
    meant = meant or next(iter(nearest(name, [*installed, *ours])), "")
    if meant in installed:
        return f"Did you mean {meant!r}? It is installed."
    if meant:
        return f"Install the distribution {ours[meant]}."
    return "Install the distribution of a plugin you trust, or write one with `dragoman new-dialect`."


def _distributions_of_ours() -> dict[str, str]:
    """Return dragoman's own dialects, by name: those that the extra `all` installs."""
    required = importlib.metadata.requires("dragoman") or []
    names = (_OURS.match(requirement) for requirement in required)
    return {found[1]: f"dragoman-{found[1]}" for found in names if found}


def _check_enforced(dialect: Dialect, database: Database) -> None:
    if Capability.READ_ONLY_SESSION in dialect.capabilities or database.accept_unenforced:
        return
    raise ConfigurationError(
        f"The dialect {dialect.name!r} has no read-only sessions: only our own checks would keep writes from the"
        f" database {database.name!r}.",
        suggestion=f"Set databases.{database.name}.accept_unenforced = true, with a role that may only read.",
    )
