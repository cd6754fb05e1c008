"""Describes mistakes of plugin authors in terms of the contract: what was given, and what is wanted."""

from __future__ import annotations

import re
import sys
import traceback
from types import FrameType
from typing import Any, Final, cast

from dragoman.dialect import Capability, Dialect, Rules
from dragoman.shapes import Malformed, check
from dragoman.sql.grammars import near_grammar, sqlglot_reads
from dragoman.words import display, nearest

_CAPABILITIES: Final = [capability.name for capability in Capability]
# Python's messages about a constructor that cannot run. They contain only names of classes and parameters.
_ABSTRACT: Final = re.compile(r"Can't instantiate abstract class (\w+) .*?abstract methods? (.+)")
_IMPORTED: Final = re.compile(r"cannot import name '(\w+)' from (?:partially initialized module )?'([\w.]+)'")
_CALLED: Final = re.compile(r"(\w+)\.__init__\(\) (missing .+|got an unexpected keyword argument .+)")


def check_dialect(dialect: Dialect) -> None:
    """Raise `Malformed` for a `Dialect` whose fields do not match the contract.

    Its message continues a sentence with "it".
    """
    _check_capabilities(dialect)
    check(Dialect, [dialect], "dialect")
    if len(dialect.quote_marks) != 2:
        raise Malformed(f"gave Dialect.quote_marks as {display(dialect.quote_marks)!r}, not as two characters")
    if not sqlglot_reads(dialect.sqlglot):
        near = near_grammar(dialect.sqlglot)
        hint = f"; did you mean {near!r}?" if near else ""
        raise Malformed(f"gave Dialect.sqlglot as {display(dialect.sqlglot)!r}, not as a dialect sqlglot knows{hint}")
    _check_lower("Dialect.reserved", dialect.reserved)
    _check_lower("Dialect.misread", dialect.misread)
    _check_lower("Dialect.implicit_columns", dialect.implicit_columns)
    if isinstance(dialect.rules, Rules):
        _check_lower("Rules.functions", dialect.rules.functions)
        _check_lower("Rules.table_functions", dialect.rules.table_functions)


def words_of(error: BaseException) -> str:
    """Return the message of a plugin's exception if it is plain and safe to show; else an empty text.

    The message continues a sentence with "it".
    """
    if isinstance(error, Malformed):
        return str(error)
    if isinstance(error, ImportError):
        return _words_of_import(error)
    text = str(error) if isinstance(error, TypeError) else ""
    if found := _ABSTRACT.search(text):
        lacks = ", ".join(re.findall(r"\w+", found[2]))
        return f"makes the class {found[1]}, which lacks {lacks}"
    if found := _CALLED.search(text):
        return f"makes {found[1]} wrongly: {found[2]}"
    return ""


def _words_of_import(error: ImportError) -> str:
    """Return what could not be imported, and from where, without the path that Python adds."""
    if isinstance(error, ModuleNotFoundError):
        return f"imports the module {error.name!r}"
    found = _IMPORTED.match(str(error))
    if not found:
        return ""
    near = nearest(found[1], getattr(sys.modules.get(found[2]), "__all__", ()))
    return f"imports {found[1]!r} from {found[2]}, which has none" + (f" (did you mean {near[0]!r}?)" if near else "")


def place_of(error: BaseException, module: str) -> str:
    """Return the last place in a plugin's own package that an exception passed.

    For example ` in dragoman_odd, line 3`; else an empty text.
    """
    if isinstance(error, SyntaxError):
        return f" at line {error.lineno}" if error.lineno else ""
    package = module.partition(".")[0]
    frames = [each for each in traceback.walk_tb(error.__traceback__) if _module(each[0]).split(".")[0] == package]
    return f" in {_module(frames[-1][0])}, line {frames[-1][1]}" if frames else ""


def _module(frame: FrameType) -> str:
    return str(frame.f_globals.get("__name__", ""))


def _check_capabilities(dialect: Dialect) -> None:
    """Check `Dialect.capabilities`.

    Most authors write a text instead of a member, and a text is a collection of letters.
    """
    given: Any = dialect.capabilities
    if not isinstance(given, frozenset):
        raise Malformed(
            f"gave Dialect.capabilities as a {type(given).__name__}, not as a frozenset of Capability: write"
            " frozenset({Capability.CANCEL, ...})"
        )
    for each in cast("frozenset[object]", given):
        if not isinstance(each, Capability):
            raise Malformed(
                f"gave the capability {display(str(each))!r} as a {type(each).__name__}, not as a member of Capability"
                f"{_suggest(str(each))}"
            )


def _suggest(text: str) -> str:
    near = nearest(text.upper().replace(" ", "_"), _CAPABILITIES)
    return f": did you mean Capability.{near[0]}?" if near else ""


def _check_lower(field: str, names: frozenset[str]) -> None:
    wrong = sorted(name for name in names if name != name.lower())
    if wrong:
        raise Malformed(f"gave {display(wrong[0])!r} in {field}, which must be in lower case")
