"""The look of the demo: panels and colours in a terminal, the same text without them elsewhere."""

from __future__ import annotations

import json
from collections.abc import Iterable, Sequence
from contextlib import AbstractContextManager, nullcontext
from typing import TYPE_CHECKING, Any

from pygments.token import Token  # installed with rich
from rich.box import ROUNDED, SIMPLE_HEAD
from rich.console import Console, Group, RenderableType
from rich.padding import Padding
from rich.panel import Panel
from rich.style import Style
from rich.syntax import ANSISyntaxTheme, Syntax
from rich.table import Table
from rich.text import Text

from dragoman.cli.output import numeric, text_of
from dragoman.model import Database
from dragoman.words import visible

if TYPE_CHECKING:
    from dragoman.mcp.tour import Step

_PLAIN_WIDTH = 110
# Names keep the terminal's own colour, so that they are readable on light and dark backgrounds.
_THEME = ANSISyntaxTheme(
    {
        Token.Keyword: Style(bold=True),
        Token.Literal.String: Style(color="green"),
        Token.Literal.Number: Style(color="cyan"),
        Token.Comment: Style(dim=True),
    }
)


class Stage:
    """Prints the demo to stdout."""

    def __init__(self) -> None:
        self._terminal = Console().is_terminal
        self._console = Console() if self._terminal else Console(width=_PLAIN_WIDTH, no_color=True)
        self._steps = 0

    def working(self, what: str) -> AbstractContextManager[object]:
        """Show that something takes time."""
        return self._console.status(f"{what} ...") if self._terminal else nullcontext()

    def opening(self, databases: Iterable[Database]) -> None:
        """Introduce the demo."""
        self._console.print(Text("dragoman", style="bold magenta") + Text(": one MCP server, many databases"))
        names = ", ".join(f"{database.name} ({database.dialect})" for database in databases)
        self._console.print(f"Databases: {names}\n", highlight=False)

    def step(self, step: Step) -> None:
        """Show one call and its answer."""
        self._steps += 1
        shown = Group(*self._call(step), Text(), *self._answer(step))
        title, timing = f"{self._steps}. {step.title}", f"{step.elapsed_ms:.0f} ms"
        if self._terminal:
            colour = "red" if step.is_error else "cyan"
            panel = Panel(shown, title=f"[bold]{title}", title_align="left", subtitle=timing, border_style=colour)
            panel.box, panel.subtitle_align = ROUNDED, "right"
            self._console.print(panel)
        else:
            with self._console.capture() as captured:
                self._console.print(Padding(shown, (0, 0, 1, 2)))
            lines = [line.rstrip() for line in captured.get().splitlines()]
            print("\n".join([f"{title} ({timing})", *lines]))

    def closing(self, generic: str, claude_code: str) -> None:
        """Show the next step: what to paste into a client."""
        self._console.print("Connect your own client. Paste this into its MCP configuration:", style="bold")
        print(generic)
        self._console.print("\nor, for Claude Code, run:", style="bold")
        print(claude_code)

    def serving(self, snippet: str) -> None:
        """Show how to connect to the server that starts now."""
        self._console.print("An HTTP server starts; Ctrl-C stops it. Paste this into a client:", style="bold")
        print(snippet, flush=True)

    def _call(self, step: Step) -> Iterable[RenderableType]:
        given = ", ".join(f"{key}={text_of_argument(value)}" for key, value in step.arguments.items() if key != "sql")
        yield Text(f"{step.tool}({given})", style="bold")
        if "sql" in step.arguments:
            yield self._sql(step.arguments["sql"])

    def _answer(self, step: Step) -> Iterable[RenderableType]:
        if step.is_error:
            yield from _refusal(step.answer["error"])
            return
        match step.tool:
            case "list_databases":
                columns = ("name", "dialect", "version", "status", "description")
                yield self._table(
                    columns, [[each.get(key, "") for key in columns] for each in step.answer["databases"]]
                )
            case "describe_table":
                for table, lines in step.answer["tables"].items():
                    yield Text(table, style="bold")
                    yield from (Text(f"  {visible(line)}") for line in lines)
            case "find_join_path":
                yield from self._path(step.answer["paths"][0])
            case _:
                yield from self._result(step.answer)

    def _path(self, path: dict[str, Any]) -> Iterable[RenderableType]:
        steps = path["steps"]
        yield Text(" -> ".join([steps[0]["from_table"], *(step["to_table"] for step in steps)]), style="green")
        yield self._sql(path["sql"])

    def _result(self, answer: dict[str, Any]) -> Iterable[RenderableType]:
        yield self._table(answer["columns"], answer["rows"])
        if "sql" in answer:
            yield Text("ran as:", style="dim")
            yield self._sql(answer["sql"])
        for notice in answer.get("notices", []):
            yield Text(f"notice: {visible(notice)}", style="yellow")
        if cut := answer.get("truncated"):
            yield Text(f"truncated: {json.dumps(cut, ensure_ascii=False)}", style="yellow")

    def _sql(self, text: str) -> RenderableType:
        return Syntax(text, "sql", theme=_THEME, word_wrap=True) if self._terminal else Text(text)

    def _objects(self, columns: Sequence[str], objects: Sequence[dict[str, Any]]) -> RenderableType:
        return self._table(columns, [[each.get(column, "") for column in columns] for each in objects])

    def _table(self, columns: Sequence[str], rows: Sequence[Sequence[Any]]) -> RenderableType:
        table = Table(box=SIMPLE_HEAD if self._terminal else None, header_style="bold", pad_edge=False, show_edge=False)
        for place, name in enumerate(columns):
            table.add_column(Text(visible(name)), justify="right" if numeric(rows, place) else "left", overflow="fold")
        for row in rows:
            table.add_row(*(Text("NULL" if value is None else visible(text_of(value))) for value in row))
        return table


def text_of_argument(value: Any) -> str:
    """Return an argument as JSON."""
    return json.dumps(value, ensure_ascii=False)


def _refusal(error: dict[str, Any]) -> Iterable[RenderableType]:
    yield Text(f"{error['code']}: {error['message']}", style="red")
    if suggestion := error.get("suggestion"):
        yield Text(suggestion)
