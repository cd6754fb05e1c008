"""The loaded configuration: frozen values, independent of how they were written."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field
from datetime import datetime
from pathlib import Path
from types import MappingProxyType
from typing import Any, Literal

from dragoman.config.roles import Role
from dragoman.errors import ConfigurationError
from dragoman.model import Database, Secret

LogLevel = Literal["debug", "info", "warning", "error"]


def _no_sources() -> Mapping[str, str]:
    return MappingProxyType({})


def _no_policies() -> Mapping[str, Mapping[str, Any]]:
    return MappingProxyType({})


def _no_roles() -> Mapping[str, Role]:
    return MappingProxyType({})


def _no_scopes() -> Mapping[str, tuple[str, ...]]:
    return MappingProxyType({})


def is_loopback(host: str) -> bool:
    """Return whether a server that listens on `host` can be reached only from this machine."""
    import ipaddress

    if host.lower() == "localhost":
        return True
    try:
        return ipaddress.ip_address(host.strip("[]")).is_loopback
    except ValueError:
        return False


@dataclass(frozen=True, slots=True, kw_only=True)
class StaticToken:
    """A token that `dragoman token create` made. `hash` is `sha256:` and 64 hexadecimal digits."""

    name: str
    hash: str
    expires: datetime | None = None
    groups: frozenset[str] = frozenset()


@dataclass(frozen=True, slots=True, kw_only=True)
class Auth:
    """An identity provider whose tokens are accepted. One of `jwks_url` and `introspection_url` is given.

    - `audience`: the accepted audiences of a token. The first that is a URL is the server's own address.
    - `scopes`: the scopes that every call needs.
    - `implied_scopes`: by the name of a broader scope, the scopes that it includes.
    - `client_id`, `client_secret`: the server's own credentials at introspection.
    """

    issuer: str
    audience: tuple[str, ...]
    scopes: tuple[str, ...] = ()
    implied_scopes: Mapping[str, tuple[str, ...]] = field(default_factory=_no_scopes, hash=False)
    jwks_url: str = ""
    introspection_url: str = ""
    client_id: str = ""
    client_secret: Secret | None = None
    user_claim: str = "sub"
    groups_claim: str = "groups"


@dataclass(frozen=True, slots=True, kw_only=True)
class Server:
    """How the MCP server is reached, what it offers, and who may call it.

    - `tools`: profiles, toolsets and tools' names.
    - `tls_cert`, `tls_key`: files of the certificate and its key. Without them the server speaks plain HTTP.
    - `watch`: whether a changed configuration file is applied automatically.
    - `trusted_proxies`: addresses and networks whose `X-Forwarded-User` is trusted.
    - `queries_dir`: the folder of saved queries. Callers may add to it if `save_queries` is true.
    - `prompts_dir`: the folder of prompts. Those under `ask` replace the shipped ones of `ask`.
    - `workers`: processes that serve HTTP; each has pools of its own.
    - `state_dir`: keeps over restarts what was learned of databases, and what administrators change.
    """

    transport: Literal["stdio", "http"] = "stdio"
    host: str = "127.0.0.1"
    port: int = 8080
    tools: str | tuple[str, ...] = "standard"
    result_format: Literal["both", "structured", "text"] = "both"
    log_level: LogLevel = "info"
    log_format: Literal["json", "text"] = "json"
    tls_cert: Path | None = None
    tls_key: Path | None = None
    watch: bool = False
    token: Secret | None = None
    tokens: tuple[StaticToken, ...] = ()
    auth: Auth | None = None
    trusted_proxies: tuple[str, ...] = ()
    allowed_hosts: tuple[str, ...] = ()
    allowed_origins: tuple[str, ...] = ()
    max_concurrent: int = 64
    workers: int = 1
    metrics: bool = False
    slow_query: float = 0.0
    drain: float = 0.0
    grace: float = 0.5
    queries_dir: Path | None = None
    prompts_dir: Path | None = None
    state_dir: Path | None = None
    save_queries: bool = False
    results: bool = True

    @property
    def has_sign_in(self) -> bool:
        """Whether callers over HTTP must sign in."""
        return bool(self.token or self.tokens or self.auth or self.trusted_proxies)

    @property
    def scheme(self) -> str:
        """The scheme of the server's address."""
        return "http" if self.tls_cert is None else "https"

    def check_exposure(self, *, allow_unauthenticated: bool = False) -> None:
        """Raise `ConfigurationError` when other machines could query the databases without a token."""
        if self.transport == "stdio" or self.has_sign_in or allow_unauthenticated or is_loopback(self.host):
            return
        raise ConfigurationError(
            f"The server would listen on {self.host} for anyone: server.token is not set.",
            suggestion="Set server.token (or DRAGOMAN_SERVER__TOKEN), [[server.tokens]] or [server.auth], listen on"
            " 127.0.0.1,"
            " or pass --allow-unauthenticated when something in front of it asks who calls.",
        )


@dataclass(frozen=True, slots=True, kw_only=True)
class Audit:
    """What is recorded of every call, and where. Without `path` and `url` there is no audit.

    - `path`: names the files, one per day.
    - `url`: of the `database` that has the table.
    - `text`: what is kept of a statement.
    - `values`: whether its parameters are kept.
    - `required`: whether a call gets no answer if its record cannot be written.
    """

    path: Path | None = None
    url: Secret | None = None
    database: Database | None = None
    text: Literal["full", "hash", "off"] = "full"
    values: bool = False
    required: bool = True


@dataclass(frozen=True, slots=True, kw_only=True)
class Results:
    """Limits of kept results: rows and bytes of one, bytes of a caller and of all, seconds since the last reading.

    - `dir`: the folder; by default the system's folder for temporary files.
    - `timeout`: the seconds that a kept query, or the writing of its file, may take.
    - `reuse`: the seconds in which a repeated statement of the same caller is answered from a kept result.
    """

    dir: Path | None = None
    max_rows: int = 10_000_000
    max_bytes: int = 4_000_000_000
    max_bytes_per_caller: int = 1_000_000_000
    ttl: float = 3600.0
    timeout: float = 600.0
    reuse: float = 0.0


@dataclass(frozen=True, slots=True, kw_only=True)
class ModelSettings:
    """The language model of `ask`. `name`: `provider:model`. `timeout`: seconds for one reply, retries included.

    - `send`: what may be sent to it.
    - `check`: when it is asked whether an answer fits the question.
    - `candidates`: the number of queries it writes. The answer is the result that most of them agree on.
    - `max_tokens`: of one reply.
    - `max_attempts`: queries tried for one question.
    - `max_plan_cost`: queries with a higher estimated cost are not run.
    - `input_price`, `output_price`: of a million tokens, in the currency of `max_cost_per_call` and `max_cost_per_day`.
      These hold for each caller, as the limits of tokens do. None: no limit.
    - `examples_dir`: the folder of answers that were marked right or wrong.
    - `record`: the file to which prompts and replies are added.
    - `replay`: such a file, whose replies are used instead of the model's.
    """

    name: str
    base_url: str = ""
    api_key: Secret | None = None
    max_tokens: int = 4000
    max_attempts: int = 3
    send: Literal["schema", "values", "rows"] = "schema"
    check: Literal["empty", "always"] = "empty"
    candidates: int = 1
    timeout: float = 60.0
    max_concurrent: int = 16
    max_plan_cost: float | None = None
    max_tokens_per_call: int = 50_000
    max_tokens_per_day: int | None = None
    input_price: float = 0.0
    output_price: float = 0.0
    max_cost_per_call: float | None = None
    max_cost_per_day: float | None = None
    examples_dir: Path | None = None
    record: Path | None = None
    replay: Path | None = None


@dataclass(frozen=True, slots=True, kw_only=True)
class Configuration:
    """The whole configuration, merged.

    - `source`: the configuration file, if there is one.
    - `sources`: by dotted key, the source of each given value.
    - `warnings`: settings that are allowed and probably mistakes.
    - `variables`: the environment variables that were read.
    - `roles`: by name. Without any, everybody may do whatever is configured.
    - `policies`: by the policy's name, the options of policy plugins as written. Each plugin declares and checks its
      own.
    - `model`: answers questions in plain words. None: nothing does.
    - `secrets`: the dotted keys whose values came from a file, a store or an encrypted text.
    """

    databases: Mapping[str, Database]
    policies: Mapping[str, Mapping[str, Any]] = field(default_factory=_no_policies, hash=False, repr=False)
    roles: Mapping[str, Role] = field(default_factory=_no_roles, hash=False)
    default_database: str | None = None
    server: Server = Server()
    results: Results = Results()
    audit: Audit = Audit()
    model: ModelSettings | None = None
    source: Path | None = None
    sources: Mapping[str, str] = field(default_factory=_no_sources, hash=False)
    warnings: tuple[str, ...] = ()
    variables: tuple[str, ...] = ()
    secrets: frozenset[str] = frozenset()
