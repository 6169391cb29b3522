"""Lines to a pipe, a socket, a terminal or a file; also where nobody reads them."""

from __future__ import annotations

import logging
import os
import pty
import socket
import sys
from collections.abc import Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import TextIO

import pytest

from oarlock.cli.log_handler import LogHandler
from oarlock.cli.logs import TextFormatter, set_up


class Reader:
    """The other end. ``take`` reads all that is there."""

    def __init__(self, read: int, write: int) -> None:
        self._read, self.stream = read, os.fdopen(write, "w")
        os.set_blocking(read, False)

    def take(self) -> str:
        found = b""
        while True:
            try:
                part = os.read(self._read, 1 << 16)
            except BlockingIOError:
                return found.decode()
            found += part


def a_pipe() -> Reader:
    return Reader(*os.pipe())


def a_socket() -> Reader:
    left, right = socket.socketpair()
    return Reader(left.detach(), right.detach())


def a_terminal() -> Reader:
    return Reader(*pty.openpty())


@pytest.fixture(params=[a_pipe, a_socket, a_terminal], ids=["pipe", "socket", "terminal"])
def reader(request: pytest.FixtureRequest) -> Iterator[Reader]:
    one: Reader = request.param()
    with one.stream:
        yield one


def handler_of(stream: TextIO) -> LogHandler:
    handler = LogHandler(stream, patience_ms=1)
    handler.setFormatter(TextFormatter())
    return handler


def record(text: str) -> logging.LogRecord:
    return logging.LogRecord("oarlock.fleet", logging.INFO, __file__, 1, f"event=said text={text}", None, None)


def lines(text: str) -> list[str]:
    """Without the head of each."""
    assert text == "" or text.endswith("\n")
    return [each.partition(" event=")[2] for each in text.splitlines()]


def test_lines_get_through(reader: Reader) -> None:
    handler = handler_of(reader.stream)
    handler.emit(record("one"))
    handler.emit(record("two"))
    assert lines(reader.take()) == ["said text=one", "said text=two"]


@pytest.mark.parametrize("length", [10, 5_000], ids=["short lines", "lines that are taken in parts"])
def test_where_nobody_reads_nobody_waits_and_what_is_missing_is_told(reader: Reader, length: int) -> None:
    handler = handler_of(reader.stream)
    words = [f"{number:0{length}d}" for number in range(100_000 // length + 100)]
    for word in words:
        handler.emit(record(word))
    for _ in range(10):
        handler.emit(record("lost"))
    first = reader.take()
    handler.emit(record("again"))
    whole = lines(first + reader.take())
    kept = len(whole) - 2
    assert 0 < kept < len(words)
    assert whole[:kept] == [f"said text={word}" for word in words[:kept]]
    assert whole[-2:] == [f'lines_lost lines={len(words) - kept + 10} reason="nobody read them"', "said text=again"]


def test_a_pipe_of_another_user_is_looked_at_before_each_line(monkeypatch: pytest.MonkeyPatch) -> None:
    def refused(*_: object) -> int:
        raise PermissionError

    reader = a_pipe()
    with monkeypatch.context() as patch:
        patch.setattr(os, "open", refused)
        handler = handler_of(reader.stream)
    for number in range(3_000):
        handler.emit(record(str(number)))
    assert 0 < len(lines(reader.take())) < 3_000


def test_a_child_tells_nothing_of_what_its_parent_could_not_tell() -> None:
    reader = a_pipe()
    handler = handler_of(reader.stream)
    while not handler._lost:
        handler.emit(record("x" * 5_000))
    reader.take()
    with ExitStack() as undone:
        patch = undone.enter_context(pytest.MonkeyPatch.context())
        patch.setattr(os, "getpid", lambda: 1)
        handler.emit(record("child"))
    assert lines(reader.take()) == ["said text=child"]


def test_a_file_is_written_to_as_ever(tmp_path: Path) -> None:
    with (tmp_path / "log").open("a") as stream:
        stream.write("before\n")
        stream.flush()
        handler_of(stream).emit(record("one"))
    assert (tmp_path / "log").read_text().startswith("before\ntime=")


def test_a_reader_that_has_gone_is_no_error(capsys: pytest.CaptureFixture[str]) -> None:
    read, write = os.pipe()
    os.close(read)
    with os.fdopen(write, "w") as stream:
        handler_of(stream).emit(record("one"))
    assert capsys.readouterr().err == ""


def test_the_log_of_a_process_goes_there(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would wait for ever."""
    reader, root = a_pipe(), logging.getLogger()
    monkeypatch.setattr(sys, "stderr", reader.stream)
    monkeypatch.setattr(root, "handlers", [])
    for each in (root, logging.getLogger("oarlock")):
        monkeypatch.setattr(each, "level", each.level)
    set_up(0)
    for _ in range(3_000):
        logging.getLogger("oarlock.fleet").warning("event=said text=one")
    assert 0 < len(lines(reader.take())) < 3_000


def test_without_a_standard_error_nothing_is_told_and_nothing_breaks(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sys, "stderr", None)
    LogHandler(None).emit(record("one"))
