"""Files that hold secrets are their owner's alone, and whole or not there."""

import stat
from pathlib import Path

import pytest
from dragoman.config import read_state, write_state
from dragoman.errors import ConfigurationError
from dragoman.private import create_private, write_private


def test_a_private_file_is_its_owner_s_alone(tmp_path: Path):
    path = tmp_path / "state" / "file"
    write_private(path, b"one")
    write_private(path, b"two")
    assert path.read_bytes() == b"two"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert stat.S_IMODE(path.parent.stat().st_mode) == 0o700
    assert list(path.parent.iterdir()) == [path]


def test_a_new_file_takes_no_other_s_place(tmp_path: Path):
    path = tmp_path / "file"
    create_private(path, b"one")
    with pytest.raises(FileExistsError):
        create_private(path, b"two")
    assert path.read_bytes() == b"one"
    assert stat.S_IMODE(path.stat().st_mode) == 0o600
    assert list(tmp_path.iterdir()) == [path]


def test_nothing_is_left_of_a_state_that_cannot_be_written(tmp_path: Path):
    (tmp_path / "databases.json").mkdir()  # no file can take its place
    with pytest.raises(ConfigurationError, match="cannot be written"):
        write_state(tmp_path, {"shop": {"settings": {"url": "postgresql://reader:secret@host/shop"}}})
    assert [each.name for each in tmp_path.iterdir()] == ["databases.json"]


def test_a_state_is_read_as_it_was_written(tmp_path: Path):
    state = {"shop": {"settings": {"url": "sqlite:///shop.db"}, "roles": ["sales"]}}
    write_state(tmp_path, state)
    assert read_state(tmp_path) == state
