"""Database URLs: `dialect://user:password@host:port/database?option=value`, the same for every dialect."""

from __future__ import annotations

import re
from dataclasses import dataclass
from pathlib import Path, PurePosixPath
from typing import Any
from urllib.parse import quote, unquote

from dragoman.errors import ConfigurationError
from dragoman.model import Database, Secret

NAME = re.compile(r"[a-z0-9_][a-z0-9_-]*")
ALIASES = {"postgresql": "postgres"}
"""Further names that official distributions register, and the dialect of each."""
NAME_RULE = "lower-case letters, digits, _ and - (not first)"
# An option with one of these names in a URL sets that part, as in libpq. So every driver gets it the same way.
PARTS = ("host", "port", "schema", "user", "password")

_SCHEME = re.compile(r"([A-Za-z][A-Za-z0-9_.-]*)(\+[^:/]*)?://")
_NAMED = re.compile(r"([^=:/?@]*)=(.*)", re.DOTALL)
# A path has a folder, or the suffix of a database file. No name of a database has either.
_PATH = re.compile(r"^(~|\.{1,2})?/|^[^@:]+\.(db|db3|sqlite|sqlite3|duckdb|ddb)$", re.IGNORECASE)
_SUFFIXES = {".duckdb": "duckdb", ".ddb": "duckdb"}
_FORM = "Write the path of a file, or DIALECT://USER:PASSWORD@HOST:PORT/DATABASE; for a file DIALECT:///relative.db or DIALECT:////absolute.db."
_MISPLACED = re.compile(r"[^/:@]+:[^/@]*@[^/]+/")
_LATE_HOST = re.compile(r"@[^&]*/")
_ENCODE = (
    "Percent-encode special characters in the user, the password and options (@ is %40, / is %2F, : is %3A, ? is %3F)."
)


@dataclass(frozen=True, slots=True)
class Url:
    """The parts of a URL. `parts` are fields of `Database`; `options` belong to the plugin and are still text."""

    scheme: str
    parts: dict[str, Any]
    options: dict[str, str]

    @property
    def name(self) -> str:
        """The name of its database if none is given: the file's stem, the database or the catalog."""
        path = self.parts.get("database") or ""
        # After a host comes a database, perhaps with a schema; without a host it is the path of a file.
        own = path.split("/")[0] if self.parts.get("host") else PurePosixPath(path).stem
        return re.sub(r"[^a-z0-9_]", "_", own.lower()) or self.scheme


def bracket_host(host: str) -> str:
    """Return a host as in a URL: an IPv6 address stands in brackets."""
    return f"[{host}]" if ":" in host else host


def split_url(text: str) -> Url:
    """Return the parts of a URL. Raises `ConfigurationError`, which never repeats the URL."""
    text = as_url(text)
    scheme = _SCHEME.match(text)
    if scheme is None:
        raise ConfigurationError("This is not a database URL.", suggestion=_FORM)
    written = scheme[1].lower()
    if scheme[2]:
        raise ConfigurationError(
            f"A URL names a dialect, not a driver: {scheme[1]}{scheme[2]}.",
            suggestion=f"Write {written}://...; the dialect's plugin brings its driver.",
        )
    body, _, query = text[scheme.end() :].partition("?")
    authority, slash, path = body.partition("/")
    _check_encoded(authority, path, query)
    parts: dict[str, Any] = {"dialect": name_dialect(written), **_authority(authority)}
    if slash and path:
        parts["database"] = _in_home(unquote(path)) if not authority else unquote(path)
    options = _options(query)
    for part in PARTS:
        if part in options:
            parts[part] = options.pop(part)
    if "port" in parts:
        parts["port"] = _port(parts["port"])
    if "password" in parts:
        parts["password"] = Secret(parts["password"])
    return Url(written, parts, options)


def name_dialect(written: str) -> str:
    """Return the canonical name of a dialect, for any name by which it may be configured."""
    return ALIASES.get(written, written)


def is_path(text: str) -> bool:
    """Return whether a text is the path of a database file: it begins or ends like one and is not a URL."""
    return "://" not in text and bool(_PATH.search(text))


def as_url(text: str) -> str:
    """Return a URL unchanged, and the path of a file as a URL. The suffix determines the dialect."""
    if not is_path(text):
        return text
    dialect = _SUFFIXES.get(PurePosixPath(text).suffix.lower(), "sqlite")
    return f"{dialect}:///{quote(_in_home(text))}"


def _in_home(path: str) -> str:
    return str(Path(path).expanduser()) if path.startswith("~/") else path


def _check_encoded(authority: str, path: str, query: str) -> None:
    """Refuse a URL whose password ends too early: the rest of it would become part of a name, and names are shown."""
    names = [pair.partition("=")[0] or pair for pair in query.split("&")]
    # An "@" that is followed by a path was meant to end a user and a password, whatever came before the query.
    ended_late = authority and _LATE_HOST.search(query)
    cut_off = query if authority and (ended_late or not path) else ""
    if any("@" in text for text in (path if authority else "", cut_off, *names)):
        raise ConfigurationError("The user or the password of this URL is not percent-encoded.", suggestion=_ENCODE)
    if not authority and _MISPLACED.match(path):
        raise ConfigurationError("This URL has too many slashes before its user.", suggestion=_FORM)


def _authority(text: str) -> dict[str, str]:
    userinfo, at, address = text.rpartition("@")
    parts: dict[str, str] = {}
    if at:
        user, colon, password = userinfo.partition(":")
        parts |= {"user": unquote(user)} if user else {}
        parts |= {"password": unquote(password)} if colon and password else {}
    if "," in address:
        return parts | {"host": unquote(address)}
    match = re.fullmatch(r"(?:\[([^\]]*)\]|([^:\[\]]*))(?::(.*))?", address)
    if match is None:
        raise ConfigurationError("The host of this URL cannot be read.", suggestion=f"IPv6: [::1]:5432. {_ENCODE}")
    host = unquote(match[1] or match[2] or "")
    parts |= {"host": host} if host else {}
    parts |= {"port": match[3]} if match[3] else {}
    return parts


def _port(text: str) -> int:
    if text.isascii() and text.isdigit() and 0 < int(text) < 65536:
        return int(text)
    raise ConfigurationError("The port of this URL is not a number from 1 to 65535.", suggestion=_ENCODE)


def _options(query: str) -> dict[str, str]:
    pairs = (pair.partition("=") for pair in query.split("&") if pair)
    return {unquote(name): unquote(value) for name, _, value in pairs}


def split_name(text: str) -> tuple[str | None, str]:
    """Split `NAME=URL`; the name of a bare URL is None. Raises `ConfigurationError` for an impossible name."""
    named = _NAMED.fullmatch(text)
    if named is None:
        return None, text
    if not NAME.fullmatch(named[1]):
        raise ConfigurationError(f"A database cannot be named {named[1]!r}.", suggestion=f"Use {NAME_RULE}.")
    return named[1], named[2]


def parse_url(text: str, *, name: str | None = None, folder: Path | None = None) -> Database:
    """Return the database that a URL describes, with the name `name`, or that of its own database.

    Relative paths are relative to `folder`, by default the current folder. Raises `ConfigurationError`.
    """
    url = split_url(text)
    own = url.name if name is None else name
    return Database(name=own, url=Secret(text), options=url.options, folder=folder or Path.cwd(), **url.parts)


def parse_named(text: str, *, folder: Path | None = None) -> Database:
    """Return the database that `NAME=URL` or a bare URL describes. Raises `ConfigurationError`."""
    name, url = split_name(text)
    return parse_url(url, name=name, folder=folder)
