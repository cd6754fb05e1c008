"""What the fuzz target demands holds for every statement it starts from, and it notices when it does not."""

import importlib.util
from pathlib import Path
from types import ModuleType

import pytest


@pytest.fixture(scope="module")
def fuzz_gate() -> ModuleType:
    spec = importlib.util.spec_from_file_location("fuzz_gate", Path(__file__).with_name("fuzz_gate.py"))
    assert spec
    assert spec.loader
    module = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


@pytest.fixture(scope="module")
def target(fuzz_gate):
    return fuzz_gate.Target()


def test_every_statement_of_the_corpus_keeps_the_promises_of_the_gate(target):
    seeds = list(target.seeds())
    assert len(seeds) > 1000
    for seed in seeds:
        target.one_input(seed)


@pytest.mark.parametrize("junk", [b"", b"\x01", b"\x01\xff\xfe", b"\x02\x00select 1", b"\x00" + b"'" * 1_000_000])
def test_any_bytes_are_judged(target, junk: bytes):
    target.one_input(junk)


def test_a_gate_that_lets_a_write_pass_is_caught(fuzz_gate, target, monkeypatch):
    monkeypatch.setattr(target, "check", lambda dialect, text: None)
    names = [dialect.name for dialect in target.dialects]
    with pytest.raises(fuzz_gate.Broken, match="write"):
        target.one_input(bytes([names.index("sqlite")]) + b"delete from customers")
