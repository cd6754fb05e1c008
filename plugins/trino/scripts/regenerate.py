"""Write the gate's list of functions from a live server: what policy.toml lets pass of SHOW FUNCTIONS.

    python scripts/regenerate.py HOST:PORT

Only the catalog is read. Look through the difference before committing it: every new line is something agents may call.
"""

from __future__ import annotations

import sys
import textwrap
from pathlib import Path

import dragoman_trino.rules
import trino
from dragoman_trino.rules import read_policy, sort_out

FILE = Path(dragoman_trino.rules.__file__).parent / "functions.toml"


def regenerate(host: str, port: int) -> None:
    """Read the server's functions and write those the policy lets pass."""
    connection = trino.dbapi.connect(host=host, port=port, user="dragoman")
    cursor = connection.cursor()
    version = cursor.execute("SELECT version()").fetchone()[0]
    rows = cursor.execute("SHOW FUNCTIONS").fetchall()
    lists = sort_out(read_policy(), [(row[0], row[3], row[4]) for row in rows])
    title = f"# What a query may call in Trino {version}. Written by scripts/regenerate.py"
    lines = [f"{title}; policy.toml says what is left out."]
    for kind, words in sorted(lists.items()):
        wrapped = textwrap.wrap(" ".join(sorted(words)), 118, break_on_hyphens=False)
        lines += ["", f"{kind} = '''", *wrapped, "'''"]
    FILE.write_text("\n".join(lines) + "\n", encoding="utf-8")


if __name__ == "__main__":
    given, _, number = sys.argv[1].rpartition(":")
    regenerate(given, int(number))
