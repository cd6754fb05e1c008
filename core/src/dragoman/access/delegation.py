"""Databases whose engine applies the rights of callers: which role or user acts for each caller."""

from __future__ import annotations

import json
import math
import re
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from typing import Any, cast

from dragoman.access.checking import Misfit
from dragoman.access.grants import ReadGrant
from dragoman.config import Configuration
from dragoman.errors import PermissionDenied
from dragoman.model import Acting, Database, Principal
from dragoman.words import nearest

_PLACE = re.compile(r"\{(user|groups|claims\.[^{}]+)\}")
_PLAIN_SETTING = re.compile(r"[A-Za-z_][A-Za-z0-9_]*(\.[A-Za-z_][A-Za-z0-9_]*)+")
_UNSENDABLE = re.compile("[\0\ud800-\udfff]")
_USER = re.compile(r"[!-~]([ -~]*[!-~])?")
"""Names that a user may have. A name that a header would change on its way might become another user's name."""
_NO_ROLES = frozenset({"", "none", "default"})
"""Words that an engine may read as the role that signed in."""
_PLACES = "{user}, {groups} and {claims.NAME} stand for values of the caller."


def value_of(name: str, principal: Principal) -> Any:
    """Return a value of a caller: `user`, `groups` or `claim.NAME`.

    Raises `PermissionDenied` without that claim, and for a value that no database accepts.
    """
    value = _find_value(name, principal)
    if not _is_bindable(value):
        raise PermissionDenied(
            f"What you may read here depends on {name}, and your sign-in has a value of it that no database accepts.",
            suggestion="Ask the server's administrator.",
        )
    return value


def _is_bindable(value: Any) -> bool:
    """Return whether every database accepts a value: text without NUL, numbers of 64 bits, and lists of them."""
    match value:
        case str():
            return not _UNSENDABLE.search(value)
        case int():
            return -(2**63) <= value < 2**63
        case float():
            return math.isfinite(value)
        case list() | tuple():
            return all(map(_is_bindable, cast("Iterable[Any]", value)))
        case dict():
            items = cast("dict[str, Any]", value).items()
            return all(_is_bindable(key) and _is_bindable(item) for key, item in items)
        case _:
            return True


def _find_value(name: str, principal: Principal) -> Any:
    match name:
        case "user":
            return principal.subject or principal.name
        case "groups":
            return sorted(principal.groups)
        case _:
            claim = name.removeprefix("claim.")
            if claim not in principal.claims:
                raise PermissionDenied(
                    f"Your sign-in has no claim {claim!r}. What you may read here depends on it.",
                    suggestion="Ask the server's administrator.",
                )
            return principal.claims[claim]


class Delegation:
    """How a database whose engine applies the rights of callers acts for each of them."""

    def __init__(self, database: Database) -> None:
        self._database = database

    @classmethod
    def of(cls, database: Database) -> Delegation | None:
        """Return the delegation of a database; None where the gateway acts as itself."""
        return None if database.identity == "gateway" else cls(database)

    @property
    def known(self) -> tuple[Acting, ...]:
        """Return the identities that read catalogs, as far as the configuration names them.

        Without any, it is the role that signs in.
        """
        roles = dict.fromkeys(self._database.database_roles.values())
        return tuple(Acting(role=role) for role in roles) or (Acting(),)

    def whose_catalog(self, principal: Principal, roles: Collection[str]) -> Acting | None:
        """Return the identity that reads the catalog for a caller with some roles.

        None: the caller may not use the database.
        """
        match self._database.identity:
            case "role":
                mine = (engine for role, engine in self._database.database_roles.items() if role in roles)
                return next((Acting(role=role) for role in mine), None)
            case "user":
                try:
                    return Acting(user=self._user(principal))
                except PermissionDenied:
                    return None
            case _:
                return Acting()

    def _user(self, principal: Principal) -> str:
        """Return the user who acts for a caller.

        Never the one who signs in: a caller of that name would read what the gateway reads, since engines ask no rule
        about impersonating oneself.
        """
        user = _fill(self._database.act_as, principal)
        if not _USER.fullmatch(user) or user == self._database.user:
            raise PermissionDenied(
                "The database has no user of your name.", suggestion="Ask the server's administrator."
            )
        return user

    def complete(self, acting: Acting, principal: Principal) -> Acting:
        """Return `acting` with the values of a caller. Raises `PermissionDenied` for callers who lack one."""
        session = self._database.session
        if not session:
            return acting
        return replace(acting, settings=tuple((name, _fill(text, principal)) for name, text in session.items()))

    def fitting(self, grants: Sequence[ReadGrant], acting: Acting | None) -> Sequence[ReadGrant]:
        """Return the grants that apply to this identity."""
        if self._database.identity != "role":
            return grants
        engine = acting.role if acting else None
        return [grant for grant in grants if self._database.database_roles.get(grant.role) == engine]

    def problems(self, dialect: str, identities: Collection[str], roles: Collection[str]) -> Iterator[Misfit]:
        """Yield the problems of its configuration.

        `identities`: the ways that the dialect supports. `roles`: the names of the configured roles.
        """
        database = self._database
        key, kind = f"databases.{database.name}", database.identity
        if kind not in identities:
            ways = ", ".join(sorted(identities)) or "none but gateway"
            message = f"{dialect} cannot keep the rights of callers by identity = {kind!r}"
            yield Misfit(f"{key}.identity", message, f"It supports {ways}; filters of roles work without it.")
        yield from self._problems_of_roles(key, roles) if kind == "role" else ()
        if kind == "session" and not database.session:
            yield Misfit(
                f"{key}.identity",
                "no value in session identifies the caller to the engine",
                'For example { "app.user" = "{user}" }.',
            )
        if kind == "user" and database.session:
            yield Misfit(f"{key}.session", "a user's rights depend on no settings", "Take it out.")
        texts = {f"{key}.act_as": database.act_as}
        for name, text in database.session.items():
            texts[f"{key}.session.{name}"] = text
            if not _PLAIN_SETTING.fullmatch(name):
                yield Misfit(f"{key}.session.{name}", "not a setting of your own", "Name it with a dot, as app.tenant.")
        for place, text in texts.items():
            if re.search("[{}]", _PLACE.sub("", text)):
                yield Misfit(place, "an unknown value stands in braces", _PLACES)

    def _problems_of_roles(self, key: str, roles: Collection[str]) -> Iterator[Misfit]:
        given = self._database.database_roles
        if not given:
            yield Misfit(f"{key}.identity", "database_roles names no role", 'For example { analyst = "shop_reader" }.')
        for role, engine in given.items():
            if role not in roles:
                near = nearest(role, roles)
                remedy = f"Did you mean {near[0]}?" if near else f"Configured are: {', '.join(roles) or 'none'}."
                yield Misfit(f"{key}.database_roles.{role}", f"no role {role!r} is configured", remedy)
            if engine.lower() in _NO_ROLES or _UNSENDABLE.search(engine):
                message = f"a role of the database cannot be called {engine!r}"
                yield Misfit(
                    f"{key}.database_roles.{role}", message, "Name a role with the rights these callers should have."
                )


def _fill(text: str, principal: Principal) -> str:
    """Return a text with a caller's values filled in.

    Raises `PermissionDenied` for a value that is missing or cannot be sent.
    """

    def value(found: re.Match[str]) -> str:
        held = value_of(found[1].replace("claims.", "claim.", 1), principal)
        return held if isinstance(held, str) else json.dumps(held, ensure_ascii=False, separators=(",", ":"))

    filled = _PLACE.sub(value, text)
    if _UNSENDABLE.search(filled):
        raise PermissionDenied(
            "Your sign-in has characters that no database accepts.", suggestion="Ask the server's administrator."
        )
    return filled


def delegations(configuration: Configuration) -> dict[str, Delegation]:
    """Return the delegations of databases whose engines apply the rights of callers, by database name."""
    found = {name: Delegation.of(database) for name, database in configuration.databases.items()}
    return {name: delegation for name, delegation in found.items() if delegation}


def act_for(known: Mapping[str, Delegation], principal: Principal, roles: Collection[str]) -> dict[str, Acting | None]:
    """Return for each database the identity that reads its catalog for a caller.

    None: the caller may not use the database.
    """
    return {name: each.whose_catalog(principal, roles) for name, each in known.items()}
