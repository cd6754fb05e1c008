"""The page of the architecture has a row for every module, and names only places that are there."""

import re
import tomllib
from pathlib import Path

ROOT = Path(__file__).parents[2]
CORE = ROOT / "core" / "src" / "dragoman"
PAGE = (ROOT / "docs" / "architecture.md").read_text(encoding="utf-8")
ROWS = re.findall(r"^\| \d+ \| (.+?) \|", PAGE, re.MULTILINE)
APART = {"pytest_plugin"}
"""Modules outside the layers: pytest imports them."""
SETTINGS = {"list", "values"}
"""Words that stand behind a module's name and are no module: `tools/list`, `audit.values`."""


def test_every_module_of_the_core_has_a_row() -> None:
    named = set(re.findall(r"`(\w+)`", " ".join(ROWS)))
    modules = {
        each.stem for each in CORE.iterdir() if not each.name.startswith(("_", ".")) and each.suffix in {"", ".py"}
    }
    assert modules - named - APART == set()
    assert named - modules == set()


def test_every_layer_that_is_checked_has_a_row() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"][
        "contracts"
    ]
    layers = {name for layer in contracts[0]["layers"] for name in re.findall(r"dragoman\.(\w+)", layer)}
    assert layers - set(re.findall(r"`(\w+)`", " ".join(ROWS))) == set()


def test_rows_stand_in_the_order_of_the_layers() -> None:
    contracts = tomllib.loads((ROOT / "pyproject.toml").read_text(encoding="utf-8"))["tool"]["importlinter"]
    layers = [set(re.findall(r"dragoman\.(\w+)", layer)) for layer in contracts["contracts"][0]["layers"]]
    named = [match[1] for row in ROWS if (match := re.match(r"`(\w+)`$", row))]
    places = [next(place for place, layer in enumerate(layers) if name in layer) for name in named]
    assert places == sorted(places)


def test_places_for_new_code_are_there() -> None:
    places = re.findall(
        r"`((?:access|audit|auth|catalog|cli|config|exports|gateway|knowledge|mcp|meaning|results|sql|telemetry|tools)[./]\w+)(?:\.py)?`",
        PAGE,
    )
    paths = [CORE / place.replace(".", "/") for place in places if place[-1].islower()]
    there = [path.exists() or path.with_suffix(".py").exists() for path in paths]
    missing = [path.name for path, found in zip(paths, there, strict=True) if not found and path.name not in SETTINGS]
    functions = {path.name for path in paths if re.search(rf"def {path.name}\b", _text(path.parent))}
    assert set(missing) - functions == set()


def test_files_outside_the_core_are_there() -> None:
    files = re.findall(r"`((?:ask|core|docs|plugins|tests)/[\w./-]+)`", PAGE)
    assert len(files) > 8
    assert [file for file in files if not (ROOT / file).exists()] == []


def _text(place: Path) -> str:
    files = place.rglob("*.py") if place.is_dir() else [place.with_suffix(".py")]
    return "".join(file.read_text(encoding="utf-8") for file in files)
