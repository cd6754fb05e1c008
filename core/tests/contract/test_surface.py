"""What plugins may import, and that it is all there."""

import ast
import importlib
import inspect
import re
from collections.abc import Iterable
from pathlib import Path

import dragoman
import pytest
from dragoman import errors, model

MODULES = ("dragoman", "dragoman.sql.rewriting", "dragoman.sqlalchemy", "dragoman.testing")


@pytest.mark.parametrize("module", MODULES)
def test_the_public_names_are_sorted_and_named_once(module: str):
    names = importlib.import_module(module).__all__
    assert names == ordered(set(names))


@pytest.mark.parametrize("module", MODULES)
def test_every_public_name_is_documented(module: str):
    public = importlib.import_module(module)
    kinds = {name: getattr(public, name) for name in public.__all__}
    written = {name: kind.__doc__ for name, kind in kinds.items() if inspect.isclass(kind) or inspect.isfunction(kind)}
    generated = re.compile(r"\w+\([^)]*\)")  # a dataclass without a docstring is given its signature
    assert [name for name, doc in written.items() if not doc or generated.fullmatch(doc)] == []


@pytest.mark.parametrize("module", ["dragoman.sqlalchemy", "dragoman.testing"])
def test_what_stands_in_the_open_is_public(module: str):
    """Beside its list there are modules, and what was imported to be built upon, which is public elsewhere."""
    public = importlib.import_module(module)
    defined = {name for name, value in vars(public).items() if getattr(value, "__module__", "") == module}
    assert {name for name in defined if not name.startswith("_")} <= set(public.__all__)
    assert [name for name in public.__all__ if not hasattr(public, name)] == []


def test_a_former_name_works_with_a_warning_that_tells_the_new_one(monkeypatch: pytest.MonkeyPatch):
    monkeypatch.setitem(dragoman._FORMER, "Answer", "Result")
    with pytest.warns(DeprecationWarning, match=r"dragoman\.Answer was renamed to dragoman\.Result") as warned:
        assert dragoman.Answer is dragoman.Result
    assert warned[0].filename == __file__


def test_a_former_name_is_no_longer_public_and_its_successor_is():
    assert not set(dragoman._FORMER) & set(dragoman.__all__)
    assert set(dragoman._FORMER.values()) <= set(dragoman.__all__)


def ordered(names: Iterable[str]) -> list[str]:
    """Constants, classes, functions: each by name."""
    return sorted(names, key=lambda name: (not name.isupper(), name[0].islower(), name))


@pytest.mark.parametrize("name", dragoman.__all__)
def test_every_public_name_can_be_imported(name: str):
    assert getattr(importlib.import_module("dragoman"), name) is not None


def test_type_checkers_see_the_same_names():
    tree = ast.parse(Path(dragoman.__file__).read_text(encoding="utf-8"))
    block = next(node for node in tree.body if isinstance(node, ast.If))
    imported = [alias.name for node in block.body if isinstance(node, ast.ImportFrom) for alias in node.names]
    assert ordered(imported) == dragoman.__all__


def test_an_unknown_name_is_an_attribute_error():
    with pytest.raises(AttributeError, match="'nonsense'"):
        _ = dragoman.nonsense


def test_every_error_and_every_value_is_public():
    of_errors = {
        name for name, kind in vars(errors).items() if isinstance(kind, type) and kind.__module__ == errors.__name__
    }
    of_model = {
        name for name, kind in vars(model).items() if isinstance(kind, type) and kind.__module__ == model.__name__
    }
    assert of_errors | of_model <= set(dragoman.__all__)


def test_the_tree_of_errors_is_drawn_as_it_is():
    drawn = dict(re.findall(r"── (\w+) *([A-Z_]*)", errors.__doc__ or ""))
    real = {
        name: kind.code if "code" in vars(kind) else ""
        for name, kind in vars(errors).items()
        if isinstance(kind, type) and issubclass(kind, errors.DragomanError) and kind is not errors.DragomanError
    }
    assert drawn == real


def test_every_code_is_one_errors_own():
    kinds = [kind for kind in vars(errors).values() if isinstance(kind, type) and "code" in vars(kind)]
    codes = [kind.code for kind in kinds if kind is not errors.DragomanError]
    assert len(codes) == len(set(codes))


def test_what_wraps_passes_every_method_on():
    for wrapped, base in (
        (dragoman.WrappedExecutor, dragoman.Executor),
        (dragoman.WrappedInspector, dragoman.Inspector),
    ):
        methods = {name for name, _ in inspect.getmembers(base, inspect.isfunction)}
        assert methods <= vars(wrapped).keys()


def test_a_secret_shows_itself_nowhere():
    secret = dragoman.Secret("hush")
    database = dragoman.Database(name="x", dialect="d", password=secret, url=secret, options={"token": "hush"})
    shown = f"{secret} {secret!r} {database} {database!r} {[secret]}"
    assert "hush" not in shown
    assert secret.reveal() == "hush"
