"""The link before each worker of `scale_out` delays and does not reorder; shares of linear are of the same round."""

from __future__ import annotations

import os
import socket
import threading

import pytest

from benchmarks.scale_out.__main__ import shares
from benchmarks.scale_out.relay import Relay
from benchmarks.scale_out.run import Run


def run_of(pods_per_s: float) -> Run:
    return Run(pods_per_s, pods_per_s, 1.0, {"worker": 1.0}, 0.5, 5.0)


def test_shares_are_of_the_same_round() -> None:
    """The second round is twice as slow for all: that is no loss of its fleets."""
    runs = {1: [run_of(100), run_of(50)], 4: [run_of(360), run_of(180)]}
    assert shares(runs, 1) == [1.0, 1.0]
    assert shares(runs, 4) == pytest.approx([0.9, 0.9])


def test_what_goes_through_the_link_comes_late_whole_and_in_order() -> None:
    """Each way; the end of a connection comes behind what was sent before it."""
    said = b"".join(b"%06d" % number for number in range(20_000))
    read_end, write_end = os.pipe()
    with socket.create_server(("127.0.0.1", 0)) as server, socket.create_server(("127.0.0.1", 0)) as listening:
        relay = Relay(listening, server.getsockname(), 2.5)
        with os.fdopen(read_end) as end:
            running = threading.Thread(target=relay.run, args=(end,))
            running.start()
            with socket.create_connection(listening.getsockname()) as near:
                far, _ = server.accept()
                with far:
                    answering = threading.Thread(target=_send, args=(far, said))
                    answering.start()
                    _send(near, said)
                    assert _read(far) == said
                    assert _read(near) == said
                    answering.join()
            os.close(write_end)
            running.join()
    assert min(relay.delays_ms) >= 2.5


def _send(into: socket.socket, text: bytes) -> None:
    into.sendall(text)
    into.shutdown(socket.SHUT_WR)


def _read(source: socket.socket) -> bytes:
    found = b""
    while piece := source.recv(65_536):
        found += piece
    return found
