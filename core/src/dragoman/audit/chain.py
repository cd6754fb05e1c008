"""The chain of records: every line holds the seal of the line before it, so a change of any line shows in the next one.

A line is `{"seq":N,"prev":"SEAL OF N-1", ...the record..., "seal":"SHA-256 of everything before"}`.
"""

from __future__ import annotations

import re
from hashlib import sha256
from typing import NamedTuple

_TAIL = len(',"seal":""}') + 64
_MARK = b',"seal":"'
_LINE = re.compile(rb'\{"seq":([0-9]{1,18}),"prev":"([0-9a-f]{64})",')


class Link(NamedTuple):
    """A place in a chain: the number of a record and its seal."""

    seq: int
    seal: str

    def __str__(self) -> str:
        """Return the number and the beginning of the seal: enough to find out whether the record still exists."""
        return f"{self.seq}:{self.seal[:16]}"


BEGIN = Link(0, "0" * 64)
"""The link before the first record of a chain."""


def seal(body: bytes, before: Link) -> tuple[bytes, Link]:
    """Return the line (with its line break) for a JSON object that follows `before`, and its link."""
    content = b'{"seq":%d,"prev":"%b",%b' % (before.seq + 1, before.seal.encode(), body[1:-1])
    digest = sha256(content).hexdigest()
    return b'%b,"seal":"%b"}\n' % (content, digest.encode()), Link(before.seq + 1, digest)


class Sealed(NamedTuple):
    """A line of the chain: its link, and the seal of the record before it."""

    link: Link
    prev: str


def unseal(line: bytes) -> Sealed | None:
    """Return the chain's part of a line (without its line break); None if its seal does not match its text."""
    content, tail = line[:-_TAIL], line[-_TAIL:]
    found = _LINE.match(content)
    if found is None or not tail.startswith(_MARK) or not tail.endswith(b'"}'):
        return None
    digest = sha256(content).hexdigest()
    if tail != b'%b%b"}' % (_MARK, digest.encode()):
        return None
    return Sealed(Link(int(found[1]), digest), found[2].decode())
