"""A byte stream cut into lines and lines into watch events. Pure."""

import msgspec

from oarlock.cluster.answer import Status
from oarlock.cluster.http.shallow import decoded

LINE_BYTES_MAX = 64 << 20  # etcd refuses objects above 1.5 MB; a longer line is not a watch event


class BadFrameError(ValueError):
    """The stream holds something that is not a watch event."""


class WatchEvent(msgspec.Struct, frozen=True, gc=False):
    """type: ADDED, MODIFIED, DELETED or BOOKMARK; rv: resourceVersion; object: the object's JSON, untouched unless it
    is too deep to be read (`cluster.http.shallow`).
    """

    type: str
    rv: str
    object: bytes


class _Metadata(msgspec.Struct, gc=False):
    resourceVersion: str = ""


class _Versioned(msgspec.Struct, gc=False):
    metadata: _Metadata


class _Envelope(msgspec.Struct, gc=False):
    type: str
    object: msgspec.Raw


_versioned = msgspec.json.Decoder(_Versioned)
_envelope = msgspec.json.Decoder(_Envelope)
_status = msgspec.json.Decoder(Status)

# Every API server begins an event like this. If the rest, without the closing brace, decodes as one complete JSON
# value, it is the object: one decode for each event instead of two.
_BEGINNINGS = tuple(
    (f'{{"type":"{kind}","object":'.encode(), kind) for kind in ("MODIFIED", "ADDED", "DELETED", "BOOKMARK")
)


class Lines:
    """Cuts chunks into complete lines, in time linear in the bytes. An unfinished last line is never returned.

    (The next watch starts at the last event seen, so the server sends again what a broken connection cut off.)
    """

    def __init__(self) -> None:
        self._parts: list[bytes] = []
        self._held = 0

    def feed(self, chunk: bytes) -> list[bytes]:
        """The lines that `chunk` completes, without their ends, empty ones left out. Raises BadFrameError."""
        if b"\n" not in chunk:
            if chunk:
                self._hold(chunk)
            return []
        first, *middle = chunk.split(b"\n")
        if self._parts:
            self._parts.append(first)
            first = b"".join(self._parts)
            self._parts.clear()
            self._held = 0
        rest = middle.pop()
        if rest:
            self._hold(rest)
        return [line for line in (first, *middle) if line and line != b"\r"]

    def _hold(self, part: bytes) -> None:
        self._held += len(part)
        if self._held > LINE_BYTES_MAX:
            raise BadFrameError(f"a line of more than {LINE_BYTES_MAX} bytes")
        self._parts.append(part)


def decode_event(line: bytes) -> WatchEvent | Status:
    """One line; an ERROR event comes back as the Status it carries. Raises BadFrameError."""
    return decoded(_event, line)


def _event(line: bytes) -> WatchEvent | Status:
    try:
        for beginning, kind in _BEGINNINGS:
            if line.startswith(beginning) and line.endswith(b"}"):
                raw = line[len(beginning) : -1]
                try:
                    return WatchEvent(kind, _versioned.decode(raw).metadata.resourceVersion, raw)
                except msgspec.DecodeError:
                    break  # more fields, or other spacing: the general way
        envelope = _envelope.decode(line)
        if envelope.type == "ERROR":
            return _status.decode(envelope.object)
        version = _versioned.decode(envelope.object).metadata.resourceVersion
        return WatchEvent(envelope.type, version, bytes(envelope.object))
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        raise BadFrameError(f"not a watch event ({error}): {line[:120]!r}") from error
