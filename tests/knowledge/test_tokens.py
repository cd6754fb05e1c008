"""What a question costs in calls and tokens does not rise; `tests/benchmarks/tokens.py` says how it is measured."""

import importlib.util
import json

import pytest

pytestmark = pytest.mark.full


async def test_no_question_has_become_dearer(request):
    path = request.config.rootpath / "tests/benchmarks/tokens.py"
    spec = importlib.util.spec_from_file_location("tokens_benchmark", path)
    assert spec is not None
    assert spec.loader is not None
    benchmark = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(benchmark)
    known = json.loads(benchmark.FIGURES.read_text(encoding="utf-8"))
    measured = await benchmark.measure()
    assert measured.keys() == known.keys()
    for name, figures in measured.items():
        assert figures["calls"] <= known[name]["calls"], (name, figures)
        # What fits is told to the byte; a file's order of pages may change a list of values by a few.
        assert figures["tokens"] <= known[name]["tokens"] * 1.02, f"{name}: {figures}; known: {known[name]}"
