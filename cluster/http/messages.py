"""The HTTP/1.1 messages of a request: itself as bytes, and bytes into its answer. Pure.

RFC 9112, sections 4 (status line) and 6.3 (length of a body). The reader is strict: a malformed answer
raises ValueError, and so does a header whose name is no token (RFC 9110, 5.6.2) or whose line holds a bare CR or LF. It
skips interim answers (1xx). What follows the head: `cluster.http.body`.
"""

import re
from typing import NamedTuple

from oarlock.cluster.http.body import BODY_BYTES_MAX, BodyReader

HEAD_BYTES_MAX = 64 << 10
_EMPTY = (204, 304)
_TOKEN = frozenset("!#$%&'*+-.^_`|~0123456789abcdefghijklmnopqrstuvwxyzABCDEFGHIJKLMNOPQRSTUVWXYZ")
_FIRST = re.compile(rb"HTTP/1\.([01]) ([1-9][0-9]{2})(?: [^\r\n]*)?")
_HEADER = re.compile(rb"[!#$%&'*+\-.^_`|~0-9A-Za-z]+:[^\r\n]*")
_HEAD = re.compile(rb"%b(?:\r\n%b)*" % (_FIRST.pattern, _HEADER.pattern))
_HEEDED = re.compile(
    rb"\r\n(content-length|transfer-encoding|connection|content-encoding|retry-after):([^\r\n]*)", re.IGNORECASE
)


class RequestWriter:
    """Writes requests to one server. host: the Host header; root: the path before every path."""

    def __init__(self, host: str, root: str, user_agent: str) -> None:
        self._root = root
        self._fixed = (("Host", host), ("User-Agent", user_agent), ("Accept", "application/json"))
        self._headers: tuple[tuple[str, str], ...] | None = None
        self._head: str | None = None
        self._asked: tuple[str, ...] | None = None
        self._start: bytes | None = None

    def written(
        self,
        method: str,
        path: str,
        headers: tuple[tuple[str, str], ...],
        content_type: str,
        body: bytes,
        traceparent: str = "",
    ) -> bytes | None:
        """The whole request. None if a part of it is not plain printable text, so that no path and no header can bring
        the end of a line with it. ``headers``: those of the credentials.
        """
        if headers is not self._headers:
            self._headers, self._head, self._asked = headers, _head((*self._fixed, *headers)), None
        asked = method, path, content_type if body else "", traceparent
        if asked != self._asked:  # of the creates of a wave all but the bodies is the same
            self._asked, self._start = asked, self._started(*asked)
        if self._start is None:
            return None
        length = b"Content-Length: %d\r\n" % len(body) if body or method != "GET" else b""
        return b"%b%b\r\n%b" % (self._start, length, body)

    def _started(self, method: str, path: str, content_type: str, traceparent: str) -> bytes | None:
        target = self._root + path
        if self._head is None or " " in target or not all(map(_plain, (target, content_type, traceparent))):
            return None
        more = f"Content-Type: {content_type}\r\n" if content_type else ""
        more += f"traceparent: {traceparent}\r\n" if traceparent else ""
        return f"{method} {target} HTTP/1.1\r\n{self._head}{more}".encode()


def _head(headers: tuple[tuple[str, str], ...]) -> str | None:
    if not all(name and _TOKEN.issuperset(name) and _plain(value) for name, value in headers):
        return None
    return "".join(f"{name}: {value}\r\n" for name, value in headers)


def _plain(text: str) -> bool:
    return text.isascii() and text.isprintable()


class HttpAnswer(NamedTuple):
    """retry_after: of that header, or ""; reusable: whether the connection may carry another request."""

    status: int
    retry_after: str
    body: bytes
    reusable: bool


class AnswerReader:
    """Reads one answer: give `feed` what arrives until it returns the answer; ask `at_end` when the connection ends."""

    def __init__(self) -> None:
        self.status = 0
        self.body: BodyReader | None = None  # once the head has been read
        self._head = b""  # what has come of it
        self._retry_after = ""
        self._keeps = self._closes = self._chunked = False
        self._parts: list[bytes] = []
        self._size = 0

    def feed(self, data: bytes) -> HttpAnswer | None:
        """The answer, once it is complete. Raises ValueError."""
        if self.body is None:
            data = self.head(data)
            if self.body is None:
                return None
        part = self.body.feed(data)
        if part:
            self._parts.append(part)
            self._size += len(part)
            _limit(self._size)
        return self._done(self.body) if self.body.whole else None

    def at_end(self) -> HttpAnswer | None:
        """The answer, if its body lasts until the connection ends; None if the answer was cut off."""
        if self.body is None:
            return None
        self.body.at_end()
        return self._done(self.body) if self.body.whole else None

    def head(self, data: bytes) -> bytes:
        """Read as far as the end of the head; there is a `body` from then on. Returns what comes after that. Raises
        ValueError.
        """
        data, self._head = self._head + data, b""
        while self.body is None:
            end = data.find(b"\r\n\r\n")
            if end < 0:
                if len(data) > HEAD_BYTES_MAX:
                    raise ValueError("an endless head")
                self._head = data
                return b""
            self._read_head(data[:end])
            data = data[end + 4 :]
        return data

    def _read_head(self, head: bytes) -> None:
        found = _HEAD.fullmatch(head)
        if found is None:
            raise ValueError(_flaw(head))
        self.status, self._keeps, self._closes = int(found[2]), found[1] == b"1", False
        if self.status == 101:
            raise ValueError("another protocol")
        lengths: set[bytes] = set()
        for name, value in _HEEDED.findall(head):
            self._read_header(name.lower(), value.strip(), lengths)
        if self.status < 200:
            self._chunked, self._retry_after = False, ""
            return
        length: int | None = None
        if self.status in _EMPTY:
            self._chunked, length = False, 0
        elif lengths and not self._chunked:
            (told,) = lengths if len(lengths) == 1 else (b"",)
            if not told.isdigit():
                raise ValueError(f"length {sorted(lengths)!r}")
            length = int(told)
            _limit(length)
        elif lengths:
            raise ValueError("two lengths")
        self.body = BodyReader(self._chunked, length, self._keeps and not self._closes)

    def _read_header(self, name: bytes, value: bytes, lengths: set[bytes]) -> None:
        if name == b"content-length":
            lengths.add(value)
        elif name == b"transfer-encoding":
            if value.lower() != b"chunked" or self._chunked:
                raise ValueError(f"transfer encoding {value[:40]!r}")
            self._chunked = True
        elif name == b"connection":
            self._closes = self._closes or b"close" in value.lower()  # wins over keep-alive, whichever comes first
            self._keeps = self._keeps or b"keep-alive" in value.lower()
        elif name == b"content-encoding":
            raise ValueError(f"in {value[:40]!r}, which was not asked for")
        elif name == b"retry-after":
            self._retry_after = value.decode("ascii", "replace")

    def _done(self, body: BodyReader) -> HttpAnswer:
        read = self._parts[0] if len(self._parts) == 1 else b"".join(self._parts)
        return HttpAnswer(self.status, self._retry_after, read, body.reusable)


def _limit(size: int) -> None:
    if size > BODY_BYTES_MAX:
        raise ValueError(f"a body of more than {BODY_BYTES_MAX} bytes")


def _flaw(head: bytes) -> str:
    first, *lines = head.split(b"\r\n")
    if _FIRST.fullmatch(first) is None:
        return f"begins with {first[:40]!r}"
    return f"header {next(line for line in lines if _HEADER.fullmatch(line) is None)[:40]!r}"
