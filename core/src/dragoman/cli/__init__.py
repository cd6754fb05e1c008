"""The command line. Each command is a module with `add_arguments` and `run`.

Only the module of the called command is imported.
"""

from __future__ import annotations

import importlib
import os
import sys
from typing import TYPE_CHECKING, Any

from dragoman._version import VERSION
from dragoman.errors import ConfigurationError, DialectError, DragomanError, InternalError, UnknownDatabase

if TYPE_CHECKING:
    from collections.abc import Sequence

    from dragoman.cli.parser import Parser

COMMANDS = {
    "demo": "build demo databases and show what an agent can do with them",
    "serve": "run the MCP server",
    "reload": "make a running server read its configuration again",
    "query": "run one query, as an agent would",
    "queries": "list, check or run saved queries",
    "ask": "answer a question in plain words, with a language model",
    "eval": "measure how often questions are answered right",
    "export": "write the whole answer of a query to a file",
    "check": "check whether the read-only gate would allow a statement",
    "databases": "list the configured databases",
    "describe": "show what is in a database, or in a table",
    "learn": "learn what columns hold before anybody asks, and keep it",
    "may": "show what a caller may do, and which role allows it",
    "dialects": "list the installed dialects",
    "doctor": "show what the databases' roles could do if every guard failed",
    "audit": "verify, show or sum up the records of calls",
    "config": "show or check the configuration, or write a starter file",
    "token": "make a token for a program that calls over HTTP",
    "secrets": "encrypt passwords and tokens in the configuration file",
    "client-config": "print what to paste into an MCP client",
    "new-dialect": "write the beginnings of a dialect plugin",
    "new-policy": "write the beginnings of a policy plugin",
    "completion": "print the tab completion of a shell",
}

EXTENSIONS = {"ask": "ask", "eval": "ask"}
"""Commands of other distributions, and the extra that installs each."""

USAGE = 2
INTERRUPTED = 130

_BUG = "This is a bug: please report it with what DRAGOMAN_SERVER__LOG_LEVEL=error makes it write to stderr."

_EXAMPLES = """\
examples:
  dragoman demo
  dragoman serve sqlite:///shop.db crm=postgresql://reader@db/crm
  dragoman query shop 'select count(*) from orders' --config dragoman.toml
  dragoman COMMAND -h shows more
"""


def main(argv: Sequence[str] | None = None) -> None:
    """Run the program.

    Ends with `SystemExit`: 0 done, 1 refused or failed, 2 usage or configuration, 130 interrupted.
    """
    _open_closed_streams()
    given = list(sys.argv[1:] if argv is None else argv)
    if given in (["--version"], ["-V"]):  # before any import that would take longer than the answer
        print(f"dragoman {VERSION}")
        sys.exit(0)
    try:
        code = _run(given)
        sys.stdout.flush()  # here, where a full disk can be told
        sys.exit(code)
    except DragomanError as error:
        report(error)
        sys.exit(USAGE if isinstance(error, ConfigurationError | UnknownDatabase | DialectError) else 1)
    except KeyboardInterrupt:
        sys.exit(INTERRUPTED)
    except BrokenPipeError:
        # The reader of our output has left. Python would report this again while flushing at exit.
        _discard_output()
        sys.exit(1)
    except Exception as error:
        report(_explain(error))
        sys.exit(1)


def _open_closed_streams() -> None:
    """Open standard streams that nobody opened, on the null device.

    Otherwise the next file or connection gets the number of one, and what children and libraries write goes into it.
    """
    if sys.stdin and sys.stdout and sys.stderr:
        return
    while (number := os.open(os.devnull, os.O_RDWR)) <= 2:
        os.set_inheritable(number, True)
    os.close(number)
    sys.stdin = sys.stdin or open(0, closefd=False)
    sys.stdout = sys.stdout or open(1, "w", closefd=False)
    sys.stderr = sys.stderr or open(2, "w", closefd=False)


def _discard_output() -> None:
    os.dup2(os.open(os.devnull, os.O_WRONLY), 1)


def _explain(error: Exception) -> InternalError:
    """Return the error for what no command expects, and log it."""
    import errno
    import logging

    logging.getLogger(__name__).exception("the command line failed")
    if isinstance(error, OSError) and error.errno in (errno.ENOSPC, errno.EDQUOT, errno.EIO):
        _discard_output()  # Python would report it again
        return InternalError(f"The output cannot be written ({error.strerror}).", suggestion="Write it elsewhere.")
    if isinstance(error, UnicodeEncodeError) and error.encoding == sys.stdout.encoding:
        return InternalError(
            f"The output is written in {error.encoding}, which does not have all of its characters.",
            suggestion="Set PYTHONIOENCODING=utf-8.",
        )
    return InternalError(f"dragoman failed ({type(error).__name__}).", suggestion=_BUG)


def report(error: DragomanError) -> None:
    """Write an error to stderr: `CODE: message`, its line with a caret, then the remedy."""
    from dragoman.cli.common import in_our_words
    from dragoman.cli.output import put

    # In a configuration, tools have their own names.
    hint = error.suggestion if isinstance(error, ConfigurationError) else in_our_words(error.suggestion)
    lines = [f"{error.code}: {error.message}", error.context.get("position", ""), hint]
    put("\n".join(line for line in lines if line), sys.stderr)


def _run(argv: Sequence[str]) -> int:
    if "_ARGCOMPLETE" in os.environ:
        _complete()
    words = _without_help(argv)
    parser = _parser(_command_of(words))
    if not words:
        parser.print_help()
        return 0
    arguments = parser.parse_args(words)
    _silence()
    code: int = arguments.run(arguments)
    return code


def _silence() -> None:
    """Drop logs until a command configures them: errors are printed in words."""
    import logging

    logging.getLogger("dragoman").addHandler(logging.NullHandler())


def _complete() -> None:
    """Answer a shell's completion request with the possible words at the cursor, and exit."""
    import argcomplete

    argcomplete.autocomplete(_parser(_command_of(os.environ.get("COMP_LINE", "").split()[1:])))


def _command_of(words: Sequence[str]) -> str | None:
    return next((word for word in words if not word.startswith("-")), None)


def _without_help(argv: Sequence[str]) -> list[str]:
    """Return the words with `help COMMAND` changed to `COMMAND -h`."""
    if not argv or argv[0] != "help":
        return list(argv)
    return [*argv[1:], "-h"]


def _parser(chosen: str | None) -> Parser:
    """Return the parser of all commands. Only the arguments of `chosen` are declared, since its module loads slowly."""
    from dragoman.cli.parser import Parser

    parser = Parser(
        prog="dragoman",
        description="A query gateway for AI agents: one MCP server in front of many databases of many kinds.",
        epilog=_EXAMPLES,
    )
    parser.add_argument("-V", "--version", action="version", version=f"dragoman {VERSION}")
    commands = parser.add_subparsers(dest="command", metavar="COMMAND", required=True)
    for name, summary in COMMANDS.items():
        command = commands.add_parser(name, help=summary, description=summary)
        if name == chosen:
            module = _module(name)
            module.add_arguments(command)
            command.set_defaults(run=module.run)
    return parser


def _module(command: str) -> Any:
    """Return a command's module. Raises `ConfigurationError` if its distribution is not installed."""
    if command not in EXTENSIONS:
        return importlib.import_module(f"dragoman.cli.{command.replace('-', '_')}")
    from dragoman.plugins.extensions import COMMANDS as GROUP
    from dragoman.plugins.extensions import load_extension

    return load_extension(GROUP, command, EXTENSIONS[command])
