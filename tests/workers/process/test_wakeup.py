"""What a process that forks hears of its sockets."""

from __future__ import annotations

import os
import selectors
import socket

from oarlock.workers.process.wakeup import new_selector


def test_a_socket_that_a_child_has_inherited_is_forgotten_once_it_is_closed_here() -> None:
    """With epoll it would be told of, under the number that the next socket got."""
    selector = new_selector()
    ours, theirs = socket.socketpair()
    selector.register(ours, selectors.EVENT_READ)
    number, inherited = ours.fileno(), os.dup(ours.fileno())
    ours.close()
    selector.unregister(ours)
    next_one, other = socket.socketpair()
    os.dup2(next_one.detach(), number)
    with socket.socket(fileno=number) as again, theirs, other:
        selector.register(again, selectors.EVENT_READ)
        theirs.send(b"news of the socket that was closed")
        assert selector.select(0) == []
        other.send(b"news")
        assert [key.fileobj for key, _ in selector.select(0)] == [again]
    os.close(inherited)
