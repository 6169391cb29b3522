"""The body of an answer, read as it comes. Pure.

RFC 9112, sections 6.3 (length of a body) and 7.1 (chunks). The reader is strict: malformed chunks raise ValueError. It
skips trailers and chunk extensions.
"""

BODY_BYTES_MAX = 2_000_000_000  # a list that is asked for whole: 1.2 GB for 500,000 pods
LINE_BYTES_MAX = 64 << 10  # of the size of a chunk with its extensions, or of a trailer


class BodyReader:
    """Reads a body as it comes. whole: whether its end has come; reusable: whether the connection may carry another
    request then.
    """

    def __init__(self, chunked: bool, length: int | None, keeps: bool) -> None:
        self._chunked, self._left, self._keeps = chunked, 0 if chunked else length, keeps
        self._rest = b""  # the beginning of a line, or of the end of a chunk
        self._in_chunk = self._trailer = self._too_much = False
        self.whole = not chunked and length == 0

    @property
    def reusable(self) -> bool:
        return self._keeps and self.whole and not self._too_much

    def feed(self, data: bytes) -> bytes:
        """What of it is the body's. Raises ValueError."""
        if self.whole:
            self._too_much = self._too_much or bool(data)
            return b""
        return self._feed_chunks(data) if self._chunked else self._feed_plain(data)

    def at_end(self) -> None:
        """The connection has ended."""
        if self._left is None:
            self.whole, self._keeps = True, False

    def _feed_plain(self, data: bytes) -> bytes:
        if self._left is None:
            return data
        part = data[: self._left]
        self._left -= len(part)
        self.whole, self._too_much = not self._left, len(data) > len(part)
        return part

    def _feed_chunks(self, data: bytes) -> bytes:
        if self._rest:
            data, self._rest = self._rest + data, b""
        at, size, parts, left, in_chunk = 0, len(data), [], self._left or 0, self._in_chunk
        while at < size:
            if left:
                part = data[at : at + left]
                parts.append(part)
                left -= len(part)
                at += len(part)
                continue
            if in_chunk and not data.startswith(b"\r\n", at):
                if data[at:] != b"\r":
                    raise ValueError("a chunk longer than it says")
                self._rest = b"\r"
                break
            if in_chunk:
                in_chunk, at = False, at + 2
                continue
            end = data.find(b"\r\n", at)
            if end < 0:
                if size - at > LINE_BYTES_MAX:
                    raise ValueError("an endless line")
                self._rest = data[at:]
                break
            if self._trailer:
                self.whole = end == at
                if self.whole:
                    self._too_much = size > end + 2
                    break
            else:
                left = _chunk_length(data[at:end])
                in_chunk, self._trailer = left > 0, left == 0
            at = end + 2
        self._left, self._in_chunk = left, in_chunk
        return parts[0] if len(parts) == 1 else b"".join(parts)


def _chunk_length(line: bytes) -> int:
    size = line.partition(b";")[0].strip()
    if not size or len(size) > 8 or size.strip(b"0123456789abcdefABCDEF"):
        raise ValueError(f"chunk of {size[:40]!r}")
    length = int(size, 16)
    if length > BODY_BYTES_MAX:
        raise ValueError(f"chunk of {length} bytes")
    return length
