"""An OTLP collector in this process: it takes what real exporters send by HTTP and keeps the spans."""

from __future__ import annotations

import gzip
import threading
from dataclasses import dataclass, field
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

from opentelemetry.proto.collector.trace.v1.trace_service_pb2 import ExportTraceServiceRequest
from opentelemetry.proto.common.v1.common_pb2 import AnyValue


@dataclass(frozen=True)
class SeenSpan:
    """A span as it was sent. Ids in hex; ``error``: the message of a status that says so, "" for any other."""

    service: str
    name: str
    trace: str
    id: str
    parent: str
    begun_ns: int
    ended_ns: int
    failed: bool
    error: str
    facts: dict[str, Any] = field(hash=False, compare=False)


class Collector:
    """Listens while it is open, as a context manager."""

    def __init__(self) -> None:
        self.spans: list[SeenSpan] = []
        collector = self

        class Handler(BaseHTTPRequestHandler):
            def do_POST(self) -> None:
                body = self.rfile.read(int(self.headers["Content-Length"]))
                if self.headers.get("Content-Encoding") == "gzip":
                    body = gzip.decompress(body)
                assert self.path == "/v1/traces"
                collector.spans += _spans(ExportTraceServiceRequest.FromString(body))
                self.send_response(200)
                self.send_header("Content-Length", "0")
                self.end_headers()

            def log_message(self, format: str, *args: Any) -> None:
                """Nothing."""

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.endpoint = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Collector:
        threading.Thread(target=self._server.serve_forever, daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()

    def traces(self) -> dict[str, list[SeenSpan]]:
        """By id, what has come so far."""
        found: dict[str, list[SeenSpan]] = {}
        for span in list(self.spans):
            found.setdefault(span.trace, []).append(span)
        return found


def _spans(request: ExportTraceServiceRequest) -> list[SeenSpan]:
    return [
        SeenSpan(
            {each.key: _value(each.value) for each in of.resource.attributes}["service.name"],
            span.name,
            span.trace_id.hex(),
            span.span_id.hex(),
            span.parent_span_id.hex(),
            span.start_time_unix_nano,
            span.end_time_unix_nano,
            span.status.code == 2,
            span.status.message,
            {each.key: _value(each.value) for each in span.attributes},
        )
        for of in request.resource_spans
        for scope in of.scope_spans
        for span in scope.spans
    ]


def _value(value: AnyValue) -> Any:
    return getattr(value, str(value.WhichOneof("value")))
