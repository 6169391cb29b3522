"""An API server that only tells: it streams the lines of a file to whoever watches pods, at a pace or at once."""

from __future__ import annotations

import asyncio
import sys
import time
from pathlib import Path

CHUNK = 64 << 10
TOGETHER_S = 0.005
"""Paced lines go out together every so often."""
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


async def serve(path: Path, per_s: int) -> None:
    """Print the port; after a paced stream, when each line went out, unix ns. Serves until killed."""
    data = path.read_bytes()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_HEAD)
        await (_at_a_pace(writer, data.splitlines(keepends=True), per_s) if per_s else _at_once(writer, data))
        await asyncio.Event().wait()  # the watch stays, and is silent

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


async def _at_once(writer: asyncio.StreamWriter, data: bytes) -> None:
    for at in range(0, len(data), CHUNK):
        await _send(writer, data[at : at + CHUNK])


async def _at_a_pace(writer: asyncio.StreamWriter, lines: list[bytes], per_s: int) -> None:
    begun_s, went_out_ns = time.monotonic(), list[int]()
    while (sent := len(went_out_ns)) < len(lines):
        due = min(len(lines), int((time.monotonic() - begun_s) * per_s) + 1)
        went_out_ns += [time.time_ns()] * (due - sent)
        if due > sent:
            await _send(writer, b"".join(lines[sent:due]))
        await asyncio.sleep(TOGETHER_S)
    print(" ".join(map(str, went_out_ns)), flush=True)


async def _send(writer: asyncio.StreamWriter, part: bytes) -> None:
    writer.write(b"%x\r\n%b\r\n" % (len(part), part))
    await writer.drain()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1]), int(sys.argv[2])))
