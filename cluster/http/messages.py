"""The HTTP/1.1 messages of a request: itself as bytes, and bytes into its answer. Pure.

RFC 9112, sections 4 (status line), 6.3 (length of a body) and 7.1 (chunks). The reader is strict: a malformed answer
raises ValueError, and so does a header whose name is no token (RFC 9110, 5.6.2) or whose line holds a bare CR or LF. It
skips interim answers (1xx), trailers and chunk extensions.
"""

import re
from typing import NamedTuple

from oarlock.cluster.http.body import LINE_BYTES_MAX, BodyReader, chunk_length

HEAD_BYTES_MAX = 64 << 10
BODY_BYTES_MAX = 2_000_000_000  # a list that is asked for whole: 1.2 GB for 500,000 pods
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
        self._buffer = bytearray()
        self._begun = False  # whether the head has been read
        self._status = 0
        self._retry_after = ""
        self._keeps = self._closes = False
        self._length: int | None = None  # of the body; None: chunked, or up to the end
        self._chunked = False
        self._chunks: list[bytes] = []
        self._size = 0
        self._trailer = False

    def feed(self, data: bytes) -> HttpAnswer | None:
        """The answer, once it is complete. Raises ValueError."""
        self._buffer += data
        while not self._begun:
            if not self._read_head():
                return None
        if self._chunked:
            return self._read_chunks()
        if self._length is None:
            self._limit(len(self._buffer))
            return None
        if len(self._buffer) < self._length:
            return None
        return self._done(self._cut(0, self._length), len(self._buffer) == self._length)

    def body(self, data: bytes) -> BodyReader | None:
        """In place of `feed`, for a body that is to be read as it comes: a reader for what `take` gives and what comes
        after that. None until the head is complete, and where it does not say 200. Raises ValueError.
        """
        self._buffer += data
        while not self._begun:
            if not self._read_head():
                return None
        if self._status != 200:
            return None
        return BodyReader(self._chunked, self._length, self._keeps and not self._closes)

    def take(self) -> bytes:
        """What has come of the body so far; it is the caller's from now on."""
        taken = bytes(self._buffer)
        self._buffer.clear()
        return taken

    def at_end(self) -> HttpAnswer | None:
        """The answer, if its body lasts until the connection ends; None if the answer was cut off."""
        if self._begun and not self._chunked and self._length is None:
            return self._done(bytes(self._buffer), False)
        return None

    def _read_head(self) -> bool:
        end = self._buffer.find(b"\r\n\r\n")
        if end < 0:
            if len(self._buffer) > HEAD_BYTES_MAX:
                raise ValueError("an endless head")
            return False
        head = bytes(self._buffer[:end])
        del self._buffer[: end + 4]
        found = _HEAD.fullmatch(head)
        if found is None:
            raise ValueError(_flaw(head))
        self._status, self._keeps, self._closes = int(found[2]), found[1] == b"1", False
        if self._status == 101:
            raise ValueError("another protocol")
        lengths: set[bytes] = set()
        for name, value in _HEEDED.findall(head):
            self._read_header(name.lower(), value.strip(), lengths)
        if self._status < 200:
            self._chunked, self._retry_after = False, ""
            return True
        self._begun = True
        if self._status in _EMPTY:
            self._chunked, self._length = False, 0
        elif lengths and not self._chunked:
            (length,) = lengths if len(lengths) == 1 else (b"",)
            if not length.isdigit():
                raise ValueError(f"length {sorted(lengths)!r}")
            self._length = int(length)
            self._limit(self._length)
        elif lengths:
            raise ValueError("two lengths")
        return True

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

    def _read_chunks(self) -> HttpAnswer | None:
        buffer, at = self._buffer, 0
        while True:
            end = buffer.find(b"\r\n", at)
            if end < 0:
                if len(buffer) - at > LINE_BYTES_MAX:
                    raise ValueError("an endless line")
                break
            if self._trailer:
                if end == at:
                    return self._done(b"".join(self._chunks), len(buffer) == end + 2)
                at = end + 2
                continue
            length = chunk_length(bytes(buffer[at:end]))
            if length == 0:
                self._trailer, at = True, end + 2
                continue
            self._limit(self._size + length)
            after = end + 2 + length
            if len(buffer) < after + 2:
                break
            if buffer[after : after + 2] != b"\r\n":
                raise ValueError("a chunk longer than it says")
            self._chunks.append(self._cut(end + 2, after))
            self._size += length
            at = after + 2
        del buffer[:at]
        return None

    def _cut(self, start: int, end: int) -> bytes:
        """A part of the buffer, copied once."""
        return bytes(memoryview(self._buffer)[start:end])

    def _limit(self, size: int) -> None:
        if size > BODY_BYTES_MAX:
            raise ValueError(f"a body of more than {BODY_BYTES_MAX} bytes")

    def _done(self, body: bytes, whole: bool) -> HttpAnswer:
        return HttpAnswer(self._status, self._retry_after, body, self._keeps and not self._closes and whole)


def _flaw(head: bytes) -> str:
    first, *lines = head.split(b"\r\n")
    if _FIRST.fullmatch(first) is None:
        return f"begins with {first[:40]!r}"
    return f"header {next(line for line in lines if _HEADER.fullmatch(line) is None)[:40]!r}"
