"""The reference page is what the code says today."""

import importlib.util
from pathlib import Path

import dragoman
import dragoman.sqlalchemy
import dragoman.testing

DOCS = Path(__file__).parents[2] / "docs"


def generated() -> str:
    spec = importlib.util.spec_from_file_location("make_reference", DOCS / "make_reference.py")
    assert spec is not None
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module.page()


def test_the_page_is_up_to_date():
    """Else run `python docs/make_reference.py`."""
    assert (DOCS / "reference.md").read_text(encoding="utf-8") == generated()


def test_every_public_name_has_its_place():
    page = generated()
    names = [*dragoman.__all__, *dragoman.sqlalchemy.__all__, *dragoman.testing.__all__]
    assert [name for name in names if f"\n### {name}\n" not in page] == []
