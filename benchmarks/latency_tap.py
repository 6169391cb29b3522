"""What lies between a fleet and its API server for `latency`: it passes everything on, and keeps moments.

`python -m benchmarks.latency_tap HOST:PORT` listens on a free port of the loopback and prints ``{"port": N}``. Once its
stdin ends it prints ``{"told_ns": {owner: ns}, "asked_ns": {owner: ns}}``, as unix time: when the first event with an
owner's name went out to the fleet, and when its first pod was asked for.

One thread over select: an event loop would take part of what is measured. When a request came is the kernel's to say:
the tap, which is woken for it, is no part of the fleet.
"""

from __future__ import annotations

import json
import re
import select
import socket
import struct
import sys
import time
from collections.abc import Sequence
from typing import IO, Any

PIECE_BYTES = 1 << 18
SO_TIMESTAMPNS = 35
"""Of Linux, and the type of the message that brings the stamp: seconds and nanoseconds."""
STAMP = struct.Struct("@qq")
OWNER = re.compile(rb"latency-\d{5}")
POST_PODS = re.compile(rb"POST \S*/pods[ ?]")


class Tap:
    """``run`` until it is told to end; ``told_ns`` and ``asked_ns`` are what it has seen."""

    def __init__(self, listening: socket.socket, target: tuple[str, int]) -> None:
        self._listening, self._target = listening, target
        self._peers: dict[socket.socket, socket.socket] = {}
        self._of_fleet: set[socket.socket] = set()
        self._posting_ns: dict[socket.socket, int] = {}
        """Connections on which the head of a create has come without its body, and when."""
        self.told_ns: dict[str, int] = {}
        self.asked_ns: dict[str, int] = {}

    def run(self, end: IO[Any]) -> None:
        """Until ``end`` has something to read, or has ended."""
        while True:
            ready, _, _ = select.select([end, self._listening, *self._peers], [], [])
            for each in ready:
                if each is end:
                    return
                if each is self._listening:
                    self._accept()
                elif each in self._peers:
                    self._take(each)

    def _accept(self) -> None:
        near, _ = self._listening.accept()
        far = socket.create_connection(self._target)
        near.setsockopt(socket.SOL_SOCKET, SO_TIMESTAMPNS, 1)
        for one, other in ((near, far), (far, near)):
            one.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            self._peers[one] = other
        self._of_fleet.add(near)

    def _take(self, source: socket.socket) -> None:
        """A failure of either side ends both, as its end does."""
        peer = self._peers[source]
        try:
            if source in self._of_fleet:
                piece, stamps, *_ = source.recvmsg(PIECE_BYTES, socket.CMSG_SPACE(STAMP.size))
                self._asked(source, piece, stamps)
            else:
                piece = source.recv(PIECE_BYTES)
                self._told(piece)
            if piece:
                peer.sendall(piece)
                return
        except OSError as error:
            print(f"tap: a connection ended: {error}", file=sys.stderr)
        for each in (source, peer):
            del self._peers[each]
            self._of_fleet.discard(each)
            each.close()

    def _asked(self, source: socket.socket, piece: bytes, stamps: Sequence[tuple[int, int, bytes]]) -> None:
        if POST_PODS.match(piece):
            ((_, _, stamp),) = stamps
            seconds, ns = STAMP.unpack(stamp)
            self._posting_ns[source] = seconds * 1_000_000_000 + ns
        if source in self._posting_ns and (owner := OWNER.search(piece)):
            self.asked_ns.setdefault(owner[0].decode(), self._posting_ns.pop(source))

    def _told(self, piece: bytes) -> None:
        for owner in OWNER.findall(piece):
            self.told_ns.setdefault(owner.decode(), time.time_ns())


def main(argv: Sequence[str]) -> None:
    host, _, port = argv[1].rpartition(":")
    listening = socket.create_server(("127.0.0.1", 0), backlog=512)
    tap = Tap(listening, (host, int(port)))
    print(json.dumps({"port": listening.getsockname()[1]}), flush=True)
    tap.run(sys.stdin)
    print(json.dumps({"told_ns": tap.told_ns, "asked_ns": tap.asked_ns}), flush=True)


if __name__ == "__main__":
    main(sys.argv)
