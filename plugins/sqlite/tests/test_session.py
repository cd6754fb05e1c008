"""The session of a worker process, whose listening thread interrupts what its main thread runs."""

import sqlite3
import sys
import threading
from contextlib import closing

from dragoman.workers.frames import Run
from dragoman_sqlite.frames import Setup
from dragoman_sqlite.worker.session import Session


def test_an_interrupt_may_come_while_a_changed_file_is_opened_anew(tmp_path):
    """An exception would end the listening thread, and with it the process."""
    path = tmp_path / "test.db"
    with closing(sqlite3.connect(path)) as connection:
        connection.executescript("".join(f"CREATE TABLE t{number} (a, b);" for number in range(200)))
    session = Session(Setup(path=str(path), functions=[], memory=0, length=1_000_000))
    errors, ended = list[BaseException](), threading.Event()

    def listen() -> None:
        try:
            while not ended.is_set():
                session.interrupt()
        except BaseException as error:
            errors.append(error)

    thread = threading.Thread(target=listen)
    interval = sys.getswitchinterval()
    sys.setswitchinterval(1e-6)
    thread.start()
    for number in range(400):
        path.chmod(0o600 if number % 2 else 0o644)
        session.expect(10)
        session.run(Run(sql="SELECT 1", parameters=[], max_rows=1, max_bytes=1000, timeout=10), lambda _: None)
    ended.set()
    thread.join()
    sys.setswitchinterval(interval)
    assert errors == []
