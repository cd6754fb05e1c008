"""Compiled roles: which ones a principal has, and what they grant together. Remembered by the set of roles."""

from __future__ import annotations

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass, replace
from types import MappingProxyType

from dragoman.access.grants import DatabaseAccess, ReadGrant
from dragoman.access.quotas import Quota
from dragoman.config import Configuration
from dragoman.config.roles import EVERYBODY, Role
from dragoman.errors import ConfigurationError
from dragoman.model import Principal
from dragoman.model.callers import PROXY_ISSUER

REMEMBERED = 256
"""The number of role sets whose access is kept. Principals are many, but they share few sets of roles."""


@dataclass(frozen=True, slots=True)
class Access:
    """What the holders of some roles may do. `names`: the roles' names.

    - `tools`: names of tools, toolsets and profiles. None: all of the server's but those that a role must list.
    - `listed`: the names that any of the roles lists.
    - `quota`: the quota of each holder.
    """

    names: tuple[str, ...]
    tools: tuple[str, ...] | None
    listed: tuple[str, ...]
    databases: Mapping[str, DatabaseAccess]
    quota: Quota


def narrow(configuration: Configuration, names: Collection[str]) -> Configuration:
    """Return the configuration as it is for callers, without databases they may not use."""
    known = {name: each for name, each in configuration.databases.items() if name in names}
    default = configuration.default_database
    return replace(
        configuration,
        databases=MappingProxyType(known),
        default_database=default if default in known else None,
        sources=MappingProxyType({}),
    )


class Roles:
    """The roles of a configuration."""

    def __init__(self, configuration: Configuration) -> None:
        self._configuration = configuration
        self._roles = tuple(configuration.roles.values())
        self._known: dict[tuple[str, ...], Access] = {}

    def __bool__(self) -> bool:
        """Return whether there are any roles. Without roles, everybody may do whatever is configured."""
        return bool(self._roles)

    def of(self, principal: Principal) -> Access:
        """Return what a principal may do."""
        roles = tuple(role for role in self._roles if has(principal, role))
        names = tuple(role.name for role in roles)
        if names not in self._known:
            if len(self._known) >= REMEMBERED:
                self._known.clear()
            self._known[names] = _access(roles)
        return self._known[names]

    @property
    def have_quotas(self) -> bool:
        """Return whether any role sets a quota."""
        return any(_quota([role]) for role in self._roles)

    def quota(self, principal: Principal) -> Quota:
        """Return the quota of a principal."""
        return self.of(principal).quota

    def everything(self, database: str) -> tuple[ReadGrant, ...]:
        """Return every grant on a database, of all roles. Raises `ConfigurationError`, with the file of the grant."""
        return tuple(grant for role in self._roles for grant in self._read_grants(role, database))

    def _read_grants(self, role: Role, database: str) -> list[ReadGrant]:
        try:
            return list(_grants(role, database))
        except ConfigurationError as error:
            file = self._configuration.sources.get(f"roles.{role.name}.grants")
            raise error.replace(message=f"{file}: {error.message}") if file else error from None


def has(principal: Principal, role: Role) -> bool:
    """Return whether a principal has a role, by its identity, never by its name alone."""
    return (
        any(EVERYBODY in holders for holders in (role.groups, role.principals, role.tokens, role.scopes))
        or not role.groups.isdisjoint(principal.groups)
        or not role.scopes.isdisjoint(principal.scopes)
        or (principal.token != "" and principal.token in role.tokens)
        or not role.principals.isdisjoint(identities(principal))
    )


def identities(principal: Principal) -> frozenset[str]:
    """Return the ways in which `principals` of a role may write a principal: its subject, or `issuer#subject`.

    A caller without an issuer is known by the name in the server's configuration. A name that itself looks like issuer
    and subject is ignored: it could be mistaken for a subject of that issuer.
    """
    subject = principal.subject or principal.name
    issuer, mark, _ = subject.partition("#")
    is_plain = not mark or ("://" not in issuer and issuer != PROXY_ISSUER)
    alone = frozenset({subject}) if is_plain else frozenset[str]()
    if principal.issuer:
        return alone | {f"{principal.issuer}#{principal.subject}"}
    return frozenset() if principal.token else alone


def _access(roles: Sequence[Role]) -> Access:
    listed = tuple(dict.fromkeys(name for role in roles for name in role.tools or ()))
    databases = dict.fromkeys(grant.database for role in roles for grant in role.grants)
    return Access(
        tuple(role.name for role in roles),
        None if any(role.tools is None for role in roles) else listed,
        listed,
        MappingProxyType({database: _database(roles, database) for database in databases}),
        _quota(roles),
    )


def _quota(roles: Sequence[Role]) -> Quota:
    """Return the quota of the holders of roles: the most generous of every bound."""
    return Quota(
        calls_per_minute=max((role.calls_per_minute for role in roles if role.calls_per_minute), default=None),
        rows_per_hour=max((role.rows_per_hour for role in roles if role.rows_per_hour), default=None),
        bytes_per_day=max((role.bytes_per_day for role in roles if role.bytes_per_day), default=None),
    )


def _database(roles: Sequence[Role], database: str) -> DatabaseAccess:
    """Return what roles together grant on a database. Of the limits that are set, the most generous one counts."""
    granting = [role for role in roles if _grants(role, database)]
    return DatabaseAccess(
        roles=tuple(role.name for role in roles),
        grants=tuple(grant for role in granting for grant in _grants(role, database)),
        max_rows=max((role.max_rows for role in granting if role.max_rows is not None), default=None),
        timeout=max((role.timeout for role in granting if role.timeout is not None), default=None),
        max_cost=max((role.max_cost for role in granting if role.max_cost is not None), default=None),
    )


def _grants(role: Role, database: str) -> tuple[ReadGrant, ...]:
    return tuple(ReadGrant.read(role.name, grant) for grant in role.grants if grant.database == database)
