"""The recorder of Redis: MONITOR, filtered, into a file. Comes back by itself when the server does.

Kept are the calls of scripts (by name, and without the arguments of those that carry objects) and, of what they did,
what concerns locks, states, records, leases, watermarks and phases; and every plain command that writes a key of ours
or flushes.
Two lines are ours: ``@attached <time> <epoch> <phase>`` and ``@lost <time> <why>``.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Callable
from pathlib import Path
from urllib.parse import unquote, urlsplit

from oarlock.broker import keys
from oarlock.broker.steps import script_texts
from oarlock.chaos.judge.evidence.evidence import CUT, UNKNOWN

RETRY_S = 0.01
CHUNK_BYTES = 1 << 20
END = "oarlock-chaos-has-ended"
_NO_ARGUMENTS = ("ingest", "stage")
_WHOLE = ("announce", "finish")
"""Every line of these scripts is kept: the last one tells why a script did nothing."""

_DONE = re.compile(
    rb'lua\] "(?:'
    rb'(?:HSET|HDEL|ZADD|XADD|DEL|SET|UNLINK)" "oarlock:\d+:\{[^}]*\}:'
    rb'(?:[a-z-]+:(?:locks"|state"|expect:|delayed"|parked"|stream"|backlog")|leases"|watermark"|phase")'
    rb")"
)
_PLAIN = re.compile(
    rb'\] "(?i:FLUSHALL|FLUSHDB|SWAPDB|(?:HSET|HDEL|ZADD|ZREM|XADD|DEL|SET|RENAME|RESTORE|COPY)" "oarlock:)'
)
_CALL = re.compile(rb'\] "EVALSHA" "([0-9a-f]{40})" "2" "[^"]*" "(oarlock:(\d+):\{[^}]*\}:)"')


_HEAD, _TAIL = keys.base(0).split("0", 1)
_LOOK = f"""local epoch = redis.call('GET', '{keys.epoch()}') or '0'
return epoch .. ' ' .. (redis.call('GET', '{_HEAD}' .. epoch .. '{_TAIL}phase') or '-')"""


class Names:
    """Which script a SHA stands for. Decoding only: what a script did is read from its effects."""

    def __init__(self) -> None:
        self._names: dict[int, dict[str, str]] = {}

    def of(self, sha: str, epoch: int) -> str:
        """The script's name; ``UNKNOWN`` where it is none of the epoch's."""
        if epoch not in self._names:
            self._names[epoch] = {script_texts.sha(name, epoch): name for name in script_texts.NAMES}
        return self._names[epoch].get(sha, UNKNOWN)


class Filter:
    """Lines of MONITOR in, lines worth keeping out."""

    def __init__(self) -> None:
        self._names = Names()
        self._whole = False

    def keep(self, line: bytes) -> bytes | None:
        """The line, or as much of it as is needed; None where it tells nothing."""
        if b"[0 lua]" in line[:40]:
            return line if self._whole or _DONE.search(line, 0, 400) else None
        call = _CALL.search(line, 0, 400)
        self._whole = False
        if call is not None:
            name = self._names.of(call[1].decode(), int(call[3]))
            self._whole = name in _WHOLE
            told = line[: call.start(1)] + name.encode() + line[call.end(1) :]
            return told[: call.end() + len(told) - len(line)] if name in _NO_ARGUMENTS else told
        return line if _PLAIN.search(line, 0, 200) else None


class Clock:
    """How far the server's clock is from ours, where the campaign sets it: its lines are noted in our time.

    A jump is told of beforehand (``expect``); which lines come after it shows in their times. Jumps are large against
    the recorder's delay.
    """

    def __init__(self) -> None:
        self.offset_s = self._next_s = 0.0

    def expect(self, offset_s: float) -> None:
        """Expect the server's clock to be off by so much from some line on."""
        self._next_s = offset_s

    def in_our_time(self, line: bytes, now_s: float) -> bytes:
        """A line of MONITOR, its time without the offset."""
        at, _, rest = line.partition(b" ")
        at_s = float(at.lstrip(b"+"))
        if abs(at_s - self._next_s - now_s) < abs(at_s - self.offset_s - now_s):
            self.offset_s = self._next_s
        return b"+%.6f %s" % (at_s - self.offset_s, rest)


class MonitorRecorder:
    """``run`` until it is cancelled. ``url`` gives the admin's URL, anew for each connection.

    ``clock``: where the server's may be set.
    """

    def __init__(self, url: Callable[[], str], path: Path, clock: Clock | None = None) -> None:
        self._url, self._filter, self._clock = url, Filter(), clock
        self._file = path.open("wb", buffering=CHUNK_BYTES)
        self.attached = asyncio.Event()
        self.seen_to_the_end = asyncio.Event()
        """Set once the word ``END`` was seen in a command."""

    async def run(self) -> None:
        """Record. A connection that breaks is noted and made again."""
        try:
            while True:
                writer = None
                try:
                    reader, writer = await self._attach()
                    self.attached.set()
                    await self._record(reader)
                except (OSError, asyncio.IncompleteReadError, _NotReady):
                    pass  # closed, reset or not there yet: it is all the same
                finally:
                    if writer is not None:
                        writer.close()
                if self.attached.is_set():
                    self._note(f"@lost {time.time():.6f} {CUT}")
                    self.attached.clear()
                await asyncio.sleep(RETRY_S)
        finally:
            self._file.close()

    def flush(self) -> None:
        """Put on disk what was read so far."""
        self._file.flush()

    def _note(self, text: str) -> None:
        self._file.write(text.encode() + b"\n")
        self._file.flush()

    async def _attach(self) -> tuple[asyncio.StreamReader, asyncio.StreamWriter]:
        """Raises OSError, or _NotReady where the server does not let us in yet."""
        parts = urlsplit(self._url())
        reader, writer = await asyncio.open_connection(parts.hostname, parts.port, limit=1 << 26)
        try:
            user, password = unquote(parts.username or "default"), unquote(parts.password or "")
            # In one piece, so that nothing comes between the look and the first line.
            writer.write(_command("AUTH", user, password) + _command("EVAL", _LOOK, "0") + _command("MONITOR"))
            if await reader.readuntil(b"\r\n") != b"+OK\r\n":
                raise _NotReady
            size = (await reader.readuntil(b"\r\n")).rstrip()
            if not size.startswith(b"$"):
                raise _NotReady(size.decode())
            told = (await reader.readexactly(int(size[1:]) + 2)).decode().split()
            if await reader.readuntil(b"\r\n") != b"+OK\r\n":
                raise _NotReady
        except BaseException:
            writer.close()
            raise
        phase = "" if told[1] == "-" else told[1]
        self._note(f"@attached {time.time():.6f} {told[0]} {phase}".rstrip())
        return reader, writer

    async def _record(self, reader: asyncio.StreamReader) -> None:
        rest, keep = b"", self._filter.keep
        while chunk := await reader.read(CHUNK_BYTES):
            *lines, rest = (rest + chunk).split(b"\r\n")
            if END.encode() in chunk:
                self.seen_to_the_end.set()
            kept = [each for line in lines if (each := keep(line)) is not None]
            if self._clock is not None:
                now_s = time.time()
                kept = [self._clock.in_our_time(each, now_s) for each in kept]
            if kept:
                self._file.write(b"\n".join(kept) + b"\n")


class NoRecorder:
    """Stands in where there is no single server to watch: it leaves an empty file."""

    def __init__(self, path: Path) -> None:
        path.touch()
        self.attached, self.seen_to_the_end = asyncio.Event(), asyncio.Event()
        self.attached.set()
        self.seen_to_the_end.set()

    async def run(self) -> None:
        """Until cancelled."""
        await asyncio.Event().wait()

    def flush(self) -> None:
        """There is nothing to write."""


class _NotReady(Exception):
    """The server is there and does not serve yet."""


def _command(*words: str) -> bytes:
    parts = [f"*{len(words)}\r\n".encode()]
    for word in words:
        data = word.encode()
        parts.append(b"$%d\r\n%s\r\n" % (len(data), data))
    return b"".join(parts)
