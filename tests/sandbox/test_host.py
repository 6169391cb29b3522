"""What the parts of the sandbox ask of the machine: ports, and files that are never seen half written."""

from __future__ import annotations

import socket
from pathlib import Path

from oarlock.sandbox.host import free_port, is_free, write_file


def test_a_port_is_free_until_somebody_listens_on_it() -> None:
    port = free_port()
    assert is_free(port)
    with socket.create_server(("127.0.0.1", port)):
        assert not is_free(port)


def test_a_file_is_replaced_as_a_whole_and_is_for_its_owner_alone(tmp_path: Path) -> None:
    path = tmp_path / "facts.json"
    for text in ("{}\n", "[]\n"):
        write_file(path, text)
        assert path.read_text() == text
    assert path.stat().st_mode & 0o777 == 0o600
    assert list(tmp_path.iterdir()) == [path]
