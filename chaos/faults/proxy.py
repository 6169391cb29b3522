"""A TCP proxy that behaves as a bad network on demand; host 2 has one towards Redis and one towards the API.

`python -m oarlock.chaos.faults.proxy HOST:PORT` listens on a free port of the loopback and prints ``{"port": N}``. Each
line on its stdin is a mode, or ``to HOST:PORT`` to end all connections and have new ones lead there. It answers with
``{"mode": ..., "struck": N}``: how often the mode that ends has kept something back, hurt a connection or turned one
away. It ends with its stdin.

What a cut keeps back is delivered when the cut is over, late, as TCP does: also if its sender has gone meanwhile.
"""

from __future__ import annotations

import asyncio
import contextlib
import json
import random
import socket
import struct
import sys
from collections.abc import Sequence

MODES = ("pass", "cut", "no-answers", "no-requests", "reset", "refuse", "trickle", "slow", "flap")
CHUNK_BYTES = 1 << 16
TRICKLE_BYTES, TRICKLE_S = 512, 0.02
SLOW_S = (0.05, 0.4)
FLAP_S = (0.1, 1.5)
RESET_EVERY_S = (0.05, 0.6)
UP, DOWN = "up", "down"
_NO_LINGER = struct.pack("ii", 1, 0)


class Proxy:
    """``listen``, then ``turn`` to any mode."""

    def __init__(self, host: str, port: int, seed: int = 0) -> None:
        self._target = host, port
        self._chance = random.Random(seed)
        self._server: asyncio.Server | None = None
        self._writers: set[asyncio.StreamWriter] = set()
        self._links: set[asyncio.Task[None]] = set()
        self._open = {UP: asyncio.Event(), DOWN: asyncio.Event()}
        self._beside: asyncio.Task[None] | None = None
        self.port = 0
        self.mode = "pass"
        self.struck = 0

    async def listen(self) -> None:
        """Begin, or begin again on the same port."""
        self._hold()
        await self._serve()

    async def turn(self, mode: str) -> int:
        """Begin another mode. How often the last one struck."""
        if self._beside is not None:
            self._beside.cancel()
            await asyncio.gather(self._beside, return_exceptions=True)
            self._beside = None
        struck, self.struck, self.mode = self.struck, 0, mode
        held = {"cut": (UP, DOWN), "no-answers": (DOWN,), "no-requests": (UP,)}.get(mode, ())
        self._hold(*held)
        if mode == "refuse":
            await self._close()
        else:
            await self._serve()
        if mode in ("reset", "flap"):
            self._beside = asyncio.create_task(self._resets() if mode == "reset" else self._flaps())
        return struck

    async def lead(self, target: str) -> int:
        """To another server from now on. How often the last mode struck."""
        host, _, port = target.rpartition(":")
        struck = await self.turn("pass")
        self._target = host, int(port)
        self._abort()
        return struck

    def _hold(self, *ways: str) -> None:
        """Keep back what goes these ways, and let everything else pass."""
        for way, gate in self._open.items():
            if way in ways:
                gate.clear()
            else:
                gate.set()

    async def _serve(self) -> None:
        if self._server is None:
            self._server = await asyncio.start_server(self._accept, "127.0.0.1", self.port, backlog=512)
            self.port = int(self._server.sockets[0].getsockname()[1])

    async def _close(self) -> None:
        if self._server is not None:
            self._server.close()
            self._server = None
        self._abort()

    def _abort(self) -> None:
        """End every connection with a reset. What they were about is lost."""
        self.struck += len(self._writers)
        for writer in self._writers:
            peer = writer.get_extra_info("socket")
            with contextlib.suppress(OSError):
                peer.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, _NO_LINGER)
            writer.transport.abort()
        for link in self._links:
            link.cancel()

    async def _resets(self) -> None:
        while True:
            await asyncio.sleep(self._chance.uniform(*RESET_EVERY_S))
            self._abort()

    async def _flaps(self) -> None:
        while True:
            self._hold(UP, DOWN)
            await asyncio.sleep(self._chance.uniform(*FLAP_S))
            self._hold()
            await asyncio.sleep(self._chance.uniform(*FLAP_S))

    # -- one connection

    async def _accept(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        task = asyncio.current_task()
        assert task is not None
        self._links.add(task)
        self._writers.add(writer)
        beyond = None
        try:
            from_beyond, beyond = await asyncio.open_connection(*self._target)
            self._writers.add(beyond)
            async with asyncio.TaskGroup() as group:
                group.create_task(self._pump(UP, reader, beyond))
                group.create_task(self._pump(DOWN, from_beyond, writer))
        except* (OSError, asyncio.IncompleteReadError):
            pass  # either side has hung up, or nobody is there: the other side is hung up on
        except* asyncio.CancelledError:
            pass  # by ``_abort``
        finally:
            self._links.discard(task)
            for each in (writer, beyond):
                if each is not None:
                    self._writers.discard(each)
                    each.close()

    async def _pump(self, way: str, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while data := await reader.read(CHUNK_BYTES):
            gate = self._open[way]
            if not gate.is_set():
                self.struck += 1
                await gate.wait()
            if self.mode == "slow":
                self.struck += 1
                await asyncio.sleep(self._chance.uniform(*SLOW_S))
            while self.mode == "trickle" and len(data) > TRICKLE_BYTES:
                self.struck += 1
                writer.write(data[:TRICKLE_BYTES])
                data = data[TRICKLE_BYTES:]
                await asyncio.sleep(TRICKLE_S)
            writer.write(data)
            await writer.drain()
        if writer.can_write_eof():
            writer.write_eof()


async def serve(target: str, seed: int) -> None:
    """Until stdin ends."""
    host, _, port = target.rpartition(":")
    proxy = Proxy(host, int(port), seed)
    await proxy.listen()
    print(json.dumps({"port": proxy.port}), flush=True)
    reader = asyncio.StreamReader()
    await asyncio.get_running_loop().connect_read_pipe(lambda: asyncio.StreamReaderProtocol(reader), sys.stdin)
    while line := await reader.readline():
        mode = line.decode().strip()
        struck = await (proxy.lead(mode.removeprefix("to ")) if mode.startswith("to ") else proxy.turn(mode))
        print(json.dumps({"mode": mode, "struck": struck}), flush=True)


def main(argv: Sequence[str]) -> None:
    asyncio.run(serve(argv[1], int(argv[2]) if len(argv) > 2 else 0))


if __name__ == "__main__":
    main(sys.argv)
