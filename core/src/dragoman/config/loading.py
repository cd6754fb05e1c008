"""Reads every key of the merged sources, and reports all problems at once."""

from __future__ import annotations

import dataclasses
import functools
import os
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import Any
from urllib.parse import urlsplit

from dragoman.config.folders import find_writable
from dragoman.config.holders import find_unheld
from dragoman.config.keys import (
    AUDIT,
    AUTH,
    CONNECTION,
    DATABASE,
    DECLARED_KEY,
    DEFAULTS,
    GRANT,
    HOLDERS,
    KNOWLEDGE,
    MODEL,
    RESULTS,
    ROLE,
    ROLE_LIMITS,
    SERVER,
    STATIC_TOKEN,
    TOP,
)
from dragoman.config.merging import STATE, Merge
from dragoman.config.readers import Reader, Wrong, is_list, is_mapping, suggest, table, text
from dragoman.config.roles import Grant, Role
from dragoman.config.secrets import is_encrypted
from dragoman.config.settings import (
    Audit,
    Auth,
    Configuration,
    ModelSettings,
    Results,
    Server,
    StaticToken,
    is_loopback,
)
from dragoman.config.sources import (
    URL_VARIABLE,
    KeyPath,
    Layer,
    Problem,
    environment_layer,
    find,
    find_misspelled_variables,
    interpolate,
    problems_error,
    read_dotenv,
    read_file,
)
from dragoman.config.urls import NAME, NAME_RULE, Url, split_url
from dragoman.config.variables import foreign_layers
from dragoman.errors import ConfigurationError
from dragoman.model import Database, DeclaredKey, KnowledgeSettings, Secret

_LITERAL_PASSWORD = re.compile(r"[^/]*://[^:/@]*:[^/@]+@")

MODEL_NAME = re.compile(r"[\w-]+:\S+")

COMMAND_LINE = "command line"

_NOTHING = (
    "Name one: `dragoman serve sqlite:///shop.db`, DATABASE_URL=..., or [databases.NAME] with url = ... in"
    " dragoman.toml (`dragoman config init` writes a starter)."
)


def load(
    path: str | Path | None = None,
    *,
    urls: Sequence[str] = (),
    environ: Mapping[str, str] | None = None,
    folder: Path | None = None,
    overrides: Mapping[str, Any] | None = None,
) -> Configuration:
    """Return the merged configuration: command line over environment over `.env` over file.

    - `path`: the file; by default the first one found.
    - `urls`: `[NAME=]URL` texts, relative to `folder` (the current folder by default).
    - `overrides`: further values from the command line, nested as in a file.

    Raises `ConfigurationError`, whose context lists every problem as `{"file", "line", "key", "message", "remedy"}`.
    """
    here = folder or Path.cwd()
    own = dict(os.environ if environ is None else environ)
    dotenv = read_dotenv(here)
    known = {**dotenv, **own}
    found = find(path, known, here)
    merge = _Reading()
    if found:
        file, shown = found
        written = read_file(file, shown)
        interpolated = interpolate(Layer(shown, written, file.parent), known)
        merge.problems += interpolated.problems
        merge.variables += interpolated.variables
        merge.secrets += interpolated.secrets
        if file.stat().st_mode & 0o044:
            merge.warnings += [_readable(shown, key) for key in _literal_secrets(written)]
        merge.add(interpolated.layer)
    for origin, variables in ((".env", dotenv), ("environment", own)):
        merge.add(environment_layer(origin, variables, here))
        merge.warnings += find_misspelled_variables(origin, variables)
    merge.add(Layer(COMMAND_LINE, overrides or {}, here))
    merge.add_urls(urls, COMMAND_LINE, here)
    if not merge.values.get("databases") and known.get(URL_VARIABLE):
        merge.variables.append(URL_VARIABLE)
        merge.add_urls([known[URL_VARIABLE]], f"environment: {URL_VARIABLE}", here)
    if not merge.values.get("databases"):
        for layer in foreign_layers(known, here):
            merge.add(layer)
    merge.add_state(known)
    return merge.result(*(found or (None, "")))


class _Reading(Merge):
    """Reads merged values section by section. Collects every problem and goes on."""

    def result(self, source: Path | None, shown: str) -> Configuration:
        """Read everything. Raises `ConfigurationError` with every problem.

        `shown`: the name of the file `source` in messages.
        """
        sections = {"server": SERVER, "defaults": DATABASE, "audit": AUDIT, "results": RESULTS, "model": MODEL}
        self._unknown(self.values, TOP, (), sections)
        server = self._server()
        audit = self._audit()
        results = self._results()
        model = self._model()
        databases = self._databases()
        if audit.database is not None:
            self._show_audit(audit.database, databases)
        default = self._default(databases)
        policies = self._policies()
        roles = self._roles(databases)
        if self.problems:
            raise problems_error(_locate(self.problems, source, shown))
        return Configuration(
            databases=MappingProxyType(databases),
            policies=MappingProxyType(policies),
            roles=MappingProxyType(roles),
            default_database=default,
            server=server,
            audit=audit,
            model=model,
            results=results,
            source=source,
            sources=MappingProxyType({".".join(path): self.origins[path].file for path in _leaves(self.values)}),
            warnings=(*self.warnings, *find_unheld(roles, server), *find_writable(server, results, audit)),
            variables=tuple(dict.fromkeys(self.variables)),
            secrets=frozenset(".".join(path) for path in self.secrets),
        )

    def _server(self) -> Server:
        read = self._table(self._mapping(self.values.get("server", {}), ("server",)), SERVER, ("server",))
        read["tokens"] = self._tokens(read.pop("tokens", []), ("server", "tokens"))
        for name in ("queries_dir", "prompts_dir", "tls_cert", "tls_key", "state_dir"):
            if name in read:
                read[name] = self.path_of(("server", name), read[name])
        if "tls_key" in read and "tls_cert" not in read:
            self._problem(
                ("server", "tls_key"), "a key without tls_cert", "Set tls_cert to the file of the certificate."
            )
        read["auth"] = self._auth(read.pop("auth", None), ("server", "auth"))
        return Server(**read)

    def _auth(self, given: Mapping[str, Any] | None, path: KeyPath) -> Auth | None:
        if given is None:
            return None
        before = len(self.problems)
        read = self._table(given, AUTH, path)
        if missing := [name for name in ("issuer", "audience") if not given.get(name)]:
            self._problem(
                path, f"{' and '.join(missing)} missing", "Tokens must have one issuer and this server as audience."
            )
        if ("jwks_url" in given) == ("introspection_url" in given):
            remedy = "The issuer publishes its keys (jwks_url), or is asked about each token (introspection_url)."
            self._problem(path, "one of jwks_url and introspection_url is needed", remedy)
        if len(self.problems) > before:
            return None
        self.warnings += [
            f"{'.'.join(path)}.{name}: plain http; whoever can change its answers decides who may call."
            for name in ("jwks_url", "introspection_url")
            if name in read and _is_exposed(read[name])
        ]
        if any(_is_exposed(audience) for audience in read["audience"]):
            self.warnings.append(
                f"{'.'.join(path)}.audience: plain http; tokens can be read on their way to this server."
            )
        return Auth(**read)

    def _tokens(self, given: Sequence[Mapping[str, Any]], path: KeyPath) -> tuple[StaticToken, ...]:
        found: dict[str, StaticToken] = {}
        for place, each in enumerate(given):
            here = (*path, str(place))
            read = self._table(each, STATIC_TOKEN, here)
            if missing := [name for name in ("name", "hash") if not each.get(name)]:
                self._problem(here, f"{' and '.join(missing)} missing", "`dragoman token create NAME` prints an entry.")
            elif read.get("name") in found:
                self._problem((*here, "name"), "a second token of that name", "Give each token a name of its own.")
            elif read.keys() >= {"name", "hash"}:
                found[read["name"]] = StaticToken(**read)
        return tuple(found.values())

    def _results(self) -> Results:
        read = self._table(self._mapping(self.values.get("results", {}), ("results",)), RESULTS, ("results",))
        if "dir" in read:
            read["dir"] = self.path_of(("results", "dir"), read["dir"])
        return Results(**read)

    def _model(self) -> ModelSettings | None:
        path = ("model",)
        if path[0] not in self.values:
            return None
        given = self._mapping(self.values[path[0]], path)
        read = self._table(given, MODEL, path)
        if not MODEL_NAME.fullmatch(read.get("name", "")):
            if "name" in read or "name" not in given:
                self._problem((*path, "name"), "expected provider:model", 'For example "openai:gpt-4o-mini".')
            return None
        for key in read.keys() & {"examples_dir", "record", "replay"}:
            read[key] = self.path_of((*path, key), read[key])
        if read.keys() >= {"record", "replay"}:
            self._problem((*path, "record"), "nothing is recorded where replies are replayed", "Keep one of the two.")
        if "base_url" in read and _is_exposed(read["base_url"]):
            self.warnings.append("model.base_url: plain http; what is sent to the model can be read on the way.")
        return ModelSettings(**read)

    def _audit(self) -> Audit:
        read = self._table(self._mapping(self.values.get("audit", {}), ("audit",)), AUDIT, ("audit",))
        if "path" in read:
            read["path"] = self.path_of(("audit", "path"), read["path"])
        url: Secret | None = read.get("url")
        return Audit(database=self._audit_database(url) if url else None, **read)

    def _audit_database(self, url: Secret) -> Database | None:
        path = ("audit", "url")
        split: Url | None = self._attempt(lambda: split_url(url.reveal()), path)
        if split is None:
            return None
        told = "Every call of this gateway: who asked what, and how it ended"
        options: Mapping[str, Any] = split.options
        return Database(
            name="audit", url=url, description=told, options=options, folder=self.origins[path].folder, **split.parts
        )

    def _show_audit(self, audit: Database, databases: dict[str, Database]) -> None:
        """Add the audit as a database, for those whose roles grant it."""
        if "audit" in databases:
            self.warnings.append("databases.audit: a configured database of this name hides the gateway's own audit.")
        elif any(grant.get("database") == "audit" for grant in _grants(self.values.get("roles"))):
            databases["audit"] = audit

    def _policies(self) -> dict[str, Mapping[str, Any]]:
        given = self._mapping(self.values.get("policies", {}), ("policies",))
        read = {
            name: self._attempt(functools.partial(table, values), ("policies", name)) for name, values in given.items()
        }
        return {name: MappingProxyType(options) for name, options in read.items() if options is not None}

    def _roles(self, databases: Mapping[str, Database]) -> dict[str, Role]:
        given = self._mapping(self.values.get("roles", {}), ("roles",))
        return {name: self._role(name, values, databases) for name, values in given.items()}

    def _role(self, name: str, values: Any, databases: Mapping[str, Database]) -> Role:
        path = ("roles", name)
        read = self._table(self._mapping(values, path), ROLE, path)
        if not any(read.get(holders) for holders in HOLDERS):
            self._problem(path, "nobody has this role", f'Name its holders in {", ".join(HOLDERS)}; "*" is everybody.')
        limits = self._table(read.pop("limits", {}), ROLE_LIMITS, (*path, "limits"))
        rows = read.pop("grants", [])
        grants = [self._grant(each, (*path, "grants", str(place)), databases) for place, each in enumerate(rows)]
        return Role(name=name, grants=tuple(filter(None, grants)), **limits, **read)

    def _grant(self, values: Mapping[str, Any], path: KeyPath, databases: Mapping[str, Database]) -> Grant | None:
        read = self._table(values, GRANT, path)
        missing = [key for key in ("database", "tables") if key not in values]
        if missing:
            self._problem(path, f"{' and '.join(missing)} missing", "A grant names a database and its tables.")
        elif "database" in read and read["database"] not in (known := self._find_names(databases)):
            remedy = suggest(read["database"], known) or f"Configured are: {', '.join(known)}."
            self._problem((*path, "database"), f"no database {read['database']!r} is configured", remedy)
        elif read.keys() >= {"database", "tables"}:
            return Grant(key=".".join(path), **read)
        return None

    def _default(self, databases: Mapping[str, Database]) -> str | None:
        path = ("default_database",)
        if (given := self.values.get(path[0])) is None:
            return None
        name: str | None = self._attempt(lambda: text(given), path)
        if name is not None and name not in (known := self._find_names(databases)):
            remedy = f"{suggest(name, known)} Known: {', '.join(known)}.".strip()
            self._problem(path, "no such database is configured", remedy)
        return name

    def _find_names(self, databases: Mapping[str, Database]) -> tuple[str, ...]:
        """Return the names of all databases, also of those whose section has a fault."""
        sections = self.values.get("databases", {})
        return tuple(dict.fromkeys((*databases, *(sections if is_mapping(sections) else ()))))

    def _databases(self) -> dict[str, Database]:
        path = ("defaults",)
        defaults = self._table(self._mapping(self.values.get("defaults", {}), path), DEFAULTS, path)
        given = self._mapping(self.values.get("databases", {}), ("databases",))
        if not given and not self.problems:
            self.problems.append(Problem("configuration", "databases", "no database is configured", _NOTHING))
        read = {name: self._database(name, values, defaults) for name, values in given.items()}
        return {name: database for name, database in read.items() if database is not None}

    def _database(self, name: str, values: Any, defaults: Mapping[str, Any]) -> Database | None:
        path = ("databases", name)
        if not NAME.fullmatch(name):
            self._problem(path, "a database cannot have this name", f"Use {NAME_RULE}.")
        before = len(self.problems)
        own = self._table(self._mapping(values, path), DATABASE, path)
        administered = self._is_administered(path)
        if administered:
            defaults = {key: value for key, value in defaults.items() if key not in CONNECTION}
        keys = self._keys(own.pop("keys", []), (*path, "keys"))
        own["knowledge"] = self._knowledge(defaults.get("knowledge", {}), own.pop("knowledge", {}), path)
        url: Secret | None = own.pop("url", None)
        split = self._attempt(lambda: split_url(url.reveal()), (*path, "url")) if url else None
        if len(self.problems) > before:
            return None
        parts: dict[str, Any] = {**defaults, **(split.parts if split else {}), **own}
        if not parts.get("dialect"):
            self._problem(path, "neither url nor dialect is given", 'Add url = "DIALECT://..." or dialect = "...".')
            return None
        parts["options"] = {
            **defaults.get("options", {}),
            **(split.options if split else {}),
            **own.get("options", {}),
        }
        # A part that overrides the URL's makes the whole text wrong. Drivers must then build it from the parts.
        whole = url if split and not any(part in own for part in CONNECTION if part != "options") else None
        self._limits(parts, own, path)
        return Database(name=name, url=whole, keys=keys, folder=self._folder(path), administered=administered, **parts)

    def _is_administered(self, path: KeyPath) -> bool:
        """Return whether an administrator chose the host. Secrets for other hosts are not sent to such a host."""
        origin = self.origins.get((*path, "url"))
        return origin is not None and origin.file == STATE

    def _limits(self, parts: dict[str, Any], own: Mapping[str, Any], path: KeyPath) -> None:
        ceiling = parts.get("max_rows", Database.__dataclass_fields__["max_rows"].default)
        rows = parts.get("default_rows", Database.__dataclass_fields__["default_rows"].default)
        if rows > ceiling and "default_rows" in own:
            self._problem((*path, "default_rows"), f"more than max_rows, {ceiling}", "Lower it or raise max_rows.")
        parts["default_rows"] = min(rows, ceiling)

    def _folder(self, path: KeyPath) -> Path:
        given = next(((*path, part) for part in ("url", "database") if (*path, part) in self.origins), path)
        return self.origins[given].folder

    def _keys(self, given: Sequence[Mapping[str, Any]], path: KeyPath) -> tuple[DeclaredKey, ...]:
        found: list[DeclaredKey] = []
        for place, each in enumerate(given):
            here = (*path, str(place))
            read = self._table(each, DECLARED_KEY, here)
            if missing := [name for name in ("table", "columns") if not read.get(name) and name not in each]:
                self._problem(here, f"{' and '.join(missing)} missing", "A declared key names its table and columns.")
            elif read.get("referenced_columns") and len(read["referenced_columns"]) != len(read.get("columns", ())):
                self._problem(here, "columns and referenced_columns differ in length", "Give them pairwise.")
            elif "referenced_columns" in read and "references" not in read:
                self._problem(here, "referenced_columns without references", "Add the table they are in.")
            elif read.keys() >= {"table", "columns"}:
                found.append(DeclaredKey(**read))
        return tuple(found)

    def _knowledge(self, defaults: Mapping[str, Any], own: Mapping[str, Any], path: KeyPath) -> KnowledgeSettings:
        read = self._table(defaults, KNOWLEDGE, ("defaults", "knowledge"))
        read = self._with_paths(read, ("defaults", "knowledge", "files"))
        mine = self._table(own, KNOWLEDGE, (*path, "knowledge"))
        return KnowledgeSettings(**(read | self._with_paths(mine, (*path, "knowledge", "files"))))

    def _with_paths(self, read: dict[str, Any], path: KeyPath) -> dict[str, Any]:
        return read | {"files": tuple(self.path_of(path, name) for name in read["files"])} if "files" in read else read

    def _table(self, values: Mapping[str, Any], known: Mapping[str, Reader], path: KeyPath) -> dict[str, Any]:
        """Read a table of keys. A key that cannot be read is a problem and is left out."""
        self._unknown(values, tuple(known), path)
        read: dict[str, Any] = {}
        for name, reader in known.items():
            if name in values:
                value = self._attempt(functools.partial(reader, values[name]), (*path, name))
                if value is not None:
                    read[name] = value
        return read

    def _unknown(
        self,
        values: Mapping[str, Any],
        known: tuple[str, ...],
        path: KeyPath,
        elsewhere: Mapping[str, Mapping[str, Any]] = MappingProxyType({}),
    ) -> None:
        for name in values:
            if name not in known:
                section = next((section for section, keys in elsewhere.items() if name in keys), None)
                remedy = f"It belongs under [{section}]." if section else suggest(name, known)
                self._problem((*path, name), "unknown key", remedy or f"Known: {', '.join(known)}.")

    def _mapping(self, value: Any, path: KeyPath) -> Mapping[str, Any]:
        if is_mapping(value):
            return value
        self._problem(path, "expected a table of keys", f"Write a section [{'.'.join(path)}].")
        return {}

    def _attempt(self, read: Callable[[], Any], path: KeyPath) -> Any:
        try:
            return read()
        except Wrong as error:
            if self._place(path) not in [(each.file, each.key) for each in self.problems]:  # a variable that is not set
                self._problem(path, error.expected, error.remedy)
        except ConfigurationError as error:
            self._problem(path, error.message.rstrip("."), error.suggestion)
        except (ValueError, OverflowError):  # a number of hundreds of digits, a text that its type cannot hold
            self._problem(path, "expected another value", "")
        return None

    def _problem(self, path: KeyPath, message: str, remedy: str) -> None:
        self.problems.append(Problem(*self._place(path), message, remedy))

    def _place(self, path: KeyPath) -> tuple[str, str]:
        # A key inside a list, or a missing key, has the line of the nearest table around it.
        known = next(end for end in range(len(path), 0, -1) if path[:end] in self.origins)
        origin = self.origins[path[:known]]
        return origin.file, ".".join((origin.key, *path[known:]))


def _locate(problems: Sequence[Problem], source: Path | None, shown: str) -> Sequence[Problem]:
    """Return the problems; those about the file have their lines in it."""
    if source is None:
        return problems
    from dragoman.config.positions import line_of, read_lines  # only for a file with problems

    lines = read_lines(source)
    return [
        dataclasses.replace(each, line=line_of(lines, each.key.split("."))) if each.file == shown else each
        for each in problems
    ]


def _is_exposed(url: str) -> bool:
    split = urlsplit(url)
    return split.scheme == "http" and not is_loopback(split.hostname or "")


def _leaves(values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[KeyPath]:
    for name, value in values.items():
        if is_mapping(value):
            yield from _leaves(value, (*path, name))
        else:
            yield (*path, name)


def _literal_secrets(values: Mapping[str, Any], path: KeyPath = ()) -> Iterator[str]:
    """Yield the keys that hold a password or a token in plain text."""
    for name, value in values.items():
        if is_mapping(value):
            yield from _literal_secrets(value, (*path, name))
        elif isinstance(value, str) and "${" not in value and not is_encrypted(value):
            if name in ("password", "token", "client_secret", "api_key") or (
                name == "url" and _LITERAL_PASSWORD.match(value)
            ):
                yield ".".join((*path, name))


def _readable(file: str, key: str) -> str:
    return f"{file}: {key}: a secret in plain text that others can read; write ${{NAME}}, or chmod 600 the file."


def _grants(roles: Any) -> Iterator[Mapping[str, Any]]:
    """Yield the grants of roles as they are written, even if other keys of the roles are wrong."""
    for role in roles.values() if is_mapping(roles) else ():
        given = role.get("grants") if is_mapping(role) else None
        if is_list(given):
            yield from filter(is_mapping, given)
