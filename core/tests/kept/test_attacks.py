"""Attacks on kept results, made by chance from a seed: none reads another's rows, and nothing told as kept is lost."""

from __future__ import annotations

import asyncio
import os
import random
import shutil
import tempfile
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path
from typing import Any

import pytest
from dragoman import Column, DragomanError, Encoded, Principal, ResultNotFound, RowStream
from dragoman.kept import Bounds, Kept, Store

BOUNDS = Bounds(max_bytes=10**8, max_bytes_per_caller=10**7, ttl=100)
OWNERS = [Principal("user", issuer="i", subject=subject) for subject in ("1", "2")]
STRANGERS = [
    Principal("user"),
    Principal("user", issuer="i", subject="3"),
    Principal("user", issuer="j", subject="1"),
    Principal("user", issuer="i"),
    Principal("1", token="i"),
]
NAMES = ["a", "b", "A", "orders"]
GUESSES = ["../a", "a.rows", "", "*", "a\0", "%61", "/etc/passwd", "a" * 64, "lock", "export", "a/../a"]


class Field:
    """A store, its clock, and what its owners were told."""

    def __init__(self, folder: Path, seed: int) -> None:
        self.folder = folder
        self.chance = random.Random(seed)
        self.now = 0.0
        self.store = Store(folder, BOUNDS, lambda: self.now)
        self.told: dict[tuple[str, str], tuple[int, float]] = {}
        self.marks = 0

    def stream(self, owner: Principal, rows: int, fails: bool) -> Any:
        @asynccontextmanager
        async def opened() -> AsyncIterator[RowStream]:
            async def batches() -> AsyncIterator[Encoded]:
                for number in range(rows):
                    yield Encoded.of([b'["%b",%d]' % (owner.subject.encode(), number)])
                    await asyncio.sleep(0)
                if fails:
                    raise OSError(28, "no space left")

            yield RowStream([Column("owner", "text"), Column("n", "int")], batches())

        return opened

    async def keep(self) -> None:
        """Keep a result, now and then on a disk that fills up while it is written."""
        owner, name, rows = self.chance.choice(OWNERS), self.chance.choice(NAMES), self.chance.randrange(1, 40)
        fails = self.chance.random() < 0.2
        told = owner.subject, name.lower()  # names of results are the same in any case
        self.told.pop(told, None)  # a name that is kept again ends the older result
        try:
            await self.store.keep(owner, name, "shop", (("shop", "SELECT 1", "all"),), self.stream(owner, rows, fails))
        except DragomanError:
            assert fails
            return
        self.told[told] = rows, self.now

    async def steal(self) -> None:
        """Ask for results as somebody else, by names that are right and by names that are not."""
        stranger = self.chance.choice(STRANGERS)
        with pytest.raises(ResultNotFound):
            self.store.find(stranger, self.chance.choice(NAMES + GUESSES))
        with pytest.raises(ResultNotFound):
            await self.store.drop(stranger, self.chance.choice(NAMES + GUESSES))
        assert self.store.of(stranger) == ()

    async def guess(self) -> None:
        """Ask as an owner for what is no name of a result."""
        with pytest.raises(ResultNotFound):
            self.store.find(self.chance.choice(OWNERS), self.chance.choice(GUESSES))

    async def wait(self) -> None:
        """Let time pass; what nobody reads goes."""
        self.now += self.chance.choice([1, 30, 99, 101])

    async def race(self) -> None:
        """Keep, read and drop one name at once."""
        owner, name = self.chance.choice(OWNERS), self.chance.choice(NAMES)
        self.told.pop((owner.subject, name.lower()), None)
        stream = self.stream(owner, 30, False)
        await asyncio.gather(
            self.store.keep(owner, name, "shop", (), stream),
            self.store.keep(owner, name, "shop", (), stream),
            self.store.drop(owner, name),
            return_exceptions=True,
        )
        for kept in self.store.of(owner):
            if kept.name.lower() == name.lower():
                await self.store.drop(owner, name)

    async def drop(self) -> None:
        """End a result of one's own."""
        owner, name = self.chance.choice(OWNERS), self.chance.choice(NAMES)
        if self.told.pop((owner.subject, name.lower()), None):
            try:
                await self.store.drop(owner, name)
            except ResultNotFound:
                assert self.now > 100

    def check(self) -> None:
        """Everything that was told as kept and is not expired is there, whole, and its owner's alone."""
        for owner in OWNERS:
            kept = {each.name.lower(): each for each in self.store.of(owner)}
            for (subject, name), (rows, since) in list(self.told.items()):
                if subject == owner.subject and name not in kept:
                    assert self.now - since >= BOUNDS.ttl
                    del self.told[subject, name]
                elif subject == owner.subject:
                    assert kept[name].pages.rows == rows
            assert all(self.is_own(owner, each) for each in kept.values())
        files = [path for path in self.folder.rglob("*") if path.is_file()]
        assert all(path.stat().st_mode & 0o077 == 0 for path in files)
        known = {each.pages.path for owner in OWNERS for each in self.store.of(owner)}
        assert {path for path in files if path.suffix == ".rows"} == known

    def is_own(self, owner: Principal, kept: Kept) -> bool:
        values = [row for batch in kept.pages.batches() for row in batch]
        return values == [[owner.subject, number] for number in range(len(values))]


async def attack(folder: Path, seed: int, steps: int) -> None:
    field = Field(folder, seed)
    moves = [field.keep, field.keep, field.steal, field.guess, field.wait, field.race, field.drop]
    for _ in range(steps):
        await field.chance.choice(moves)()
        field.check()
    await field.store.aclose()
    assert [path for path in folder.rglob("*") if path.is_file()] == []


@pytest.fixture
def anyio_backend() -> str:
    return "asyncio"


@pytest.mark.anyio
@pytest.mark.parametrize("seed", range(10))
async def test_no_attack_succeeds(tmp_path: Path, seed: int):
    await attack(tmp_path, seed, 20)


@pytest.mark.nightly
@pytest.mark.anyio
async def test_no_attack_of_a_thousand_succeeds(tmp_path: Path):
    for seed in range(10, 60):
        folder = tmp_path / str(seed)
        await attack(folder, seed, 20)
        shutil.rmtree(folder)


@pytest.mark.parametrize("planted", ["a link", "an open folder"])
async def test_nothing_is_kept_where_another_user_may_have_put_a_folder(tmp_path, monkeypatch, planted):
    """The folder for temporary files is everybody's, and the name of the one below it can be guessed."""
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    taken, theirs = tmp_path / f"dragoman-results-{os.getuid()}", tmp_path / "theirs"
    theirs.mkdir()
    if planted == "a link":
        taken.symlink_to(theirs)
    else:
        taken.mkdir()
        taken.chmod(0o777)
    store = Store(None, Bounds(max_bytes=10**9, max_bytes_per_caller=10**9, ttl=100))
    folder = store.folder_of(Principal("ada"))
    assert list(taken.iterdir()) == list(theirs.iterdir()) == []
    assert folder.parent.parent.stat().st_mode & 0o777 == 0o700
    await store.aclose()
