"""An API server that only tells: it streams the lines of a file to whoever watches pods, as fast as they are read."""

from __future__ import annotations

import asyncio
import sys
from pathlib import Path

CHUNK = 64 << 10
_HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nTransfer-Encoding: chunked\r\n\r\n"


async def serve(path: Path) -> None:
    """Print the port, and serve until killed."""
    data = path.read_bytes()

    async def answer(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        await reader.readuntil(b"\r\n\r\n")
        writer.write(_HEAD)
        for at in range(0, len(data), CHUNK):
            part = data[at : at + CHUNK]
            writer.write(b"%x\r\n%b\r\n" % (len(part), part))
            await writer.drain()
        await asyncio.Event().wait()  # the watch stays, and is silent

    server = await asyncio.start_server(answer, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await server.serve_forever()


if __name__ == "__main__":
    asyncio.run(serve(Path(sys.argv[1])))
