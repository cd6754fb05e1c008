"""A coverage-guided fuzz target for the read-only gate: `python tests/fuzz/fuzz_gate.py -max_total_time=60`.

An input is a byte that chooses the dialect and the text of a statement. Whatever the text, the gate answers, answers
the same again, sends what it judged, and on SQLite lets nothing pass that SQLite itself calls a write. Options are
libFuzzer's. Needs `atheris`; `one_input` does not.
"""

from __future__ import annotations

import contextlib
import importlib
import sys
import tempfile
from collections.abc import Iterable
from pathlib import Path
from typing import Any

DICTIONARY = (
    "select from where with recursive as values table union all order by limit offset fetch for update share into"
    " insert delete drop create alter set call do copy lock explain analyze show pragma attach vacuum returning lateral"
    " unnest exists case when then end cast in between like escape collate over partition rows groups filter within"
    " -- /* */ ; ' \" ` [ ] ( ) { } $$ $1 ? :: || -> ->> => @ # \\ \n E' U&' x' 1e5 0x1 .5 pg_sleep load_extension"
    " sqlite_schema pg_authid pragma_table_info json_each generate_series system.runtime.queries"
).split(" ")
# What no grammar minds: with it a text is judged as without it.
AROUND = (("\n", ""), ("", " \n"), ("/* a */ ", ""), ("", "--"))


class Broken(Exception):
    """What the gate promises does not hold for an input."""


class Target:
    """The gate of every installed dialect of ours, and of one that only has sqlglot."""

    def __init__(self) -> None:
        import apsw
        from dragoman import Dialect, DragomanError, Rules, Statement
        from dragoman.plugins import Plugins
        from dragoman.testing.corpus import setup
        from dragoman.validators import check_text

        plugins = Plugins.discover()
        names = sorted({"sqlite", "postgres", "trino"} & {found.name for found in plugins.list_installed()})
        plain = Dialect(name="plain", contract=1, sqlglot="", rules=Rules(functions=frozenset({"count", "sum"})))
        self.dialects = (plain, *(plugins.load(name).dialect for name in names))
        self.error, self.check, self.statement = DragomanError, check_text, Statement
        self.memory = apsw.Connection(":memory:")
        self.memory.execute(setup("sqlite"))
        self.abort = apsw.ExecTraceAbort, apsw.Error

    def seeds(self) -> Iterable[bytes]:
        """Yield the corpus as inputs."""
        from dragoman.testing.corpus import cases

        for number, dialect in enumerate(self.dialects):
            name = "any" if dialect.name == "plain" else dialect.name
            for case in cases(name):
                yield bytes([number]) + case.sql.encode("utf-8", "surrogateescape")

    def one_input(self, data: bytes) -> None:
        """Judge one input. Raises `Broken`, or whatever the gate should not have raised."""
        if not data:
            return
        dialect = self.dialects[data[0] % len(self.dialects)]
        text = data[1:].decode("utf-8", "surrogateescape")
        verdict = self.verdict(dialect, text)
        if self.verdict(dialect, text) != verdict:
            raise Broken("a verdict changed")
        if verdict:
            return
        self.check_sent(dialect, text)
        for before, after in AROUND:
            if found := self.verdict(dialect, before + text + after):
                raise Broken(f"white space or a comment made it {found}")
        if dialect.name == "sqlite":
            self.check_effect(text)

    def verdict(self, dialect, text: str) -> str:
        """Return the code of the refusal; empty: allowed."""
        try:
            self.check(dialect, text)
        except self.error as error:
            return error.code
        return ""

    def check_sent(self, dialect, text: str) -> None:
        """What is sent is what came, but for comments that became spaces and an end that means nothing."""
        sent = self.statement.parse(text, sqlglot=dialect.sqlglot, lexicon=dialect.lexicon).text
        if len(sent) > len(text) or any(
            new != old and (new != " " or old in "\r\n") for new, old in zip(sent, text, strict=False)
        ):
            raise Broken("the text that is sent is another")

    def check_effect(self, text: str) -> None:
        """SQLite compiles it, without running it, and says whether it writes."""
        cursor = self.memory.cursor()

        def look(cursor, sql: str, bindings: object) -> bool:
            if not cursor.is_readonly and "journal_mode" not in sql.lower():
                raise Broken("SQLite calls it a write")
            return False

        cursor.exec_trace = look
        with contextlib.suppress(*self.abort):
            cursor.execute(text)


def main() -> None:
    """Fuzz until an option of libFuzzer's ends it, from the corpus on."""
    atheris: Any = importlib.import_module("atheris")  # has no types, and no wheels for some Pythons

    with atheris.instrument_imports(include=["dragoman", "dragoman_sqlite", "dragoman_postgres", "dragoman_trino"]):
        target = Target()
        seeds = list(target.seeds())
        for seed in seeds:
            target.one_input(seed)
    with tempfile.TemporaryDirectory() as folder:
        words = Path(folder) / "words"
        words.write_text("".join(f'"{_escaped(word)}"\n' for word in DICTIONARY if word))
        corpus = Path(folder) / "corpus"
        corpus.mkdir()
        for number, seed in enumerate(seeds):
            (corpus / str(number)).write_bytes(seed)
        limits = ["-max_len=4096", "-timeout=20", "-rss_limit_mb=2048", f"-artifact_prefix={Path.cwd()}/"]
        atheris.Setup([sys.argv[0], f"-dict={words}", *limits, *sys.argv[1:], str(corpus)], target.one_input)
        atheris.Fuzz()


def _escaped(word: str) -> str:
    return "".join(char if char.isalnum() else f"\\x{ord(char):02x}" for char in word)


if __name__ == "__main__":
    main()
