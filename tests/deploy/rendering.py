"""Renders the chart's templates: the few actions they use, and an error for any other."""

import hashlib
import json
import re
from collections.abc import Iterator, Mapping
from typing import Any

_ACTION = re.compile(r"\s*\{\{- (.*?) \}\}|\{\{ (.*?) \}\}")


def render(template: str, values: Mapping[str, Any], release: str = "team") -> str:
    """Return a template's text; `{{- if X }}` and `{{- end }}` stand in lines of their own."""
    scope = {"Values": values, "Release": {"Name": release}}
    return _ACTION.sub(lambda found: _evaluate(found[1] or found[2], scope), "\n".join(_lines(template, scope)))


def _lines(template: str, scope: Mapping[str, Any]) -> Iterator[str]:
    shown = [True]
    for line in template.splitlines():
        word = line.strip()
        if found := re.fullmatch(r"\{\{- if (\S+) \}\}", word):
            shown.append(shown[-1] and bool(_value(found[1], scope)))
        elif word == "{{- end }}":
            shown.pop()
        elif shown[-1]:
            yield line


def _evaluate(action: str, scope: Mapping[str, Any]) -> str:
    first, *pipes = [part.strip() for part in action.split("|")]
    value: Any = _value(first.removeprefix("toYaml "), scope)
    if first.startswith("toYaml "):
        value = json.dumps(value)  # which is YAML
    for pipe in pipes:
        if pipe == "sha256sum":
            value = hashlib.sha256(value.encode()).hexdigest()
        elif found := re.fullmatch(r"nindent (\d+)", pipe):
            pad = " " * int(found[1])
            value = "".join(f"\n{pad}{line}" for line in str(value).split("\n"))
        else:
            raise ValueError(f"no such function: {pipe}")
    return str(value)


def _value(path: str, scope: Mapping[str, Any]) -> Any:
    value: Any = scope
    for name in path.lstrip(".").split("."):
        value = value[name]
    return value
