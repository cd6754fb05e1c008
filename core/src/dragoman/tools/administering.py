"""The tools of administrators."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Iterable
from typing import Any

from dragoman.config import State
from dragoman.errors import Busy, DragomanError, InternalError, ParameterError, UnknownDatabase, Unsupported
from dragoman.gateway.kept_database import NAME as RESULTS
from dragoman.tools.administration import Administration
from dragoman.tools.answer import Body
from dragoman.tools.context import ToolCall
from dragoman.words import nearest

_SETTINGS = ("url", "description", "schemas", "max_rows", "timeout")


async def add_database(call: ToolCall) -> Body:
    """Add a database that is not configured yet."""
    name, admin = call["name"], _administration(call)
    _check_not_own(admin, name)

    def add(state: State) -> None:
        if name in state or name in admin.gateway.names:  # another worker may have added it just now
            raise ParameterError(f"The database {name!r} exists already.", suggestion="Use edit_database to change it.")
        state[name] = _merge(call, {})

    await _change(call, admin, add, "added")
    return Body(await admin.status(name))


async def edit_database(call: ToolCall) -> Body:
    """Change settings of a database, wherever it is configured."""
    name, admin = call["name"], _administration(call)
    _check_known(admin, name)
    _check_not_own(admin, name)

    def edit(state: State) -> None:
        state[name] = _merge(call, state.get(name, {}))

    await _change(call, admin, edit, "changed")
    return Body(await admin.status(name))


async def remove_database(call: ToolCall) -> Body:
    """Undo what was added or changed of a database."""
    name, admin = call["name"], _administration(call)
    _check_known(admin, name)

    def remove(state: State) -> None:
        if state.pop(name, None) is None:
            raise ParameterError(  # another worker may have removed it just now
                f"No administrator's change of {name!r} is there to remove.",
                suggestion="If it is in the server's configuration file, remove it there, then use reload.",
            )

    return Body({"changed": list(await _change(call, admin, remove, "removed"))})


async def reload(call: ToolCall) -> Body:
    """Apply the configuration file as it is now."""
    work = _administration(call).reload(f"configuration reloaded by {call.principal.name}")
    return Body({"changed": list(await _translate_errors(work))})


async def _change(call: ToolCall, admin: Administration, edit: Callable[[State], None], what: str) -> tuple[str, ...]:
    return await _translate_errors(admin.change(edit, f"database {call['name']} {what} by {call.principal.name}"))


async def _translate_errors(work: Awaitable[tuple[str, ...]]) -> tuple[str, ...]:
    """Return the names of changed databases. Errors in the configuration are raised as errors of the arguments."""
    try:
        return await work
    except (Busy, InternalError, ParameterError):
        raise
    except DragomanError as error:
        raise ParameterError(error.message, suggestion=error.suggestion) from None


def _merge(call: ToolCall, before: dict[str, Any]) -> dict[str, Any]:
    given = {name: call[name] for name in _SETTINGS if call.arguments.get(name) is not None}
    if "${" in str(given):
        # Otherwise anyone who may add a database could read the server's environment and files through its address.
        raise ParameterError("${...} is not replaced here.", suggestion="Write the value itself, or ENC:v1:...")
    roles = call.arguments.get("roles")
    _check_roles(call, roles or ())
    return {
        "settings": {**before.get("settings", {}), **given},
        "roles": before.get("roles", []) if roles is None else list(roles),
    }


def _check_roles(call: ToolCall, roles: Iterable[Any]) -> None:
    known = _administration(call).gateway.configuration.roles
    for role in roles:
        if not isinstance(role, str) or role not in known:
            near = nearest(str(role), known)
            hint = f"Did you mean {near[0]}?" if near else "Leave out roles that the configuration does not have."
            raise ParameterError(f"There is no such role: {str(role)[:100]!r}.", suggestion=hint)


def _check_known(admin: Administration, name: str) -> None:
    if name not in admin.gateway.names:
        raise UnknownDatabase(f"There is no database {name!r}.", suggestion="list_databases has the names.")


def _check_not_own(admin: Administration, name: str) -> None:
    """Refuse another database under the name of the audit's record or of callers' kept results."""
    if name == "audit" and admin.gateway.configuration.audit.database is not None:
        raise ParameterError("'audit' is the record of this server's calls.", suggestion="Take another name.")
    if name == RESULTS and admin.gateway.kept.databases.offered:
        raise ParameterError(f"{RESULTS!r} is the database of kept results.", suggestion="Take another name.")


def _administration(call: ToolCall) -> Administration:
    if call.administration is None:
        raise Unsupported(
            "This server cannot read its configuration again.", suggestion="Start it with `dragoman serve`."
        )
    return call.administration
