"""What is read elsewhere than in the fleet's own keys: /metrics of processes, and RQ's registry."""

from __future__ import annotations

import http.server
import threading
import zlib
from base64 import b64encode
from collections.abc import Iterator

import pytest

from oarlock.cli.watch.api_calls import api_calls_of, metrics_address, read_api_calls
from oarlock.cli.watch.fleet_look import ApiCalls
from oarlock.cli.watch.tracebacks import BYTES_MAX, traceback_in

TEXT = """\
# HELP rest_client_requests_total Requests.
# TYPE rest_client_requests_total counter
rest_client_requests_total{code="201",host="api:6443",method="POST"} 40.0
rest_client_requests_total{code="429",host="api:6443",method="POST"} 3.0
rest_client_requests_total{code="<error>",host="api:6443",method="GET"} 2.0
rest_client_request_duration_seconds_count{host="api:6443",verb="GET"} 99.0
"""


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        (TEXT, ApiCalls("p", 45, 3)),
        (TEXT.replace("429", "409"), ApiCalls("p", 45, 0)),
        ("# TYPE rest_client_requests_total counter\n", ApiCalls("p", 0, 0)),
        ("# TYPE rest_client_requests counter\n# EOF\n", ApiCalls("p", 0, 0)),
        ("<html>another program</html>", None),
        ("", None),
    ],
)
def test_api_calls(text: str, expected: ApiCalls | None) -> None:
    assert api_calls_of("p", text) == expected


@pytest.mark.parametrize(
    ("text", "address"),
    [
        ("http://127.0.0.1:9001", "http://127.0.0.1:9001/metrics"),
        ("http://127.0.0.1:9001/", "http://127.0.0.1:9001/metrics"),
        ("https://host:1/metrics", "https://host:1/metrics"),
        ("https://host:1/of/worker-1", "https://host:1/of/worker-1"),
    ],
)
def test_addresses(text: str, address: str) -> None:
    assert metrics_address(text) == address


@pytest.mark.parametrize("text", ["", "127.0.0.1:9001", "file:///etc/passwd", "http://", "http://me:secret@host:1"])
def test_what_is_no_address(text: str) -> None:
    with pytest.raises(ValueError, match="write http://HOST:PORT") as told:
        metrics_address(text)
    assert "secret" not in str(told.value)


@pytest.fixture
def served() -> Iterator[str]:
    """The address of a process that answers /metrics, and 404 elsewhere."""

    class Handler(http.server.BaseHTTPRequestHandler):
        def do_GET(self) -> None:
            self.send_response(200 if self.path == "/metrics" else 404)
            self.end_headers()
            self.wfile.write(TEXT.encode())

        def log_message(self, format: str, *args: object) -> None:
            return

    with http.server.ThreadingHTTPServer(("127.0.0.1", 0), Handler) as server:
        thread = threading.Thread(target=server.serve_forever)
        thread.start()
        yield f"http://127.0.0.1:{server.server_address[1]}"
        server.shutdown()
        thread.join()


def test_processes_that_do_not_answer_are_left_out(served: str) -> None:
    closed = "http://127.0.0.1:1/metrics"
    assert read_api_calls([closed, f"{served}/metrics", f"{served}/else"]) == (
        ApiCalls(served.removeprefix("http://"), 45, 3),
    )
    assert read_api_calls([]) == ()


def stored(text: str) -> bytes:
    return b64encode(zlib.compress(text.encode()))


@pytest.mark.parametrize(
    ("fields", "text"),
    [
        ([b"type", b"2", b"exc_string", stored("Traceback: x")], "Traceback: x"),
        ([b"type", b"1"], ""),
        ([b"exc_string", stored("x" * 10 * BYTES_MAX)], "x" * BYTES_MAX),
        ([b"exc_string", b"AAA"], "(no traceback can be read: "),
        ([b"exc_string", b64encode(b"plain")], "(no traceback can be read: "),
    ],
)
def test_tracebacks(fields: list[bytes], text: str) -> None:
    found = traceback_in(fields)
    assert found.startswith(text) if text.endswith(": ") else found == text
