"""The tap of `latency`: what it passes on, and which moments it keeps."""

from __future__ import annotations

import socket
import threading
import time

from benchmarks.latency_tap import Tap

REQUEST = b'POST /api/v1/namespaces/bench/pods HTTP/1.1\r\n\r\n{"metadata":{"name":"latency-00001-x"}}'
EVENT = b'{"type":"ADDED","object":{"metadata":{"name":"latency-00001"}}}'


def test_it_passes_everything_on_and_keeps_when_an_event_went_out_and_a_request_came() -> None:
    server, listening = socket.create_server(("127.0.0.1", 0)), socket.create_server(("127.0.0.1", 0))
    tap = Tap(listening, server.getsockname())
    ended, end = socket.socketpair()
    running = threading.Thread(target=tap.run, args=(ended.makefile("rb"),))
    running.start()
    fleet = socket.create_connection(listening.getsockname())
    far, _ = server.accept()
    begun_ns = time.time_ns()
    far.sendall(EVENT)
    assert fleet.recv(1 << 16) == EVENT
    told_by_ns = time.time_ns()
    fleet.sendall(REQUEST)
    assert far.recv(1 << 16) == REQUEST
    asked_by_ns = time.time_ns()
    end.close()
    running.join(10)
    assert begun_ns <= tap.told_ns["latency-00001"] <= told_by_ns
    assert told_by_ns <= tap.asked_ns["latency-00001"] <= asked_by_ns
