"""Draws pictures, each in a process of its own.

The library holds Python's lock from the beginning of a picture to its end, and nothing in this process ends it. Without
memory it ends its process. In one of its own, others go on meanwhile, and it can be killed.
"""

from __future__ import annotations

import contextlib
import resource
import signal
import subprocess
import sys
import threading
from collections.abc import Callable, Generator
from typing import Any, Final

import msgspec

from dragoman.children import environment, limit_resource, serving_command
from dragoman.errors import ParameterError

SECONDS: Final = 30.0
"""A picture may take this long."""
MEMORY: Final = 1024**3
"""Bytes that its process may fill."""
_LOOK: Final = 0.05
"""Seconds between two looks at whether a picture is still wanted."""
_AT_ONCE: Final = 2
"""So many pictures are drawn at once."""
_places = threading.BoundedSemaphore(_AT_ONCE)


def draw(spec: dict[str, Any], form: str, check: Callable[[], None], seconds: float = SECONDS) -> bytes:
    """Return a chart of Vega-Lite as `svg` or `png`. Blocks; `check` is called meanwhile, and what it raises ends it.

    Raises `ParameterError` for what takes too much time or memory.
    """
    with _place(check), _process(form, seconds) as process:
        answer = _Answer(process, msgspec.json.encode(spec))
        while not answer.wait(_LOOK):
            check()
        if process.wait() == 0:
            return answer.picture
    raise ParameterError(
        "The picture takes too much time or memory to draw.",
        suggestion="Select fewer rows, or shorter names.",
    )


@contextlib.contextmanager
def _place(check: Callable[[], None]) -> Generator[None]:
    while not _places.acquire(timeout=_LOOK):
        check()
    try:
        yield
    finally:
        _places.release()


@contextlib.contextmanager
def _process(form: str, seconds: float) -> Generator[subprocess.Popen[bytes]]:
    """A process that draws what comes on its stdin; none is left, however this ends."""
    process = subprocess.Popen(
        serving_command(__name__, form, str(seconds)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,  # what a terminal interrupts is our business to end
    )
    try:
        yield process
    finally:
        process.kill()
        process.wait()


class _Answer:
    """Writes and reads in a thread, which ends with the process."""

    def __init__(self, process: subprocess.Popen[bytes], spec: bytes) -> None:
        self.picture = b""
        self._process = process
        self._thread = threading.Thread(target=self._talk, args=(spec,), name="dragoman-drawing", daemon=True)
        self._thread.start()

    def wait(self, seconds: float) -> bool:
        """Whether all of it is there, after so many seconds at most."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _talk(self, spec: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # it has ended
            self.picture = self._process.communicate(spec)[0]


# In the process


def serve() -> None:
    """Draw one picture of what stands on stdin. One that takes too long ends the process, even without a parent."""
    form, seconds = sys.argv[1:]
    signal.setitimer(signal.ITIMER_REAL, float(seconds))  # whose signal kills
    # Of data, not of addresses: the library reserves far more of those than it ever fills.
    limit_resource(resource.RLIMIT_DATA, MEMORY)
    spec = msgspec.json.decode(sys.stdin.buffer.read())
    sys.stdout.buffer.write(_DRAW[form](spec))


def _svg(spec: dict[str, Any]) -> bytes:
    import vl_convert

    return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()


def _png(spec: dict[str, Any]) -> bytes:
    """Twice as fine as a screen's points."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(spec, scale=2, allowed_base_urls=[]))


_DRAW: Final[dict[str, Callable[[dict[str, Any]], bytes]]] = {"svg": _svg, "png": _png}
