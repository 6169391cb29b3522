"""The outside of a campaign: an HTTP service that writes down each request, in order, before it answers."""

from __future__ import annotations

import json
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any


@contextmanager
def serving(log: Path) -> Iterator[str]:
    """Its URL. ``log``: JSON lines with `at_s`, `verb`, `name`, `key`, and what the body says."""
    lock = threading.Lock()

    class Handler(BaseHTTPRequestHandler):
        def _take(self) -> None:
            about = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
            told = {"verb": self.command, "name": self.path.strip("/"), "key": self.headers["Idempotency-Key"], **about}
            with lock, log.open("a") as lines:
                lines.write(json.dumps({"at_s": time.time(), **told}) + "\n")
            self.send_response(200)
            self.end_headers()

        do_PUT = do_DELETE = _take

        def log_message(self, *_: Any) -> None: ...

    class Server(ThreadingHTTPServer):
        request_queue_size = 256
        daemon_threads = True

        def handle_error(self, *_: Any) -> None:
            """Whoever asked was killed."""

    with Server(("127.0.0.1", 0), Handler) as server:
        threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()
        yield f"http://127.0.0.1:{server.server_port}"
        server.shutdown()
