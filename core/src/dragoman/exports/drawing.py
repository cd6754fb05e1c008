"""Draws pictures, each in a process of its own.

The library holds Python's global lock while it draws a picture, and nothing in the same process can stop it. When it
runs out of memory, it ends its process. In a process of its own it does not block others, and it can be killed.
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
"""Seconds that a picture may take."""
MEMORY: Final = 1024**3
"""The most bytes of memory of its process."""
_LOOK: Final = 0.05
"""Seconds between two checks whether a picture is still wanted."""
_AT_ONCE: Final = 2
"""The number of pictures that are drawn at once."""
_places = threading.BoundedSemaphore(_AT_ONCE)


def draw(spec: dict[str, Any], form: str, check: Callable[[], None], seconds: float = SECONDS) -> bytes:
    """Return a Vega-Lite chart as `svg` or `png`. Blocks. Calls `check` meanwhile; an exception of it ends the drawing.

    Raises `ParameterError` for a picture that takes too much time or memory.
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
    """Yield a process that draws the specification on its stdin. The process has ended afterwards, whatever happens."""
    process = subprocess.Popen(
        serving_command(__name__, form, str(seconds)),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=environment(),
        start_new_session=True,  # we end it ourselves when a terminal interrupts
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
        """Return whether the whole answer has arrived, after at most `seconds`."""
        self._thread.join(seconds)
        return not self._thread.is_alive()

    def _talk(self, spec: bytes) -> None:
        with contextlib.suppress(OSError, ValueError):  # the process has ended
            self.picture = self._process.communicate(spec)[0]


# In the process


def serve() -> None:
    """Draw one picture from the specification on stdin.

    A picture that takes too long ends the process, even without a parent.
    """
    form, seconds = sys.argv[1:]
    signal.setitimer(signal.ITIMER_REAL, float(seconds))  # its signal kills the process
    # A limit of data, not of address space: the library reserves far more addresses than it ever uses.
    limit_resource(resource.RLIMIT_DATA, MEMORY)
    spec = msgspec.json.decode(sys.stdin.buffer.read())
    sys.stdout.buffer.write(_DRAW[form](spec))


def _svg(spec: dict[str, Any]) -> bytes:
    import vl_convert

    return vl_convert.vegalite_to_svg(spec, allowed_base_urls=[]).encode()


def _png(spec: dict[str, Any]) -> bytes:
    """Return a PNG at twice the resolution of a screen."""
    import vl_convert

    return bytes(vl_convert.vegalite_to_png(spec, scale=2, allowed_base_urls=[]))


_DRAW: Final[dict[str, Callable[[dict[str, Any]], bytes]]] = {"svg": _svg, "png": _png}
