"""Several worker processes behind one listening socket: `server.workers`.

The first process imports what all need, listens, and forks the workers, which share its memory and its sockets. It
serves nobody itself: it replaces workers that end, makes all of them apply a new configuration, and ends them. It stays
single-threaded and runs no event loop, so that it can fork at any time.

Each worker has a channel to it, a pair of sockets. A worker ends when the other end of its channel is closed, which
also happens when the first process is killed.
"""

from __future__ import annotations

import asyncio
import logging
import math
import os
import pickle
import select
import shutil
import signal
import socket
import sys
import tempfile
import time
from collections.abc import Callable, Coroutine, Generator, Sequence
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from pathlib import Path
from types import MappingProxyType
from typing import IO, Any, Final

from dragoman.cleanup import CLEANUP
from dragoman.config import Configuration
from dragoman.gateway.reloading import check_rest, log_failure

LOGGER = logging.getLogger("dragoman.mcp")

PAUSE: Final = 1.0
"""Seconds from one start of a worker to the next in its place: one that cannot start must not keep the machine busy."""
ABANDON: Final = 2 * CLEANUP + 5
"""Seconds beyond `drain` and `grace` after which a worker that does not end is killed."""
BEAT: Final = 5.0
"""Seconds between two checks that the workers still answer."""
SILENCE: Final = 6
"""Checks that a worker may leave unanswered. It then hangs, and is killed.

They are counted, since a machine that was asleep lets much time pass at once.
"""
_UP: Final = b"u"
"""Message of a worker: it serves."""
_CHANGED: Final = b"c"
"""Message of a worker: the configuration may have changed."""
_RELOAD: Final = b"r"
_TAKEN: Final = b"y"
_REFUSED: Final = b"n"
_CHECK: Final = b"?"
"""Message to a worker: answer with `_ALIVE`."""
_ALIVE: Final = b"!"
_SIGNALS: Final = (signal.SIGTERM, signal.SIGINT, signal.SIGHUP, signal.SIGCHLD)

Reread = Callable[[], Configuration]
"""Reads the configuration again. Raises `ConfigurationError`."""


@dataclass(frozen=True, slots=True, kw_only=True)
class Worker:
    """What one of the workers gets.

    - `index`: which one it is.
    - `listener`: the socket from which all of them accept.
    - `doors`: a listening Unix socket for each worker, by which the others reach it; `folder` has their names.
    - `channel`: to the first process.
    - `again`: others have served before it.
    """

    index: int
    listener: socket.socket
    doors: Sequence[socket.socket]
    folder: Path
    channel: socket.socket
    again: bool = False

    def path(self, index: int) -> str:
        """Return the path of a worker's own socket."""
        return str(self.folder / str(index))

    def up(self) -> None:
        """Report that it serves."""
        self._say(_UP)

    def turn_away(self) -> None:
        """Close the connections of other workers that wait for this one, which cannot start."""
        door = self.doors[self.index]
        door.setblocking(False)
        with suppress(OSError):
            while True:
                door.accept()[0].close()

    def announce_change(self) -> None:
        """Report that the configuration may have changed. All workers then apply it."""
        self._say(_CHANGED)

    def _say(self, word: bytes) -> None:
        with suppress(OSError):  # The first process has ended, which `attending` notices.
            self.channel.send(word)

    @contextmanager
    def attending(
        self, stop: Callable[[], object], reload: Callable[[Configuration], Coroutine[Any, Any, bool]]
    ) -> Generator[None]:
        """Follow the first process's messages. `reload` returns whether the configuration was applied."""
        loop = asyncio.get_running_loop()
        first = os.getppid()
        reloads: set[asyncio.Task[None]] = set()

        async def take(configuration: Configuration) -> None:
            self._say(_TAKEN if await reload(configuration) else _REFUSED)

        def hear() -> None:
            word, configuration = receive_configuration(self.channel)
            if configuration is not None:
                task = asyncio.create_task(take(configuration))
                reloads.add(task)
                task.add_done_callback(reloads.discard)
            elif word:
                self._say(_REFUSED if word == _RELOAD else _ALIVE)
            else:
                loop.remove_reader(self.channel)
                stop()

        loop.add_reader(self.channel, hear)
        try:
            yield
        finally:
            loop.remove_reader(self.channel)
            if os.getppid() != first:
                self._remove_door()

    def _remove_door(self) -> None:
        """Remove this worker's socket. The last worker removes the folder: the first process was killed."""
        with suppress(OSError):
            os.unlink(self.path(self.index))
            self.folder.rmdir()


def prefork(
    configuration: Configuration, reread: Reread | None, listener: socket.socket
) -> tuple[Worker, Configuration] | None:
    """Fork the workers. Return in each of them its `Worker` and the configuration that it serves.

    Returns None in the first process, when all have ended. Raises `SystemExit` there if a worker cannot start and none
    ever did: that worker has logged why.
    """
    return _First(configuration, reread, listener).run()


@dataclass(slots=True, eq=False)
class _Child:
    """A worker, as the first process knows it.

    - `pid`: 0 if it has ended; it is started again at `due`.
    - `until`: when it is killed, if it has been told to end and has not.
    - `unanswered`: the last checks that it has not answered.
    """

    pid: int = 0
    channel: socket.socket | None = None
    configuration: Configuration | None = None
    is_up: bool = False
    due: float = 0.0
    until: float = math.inf
    unanswered: int = 0

    def hang_up(self) -> None:
        """Close the channel, which ends the worker."""
        if self.channel is not None:
            self.channel.close()
            self.channel = None

    def kill(self) -> None:
        """End the process at once."""
        self.until = math.inf
        if self.pid:
            os.kill(self.pid, signal.SIGKILL)

    def reload(self, configuration: Configuration) -> bool:
        """Make the worker apply the configuration: this one, whatever the file says by then. Return whether it could.

        If the worker has ended, a signal reports that.
        """
        self.configuration = configuration
        try:
            if self.channel is not None:
                send_configuration(self.channel, configuration)
        except (BrokenPipeError, ConnectionResetError):
            return True
        except Exception as error:  # an error here would end the whole server
            log_failure(error)
            return False
        return True

    def check(self) -> bool:
        """Return whether the worker has answered lately, and ask it again."""
        self.unanswered += 1
        self._tell(_CHECK)
        return self.unanswered <= SILENCE

    def _tell(self, word: bytes) -> None:
        if self.channel is not None:
            with suppress(OSError):
                self.channel.send(word)


class _First:
    """The first process."""

    def __init__(self, configuration: Configuration, reread: Reread | None, listener: socket.socket) -> None:
        number = configuration.server.workers
        self._pid = os.getpid()
        self._configuration = configuration
        self._reread = reread
        self._listener = listener
        self._folder = Path(tempfile.mkdtemp(prefix="dragoman-"))
        self._doors = [_listen(str(self._folder / str(index))) for index in range(number)]
        self._children = [_Child() for _ in range(number)]
        self._wake, self._waker = socket.socketpair()
        self._candidate = configuration
        self._asked: list[_Child] = []
        self._again = False
        self._serves = False
        self._stops = False
        self._beat = time.monotonic() + BEAT

    def run(self) -> tuple[Worker, Configuration] | None:
        """Manage the workers until they have ended."""
        try:
            with self._signals():
                return self._lead()
        finally:
            if os.getpid() == self._pid:
                shutil.rmtree(self._folder, ignore_errors=True)

    @contextmanager
    def _signals(self) -> Generator[None]:
        """Let signals wake `_wait`. A worker gets the former handlers back."""
        self._wake.setblocking(False)
        self._waker.setblocking(False)
        before = {number: signal.signal(number, _note) for number in _SIGNALS}
        descriptor = signal.set_wakeup_fd(self._waker.fileno())
        try:
            yield
        finally:
            signal.set_wakeup_fd(descriptor)
            for number, handler in before.items():
                signal.signal(number, handler)

    def _lead(self) -> tuple[Worker, Configuration] | None:
        while not self._stops or any(child.pid for child in self._children):
            for index in self._due():
                if (worker := self._start(index)) is not None:
                    return worker, self._configuration
            self._wait()
        return None

    def _due(self) -> list[int]:
        """Return the workers to start now: first a single one, so that a fault that stops all is reported once."""
        if self._stops:
            return []
        now = time.monotonic()
        waiting = [index for index, child in enumerate(self._children) if not child.pid and child.due <= now]
        return waiting if self._serves else [index for index in waiting if index == 0]

    def _start(self, index: int) -> Worker | None:
        """Fork a worker. Return its `Worker` in the worker, and None here."""
        ours, theirs = socket.socketpair()
        pid = os.fork()
        if pid:
            theirs.close()
            self._children[index] = _Child(pid, ours, self._configuration, due=time.monotonic() + PAUSE)
            return None
        for each in (ours, self._wake, self._waker, *(child.channel for child in self._children)):
            if each is not None:
                each.close()
        # A terminal's Ctrl-C is for the first process, which ends the workers in order.
        os.setpgid(0, 0)
        theirs.setblocking(False)
        return Worker(
            index=index,
            listener=self._listener,
            doors=self._doors,
            folder=self._folder,
            channel=theirs,
            again=self._serves,
        )

    def _wait(self) -> None:
        """Wait for signals, for messages of workers, and for the next time to act; handle them."""
        channels = {each.channel: at for at, each in enumerate(self._children) if each.channel is not None}
        ready, _, _ = select.select([self._wake, *channels], [], [], self._until_next())
        if time.monotonic() >= self._beat:
            self._check()
        for child in self._children:
            if time.monotonic() >= child.until:
                child.kill()
        if self._wake in ready:
            for number in self._wake.recv(4096):
                self._handle_signal(number)
        for channel in ready:
            if channel in channels:
                self._hear(channels[channel], self._children[channels[channel]])

    def _until_next(self) -> float:
        """Return the seconds until a worker must be started, checked or killed."""
        starts = [child.due for child in self._children if not child.pid and not self._stops and self._serves]
        return max(min(self._beat, *starts, *(child.until for child in self._children)) - time.monotonic(), 0)

    def _handle_signal(self, number: int) -> None:
        """Do what a signal asks for."""
        if number == signal.SIGHUP:
            self._reload()
        elif number == signal.SIGCHLD:
            self._reap()
        elif self._stops:
            self._kill()
        else:
            self._stop()

    def _stop(self) -> None:
        """Make all workers end. The second call kills them."""
        self._stops = True
        for child in self._children:
            self._dismiss(child)

    def _dismiss(self, child: _Child) -> None:
        """Make a worker end. If it takes longer than it may, it is killed."""
        server = self._configuration.server
        child.hang_up()
        child.until = time.monotonic() + server.drain + server.grace + ABANDON

    def _kill(self) -> None:
        for child in self._children:
            child.kill()

    def _check(self) -> None:
        """Kill workers that hang: callers would wait for them, and a new configuration too."""
        self._beat = time.monotonic() + BEAT
        for index, child in enumerate(self._children):
            if child.is_up and child.channel is not None and not child.check():
                LOGGER.error("worker %d does not answer, and is killed", index)
                child.kill()

    def _reap(self) -> None:
        """Record which workers have ended."""
        for index, child in enumerate(self._children):
            if child.pid:
                pid, status = os.waitpid(child.pid, os.WNOHANG)
                if pid:
                    self._replace(index, child, status)

    def _replace(self, index: int, child: _Child, status: int) -> None:
        """Start another worker in place of one that has ended, unless all are to end."""
        child.hang_up()
        self._children[index] = _Child(due=child.due)
        if self._stops:
            return
        code = os.waitstatus_to_exitcode(status)
        if not self._serves:
            raise SystemExit(code if code > 0 else 1)
        LOGGER.warning("worker %d ended (%s); another takes its place", index, _words(code))
        if child in self._asked:
            self._again = True  # Its answer is unknown.
            self._go_on(index, child, taken=False)

    def _hear(self, index: int, child: _Child) -> None:
        """Handle a message of a worker."""
        said = receive(child.channel, 64) if child.channel is not None else b""
        if not said:
            self._dismiss(child)  # It ends, and a signal reports that.
        for word in (said[at : at + 1] for at in range(len(said))):
            if word == _UP:
                self._note_up(index, child)
            elif word == _CHANGED:
                self._reload()
            elif word == _ALIVE:
                child.unanswered = 0
            else:
                self._note_answer(index, child, taken=word == _TAKEN)

    def _note_answer(self, index: int, child: _Child, *, taken: bool) -> None:
        """Note whether a worker has applied the configuration that it was sent."""
        if not taken and child.configuration is self._configuration:
            self._renew(index, child)
        self._go_on(index, child, taken=taken)

    def _note_up(self, index: int, child: _Child) -> None:
        self._serves = child.is_up = True
        LOGGER.info("worker %d serves, process %d", index, child.pid)
        if child.configuration is not self._configuration:  # it was forked before the last reload
            self._send(child, self._configuration)
        self._reload_again()

    def _reload(self) -> None:
        """Make one worker apply the configuration, and the others if it could: a wrong one changes nothing."""
        up = [child for child in self._children if child.is_up]
        if self._asked or not up:
            self._again = True
        elif self._reread is not None:
            try:
                candidate = self._reread()
                check_rest(self._configuration, candidate)
            except Exception as error:  # an error here would end the whole server
                log_failure(error)
            else:
                self._candidate = candidate
                self._ask(up[:1])

    def _renew(self, index: int, child: _Child) -> None:
        """End a worker that refused what another has applied. The one in its place begins with that configuration."""
        LOGGER.warning("worker %d is replaced: the others have another configuration", index)
        self._dismiss(child)

    def _reload_again(self) -> None:
        """Do a reload that had to wait, if no other is running."""
        if self._again and not self._asked:
            self._again = False
            self._reload()

    def _ask(self, children: list[_Child]) -> None:
        """Make workers apply the candidate."""
        self._asked = children
        for child in [*children]:
            self._send(child, self._candidate)

    def _send(self, child: _Child, configuration: Configuration) -> None:
        if not child.reload(configuration):
            self._note_answer(self._children.index(child), child, taken=False)

    def _go_on(self, index: int, child: _Child, *, taken: bool) -> None:
        """Continue once a worker has applied the configuration, or has not."""
        LOGGER.info("worker %d %s the configuration", index, "has taken" if taken else "did not take")
        if child not in self._asked:
            return  # It was told when it started to serve.
        self._asked.remove(child)
        if taken and self._configuration is not self._candidate:
            self._configuration = self._candidate
            self._ask([each for each in self._children if each.is_up and each is not child])
        self._reload_again()


def _note(*_: object) -> None:
    """Do nothing: the number that Python writes wakes `_wait`."""


def receive(channel: socket.socket, most: int) -> bytes:
    """Return a message of the other process, at most `most` bytes; nothing if it has ended."""
    try:
        return channel.recv(most)
    except ConnectionResetError:  # It ended before it received all messages.
        return b""


def send_configuration(channel: socket.socket, configuration: Configuration) -> None:
    """Order a worker to apply a configuration. It is in a file without a name: a channel holds only so many bytes."""
    with _nameless() as file:
        _Pickler(file).dump(configuration)
        file.flush()
        socket.send_fds(channel, [_RELOAD], [file.fileno()])


def receive_configuration(channel: socket.socket) -> tuple[bytes, Configuration | None]:
    """Return the first process's next message, and the configuration that comes with it; nothing if it has ended.

    No configuration comes with its order if this process has no descriptor left for it, or cannot read it.
    """
    try:
        word, descriptors, _, _ = socket.recv_fds(channel, 1, 1)
    except ConnectionResetError:
        return b"", None
    if not descriptors:
        return word, None
    with open(descriptors[0], "rb") as file:
        file.seek(0)
        try:
            return word, pickle.load(file)
        except Exception as error:
            log_failure(error)
            return word, None


def _nameless() -> IO[bytes]:
    """Return a file that no other process can open. Where the system can, it is in memory, since it has secrets."""
    if sys.platform == "linux":
        return open(os.memfd_create("configuration"), "w+b")
    return tempfile.TemporaryFile()


class _Pickler(pickle.Pickler):
    """Also writes the read-only tables of a configuration."""

    def reducer_override(self, obj: Any) -> Any:
        """Return how a read-only table is made again; for everything else, that it is written as usual."""
        if not isinstance(obj, MappingProxyType):
            return NotImplemented
        table: dict[Any, Any] = {**obj}
        return _read_only, (table,)


def _read_only(table: dict[Any, Any]) -> MappingProxyType[Any, Any]:
    return MappingProxyType(table)


def _listen(path: str) -> socket.socket:
    """Return a listening Unix socket. Connections wait while nobody accepts."""
    door = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
    door.bind(path)
    door.listen(128)
    return door


def _words(code: int) -> str:
    return f"exit status {code}" if code >= 0 else signal.Signals(-code).name
