"""The outside of the example of DNS records: a small HTTP service that keeps what was asked of it."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any


@dataclass
class DnsService:
    """`records`: by name. `requests`: (verb, name, idempotency key), in order. `refuse`: codes to answer with next."""

    url: str = ""
    records: dict[str, Any] = field(default_factory=dict)
    requests: list[tuple[str, str, str]] = field(default_factory=list)
    refuse: list[int] = field(default_factory=list)
    lock: threading.Lock = field(default_factory=threading.Lock)

    def take(self, verb: str, name: str, key: str, content: Any) -> int:
        """The code of the answer."""
        with self.lock:
            self.requests.append((verb, name, key))
            if self.refuse:
                return self.refuse.pop(0)
            if verb == "PUT":
                self.records[name] = content
            elif self.records.pop(name, None) is None:
                return 404
            return 200


@contextmanager
def serving() -> Iterator[DnsService]:
    """On a free port of this machine, until the end."""
    service = DnsService()

    class Handler(BaseHTTPRequestHandler):
        protocol_version = "HTTP/1.0"

        def _take(self) -> None:
            content = self.rfile.read(int(self.headers.get("Content-Length", 0)))
            name = self.path.removeprefix("/records/")
            key = self.headers["Idempotency-Key"]
            self.send_response(service.take(self.command, name, key, json.loads(content) if content else None))
            self.end_headers()

        do_PUT = do_DELETE = _take

        def log_message(self, *_: Any) -> None: ...

    with ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        service.url = f"http://127.0.0.1:{server.server_port}"
        thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01}, daemon=True)
        thread.start()
        yield service
        server.shutdown()
        thread.join()
