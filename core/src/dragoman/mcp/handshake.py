"""The server's description of itself, in plain dictionaries, for the SDK and for the early handshake.

Imports nothing heavy, since it runs before the first answer. Tests ask the SDK for every one of these results and
compare. A protocol version that the SDK knows and this module does not makes them fail.
"""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any, Final, Protocol, TypeGuard

HANDSHAKE_VERSIONS = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
"""Versions of the protocol that begin with `initialize`, oldest first."""
MODERN_VERSION = "2026-07-28"
"""The version whose requests each carry their own envelope."""

VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
CLIENT_KEY = "io.modelcontextprotocol/clientInfo"
CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
SERVER_KEY = "io.modelcontextprotocol/serverInfo"

NAME = "dragoman"
CACHE_MS = 60_000
"""How long a client may cache what does not change while a server runs: the tools depend on the configuration."""
BRIEF_MS = 5_000
"""How long it may cache what does change: schemas, kept results, files of queries and prompts."""
CACHE_SCOPE: Final = "private"

_CAPABILITIES = {
    "tools": {"listChanged": True},
    "resources": {"subscribe": True, "listChanged": True},
    "prompts": {"listChanged": True},
    "completions": {},
}
_READING = {"readOnlyHint": True, "idempotentHint": True, "openWorldHint": False}
# A tool may change the gateway's own data, and never a database's.
_CHANGING = {"readOnlyHint": False, "destructiveHint": False, "openWorldHint": False}


class Described(Protocol):
    """A tool as `tools` describes it."""

    @property
    def name(self) -> str: ...
    @property
    def title(self) -> str | None: ...
    @property
    def description(self) -> str: ...
    @property
    def input_schema(self) -> dict[str, Any]: ...
    @property
    def output_schema(self) -> dict[str, Any] | None: ...
    @property
    def read_only(self) -> bool: ...


class Handshake:
    """The results of `initialize`, `server/discover`, `ping` and `tools/list`.

    `lists`: whether the tools are known to be the same for the client. Otherwise only the databases can decide, and
    `tools/list` is not answered here.
    """

    def __init__(self, tools: Iterable[Described], instructions: str, version: str, *, lists: bool = True) -> None:
        self.identity = {"name": NAME, "version": version}
        self.instructions = instructions
        self.tools = [describe(tool) for tool in tools]
        self._lists = lists

    def result(self, method: str, version: str) -> dict[str, Any]:
        """Return the result of a method at a protocol version. Raises `KeyError` for a method that is not ours."""
        if method == "tools/list" and not self._lists:
            raise KeyError(method)
        if version == MODERN_VERSION:
            return self._modern(method)
        results: dict[str, dict[str, Any]] = {
            "initialize": {
                "protocolVersion": version,
                "capabilities": _CAPABILITIES,
                "serverInfo": self.identity,
                "instructions": self.instructions,
            },
            "ping": {},
            "tools/list": {"tools": self.tools},
        }
        return results[method]

    def _modern(self, method: str) -> dict[str, Any]:
        results: dict[str, dict[str, Any]] = {
            "server/discover": {
                "supportedVersions": [MODERN_VERSION],
                "capabilities": _CAPABILITIES,
                "instructions": self.instructions,
            },
            "tools/list": {"tools": self.tools},
        }
        around = {"resultType": "complete", "ttlMs": CACHE_MS, "cacheScope": CACHE_SCOPE}
        return {**results[method], **around, "_meta": {SERVER_KEY: self.identity}}


def describe(tool: Described) -> dict[str, Any]:
    """Return a tool as in `tools/list`."""
    facts: dict[str, Any] = {
        "name": tool.name,
        "title": tool.title,
        "description": tool.description,
        "inputSchema": tool.input_schema,
        "outputSchema": tool.output_schema,
    }
    return {key: fact for key, fact in facts.items() if fact is not None} | {
        "annotations": _READING if tool.read_only else _CHANGING
    }


# Parts of a client's description that every SDK accepts unchanged. The SDK must judge anything else.

_CLIENT_KEYS = {"name", "version", "title", "description", "websiteUrl"}
_CAPABILITY_KEYS = {"sampling", "elicitation", "experimental", "extensions"}


def plain_client(info: Any) -> bool:
    """Return whether a client gives its name and version, perhaps with more texts."""
    if not is_object(info) or not {"name", "version"} <= info.keys() <= _CLIENT_KEYS:
        return False
    return all(isinstance(value, str) for value in info.values())


def plain_capabilities(given: Any) -> bool:
    """Return whether a client's capabilities are known and have the right shape."""
    return is_object(given) and all(_plain_capability(key, value) for key, value in given.items())


def _plain_capability(key: str, value: Any) -> bool:
    if not is_object(value):
        return False
    if key == "roots":
        return all(name == "listChanged" and isinstance(flag, bool) for name, flag in value.items())
    return key in _CAPABILITY_KEYS and all(is_object(each) for each in value.values())


def plain_envelope(meta: Any) -> bool:
    """Return whether `_meta` is the whole envelope of a modern request, and nothing else."""
    return (
        is_object(meta)
        and meta.keys() == {VERSION_KEY, CLIENT_KEY, CAPABILITIES_KEY}
        and meta[VERSION_KEY] == MODERN_VERSION
        and plain_capabilities(meta[CAPABILITIES_KEY])
        and plain_client(meta[CLIENT_KEY])
    )


def is_object(value: Any) -> TypeGuard[dict[str, Any]]:
    """Return whether a value is a JSON object."""
    return isinstance(value, dict)
