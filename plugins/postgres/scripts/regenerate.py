"""Write the gate's allow lists from live servers: what policy.toml lets pass of each one's catalog.

    python scripts/regenerate.py postgresql://... [postgresql://... ...]

Each server's list goes to rules/<major>.toml. A server that has the extensions of policy.toml adds to extensions.toml.
Only the catalog is read. Look through the difference before committing it: every new line is something agents may call.
"""

from __future__ import annotations

import asyncio
import sys
from collections.abc import Iterable, Mapping
from pathlib import Path

import asyncpg
from dragoman_postgres.rules import inventory
from dragoman_postgres.rules.policy import read_policy

RULES = Path(inventory.__file__).parent
HEADS = {
    "functions": "Callable by name.",
    "refused": "There, and refused; known so that (value).name, which calls functions as well, is refused too.",
    "operators": "Callable without schema, or with that of the catalog.",
    "relations": "Readable. Without its schema a name of pg_catalog always means that schema's.",
    "types": "Types of pg_catalog, which can also be written as functions.",
}


def write(path: Path, title: str, lists: Mapping[str, Iterable[str]]) -> None:
    """Write lists of words, sorted and wrapped, under their headings."""
    lines = [f"# {title} Written by scripts/regenerate.py; policy.toml says what is left out, and why."]
    for name, words in lists.items():
        lines += ["", f"# {HEADS[name]}", f"{name} = '''", *wrapped(sorted(words)), "'''"]
    path.write_text("\n".join(lines) + "\n", encoding="utf-8")


def wrapped(words: Iterable[str]) -> list[str]:
    """Return lines of at most 118 characters. Operators are full of hyphens, which textwrap would break at."""
    lines = [""]
    for word in words:
        if lines[-1] and len(lines[-1]) + len(word) > 117:
            lines.append("")
        lines[-1] += f" {word}" if lines[-1] else word
    return lines


async def regenerate(urls: list[str]) -> None:
    """Read every server; their lists of extensions are joined."""
    policy = read_policy()
    joined: dict[str, set[str]] = {}
    for url in urls:
        connection = await asyncpg.connect(url)
        try:
            major = connection.get_server_version().major
            own = await inventory.own(connection, policy)
            write(RULES / f"{major}.toml", f"What a query may use in PostgreSQL {major}.", own)
            for name, words in (await inventory.extensions(connection, policy)).items():
                joined.setdefault(name, set()).update(words)
        finally:
            await connection.close()
    if joined["functions"]:
        write(RULES / "extensions.toml", "What a query may use of well-known extensions.", joined)


if __name__ == "__main__":
    asyncio.run(regenerate(sys.argv[1:]))
