"""The link between a worker's host and the API server: everything arrives later, in order, and nothing is held back.

`python -m benchmarks.scale_out.relay NAMESPACE HOST:PORT DELAY_MS` listens on a free port of the loopback in that
network namespace and leads to a server of its own. It prints ``{"port": N}``, and once its stdin ends
``{"delay_ms": median}``: what it measured of the delay that it makes, each way.

One thread over select, whose timeout has microseconds: an event loop's has milliseconds, and takes three times the CPU.
"""

from __future__ import annotations

import ctypes
import json
import os
import select
import socket
import statistics
import sys
import time
from collections import deque
from collections.abc import Sequence
from pathlib import Path
from typing import IO, Any

NAMESPACES = Path("/run/netns")
CLONE_NEWNET = 0x40000000
PIECE_BYTES = 1 << 18
MEASURED = 20_000
"""Of how many pieces at most the delay is kept."""


def listen_inside(namespace: str) -> socket.socket:
    """A socket that listens on the loopback of that namespace; we stay where we are. Raises OSError."""
    libc = ctypes.CDLL(None, use_errno=True)
    home = os.open("/proc/self/ns/net", os.O_RDONLY)
    there = os.open(NAMESPACES / namespace, os.O_RDONLY)
    _enter(libc, there)
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    _enter(libc, home)
    return listening


def _enter(libc: ctypes.CDLL, namespace: int) -> None:
    if libc.setns(namespace, CLONE_NEWNET):
        code = ctypes.get_errno()
        raise OSError(code, os.strerror(code))
    os.close(namespace)


class Relay:
    """``run`` until it is told to end. The delay is the same for all, so what came first is due first."""

    def __init__(self, listening: socket.socket, target: tuple[str, int], delay_ms: float) -> None:
        self._listening, self._target, self._delay_s = listening, target, delay_ms / 1e3
        self._peers: dict[socket.socket, socket.socket] = {}
        self._line: deque[tuple[float, socket.socket, bytes]] = deque()
        self.delays_ms: deque[float] = deque(maxlen=MEASURED)

    def run(self, end: IO[Any]) -> None:
        """Until ``end`` has something to read, or has ended."""
        while True:
            wait_s = max(0.0, self._line[0][0] - time.monotonic()) if self._line else None
            ready, _, _ = select.select([end, self._listening, *self._peers], [], [], wait_s)
            for each in ready:
                if each is end:
                    return
                if each is self._listening:
                    self._accept()
                else:
                    self._take(each)
            self._deliver()

    def _accept(self) -> None:
        near, _ = self._listening.accept()
        far = socket.create_connection(self._target)
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers[one] = other

    def _take(self, source: socket.socket) -> None:
        """The end of a connection travels as b"", behind all that was sent before it."""
        try:
            piece = source.recv(PIECE_BYTES)
        except ConnectionResetError:
            piece = b""
        peer = self._peers.pop(source) if not piece else self._peers[source]
        self._line.append((time.monotonic() + self._delay_s, peer, piece))

    def _deliver(self) -> None:
        while self._line and self._line[0][0] <= (now_s := time.monotonic()):
            due_s, peer, piece = self._line.popleft()
            try:
                peer.sendall(piece) if piece else peer.shutdown(socket.SHUT_WR)
            except OSError:
                continue  # it has hung up: its own end is on the way to the other side
            self.delays_ms.append((now_s - due_s + self._delay_s) * 1e3)


def main(argv: Sequence[str]) -> None:
    namespace, target, delay_ms = argv[1:]
    host, _, port = target.rpartition(":")
    listening = listen_inside(namespace)
    relay = Relay(listening, (host, int(port)), float(delay_ms))
    print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
    relay.run(sys.stdin)
    print(json.dumps({"delay_ms": statistics.median(relay.delays_ms or [0.0])}), flush=True)


if __name__ == "__main__":
    main(sys.argv)
