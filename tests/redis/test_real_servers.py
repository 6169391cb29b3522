"""What the tests of Redis ask of their own servers."""

from __future__ import annotations

import socket
from pathlib import Path

from tests.redis.real_servers import RealServer, free_port, started


def test_a_node_whose_second_port_is_taken_starts_on_others(tmp_path: Path) -> None:
    port = free_port(10_000)
    with socket.socket() as other:
        other.bind(("127.0.0.1", port + 10_000))
        other.listen()
        node = RealServer(tmp_path / "node", port=port, cluster_enabled="yes", cluster_config_file="nodes.conf")
        try:
            started(node)
            assert node.answers_now()
            assert node.port != port
        finally:
            node.kill()
