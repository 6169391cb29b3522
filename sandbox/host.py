"""What the parts of the sandbox ask of the machine: a free port, and a file that is never seen half written."""

from __future__ import annotations

import os
import secrets
import socket
from pathlib import Path

PORTS = range(10_000, 32_768)
"""Below those that Linux gives to outgoing connections (ip_local_port_range), which come and go at any time: a server
that is started again would find its port taken, also by a client that tries to come back to it and is given that very
port for itself.
"""


def is_free(port: int) -> bool:
    """Whether a server could listen there now."""
    with socket.socket() as probe:
        probe.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEADDR, 1)
        try:
            probe.bind(("127.0.0.1", port))
        except OSError:
            return False
    return True


def free_port() -> int:
    """One of ``PORTS`` that nobody listens on; somebody else may take it at any time."""
    while True:
        port = secrets.choice(PORTS)
        if is_free(port):
            return port


def write_file(path: Path, text: str, mode: int = 0o600) -> None:
    """Write it beside its place and move it there: a reader sees all of it or what was there before."""
    draft = path.with_name(f".{path.name}.{os.getpid()}")
    with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_TRUNC, mode), "w") as file:
        file.write(text)
    draft.replace(path)
