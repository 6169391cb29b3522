"""Decides what is sent for an event: nothing (spam), a higher count, a combined event, or a new one. Pure.

Upstream: client-go/tools/record/events_cache.go with its defaults. State is per process, as it is there.
"""

from collections import OrderedDict
from typing import Generic, TypeVar

import msgspec
import orjson

from oarlock.cluster.timestamps import seconds_text

CACHE_MAX = 4096
SIMILAR_MAX = 10  # from the tenth message on that differs only in its text, they are combined
SIMILAR_WITHIN_S = 600
SPAM_BURST = 25
SPAM_REFILL_S = 300
WARNING = "Warning"
COMBINED_PREFIX = "(combined from similar events): "
NAME_MAX = 253

T = TypeVar("T")


class ObjectRef(msgspec.Struct, frozen=True):
    """The object an event is about."""

    api_version: str
    kind: str
    namespace: str
    name: str
    uid: str
    resource_version: str = ""


class Note(msgspec.Struct, frozen=True):
    """One event to report: by whom (component, host), about what, Normal or Warning, a CamelCase reason, a text."""

    about: ObjectRef
    type: str
    reason: str
    message: str
    component: str
    host: str = ""


class Sending(msgspec.Struct, frozen=True):
    """A request to send: `patch` to the event of this name if it repeats one. Otherwise, or if that is gone, `body`."""

    namespace: str
    name: str
    body: bytes
    patch: bytes | None


class _Seen(msgspec.Struct):
    name: str
    count: int
    first_ns: int


class _Similar(msgspec.Struct):
    messages: tuple[int, ...]
    last_ns: int


class _Spam(msgspec.Struct):
    tokens: float
    last_ns: int


class _Recent(Generic[T]):
    """A mapping of bounded size that forgets the entry that was not used for longest. Its keys are the hashes of texts,
    with a secret of this process: texts would be most of a worker's memory that grows.
    """

    def __init__(self) -> None:
        self._entries: OrderedDict[int, T] = OrderedDict()

    def get(self, key: int) -> T | None:
        entry = self._entries.get(key)
        if entry is not None:
            self._entries.move_to_end(key)
        return entry

    def put(self, key: int, entry: T) -> T:
        self._entries[key] = entry
        self._entries.move_to_end(key)
        if len(self._entries) > CACHE_MAX:
            self._entries.popitem(last=False)
        return entry


class Correlator:
    """Takes every note in order and returns what to send for it, if anything. Time in unix nanoseconds."""

    def __init__(self) -> None:
        self._similar: _Recent[_Similar] = _Recent()
        self._seen: _Recent[_Seen] = _Recent()
        self._spam: _Recent[_Spam] = _Recent()
        self._named_ns = 0

    def correlate(self, note: Note, now_ns: int) -> Sending | None:
        """What to send for this note; None if there were too many about its object."""
        about, message = note.about, note.message
        if not message.isascii():
            message = message.encode(errors="backslashreplace").decode()  # it may quote what has no UTF-8
        source = (note.component, note.host, about.api_version, about.kind)
        subject = hash((*source, about.namespace, about.name, about.uid))
        group = hash((subject, note.type, note.reason))
        key = hash((group, message))
        if self._is_one_of_many(group, message, now_ns):
            message, key = COMBINED_PREFIX + message, group
        seen = self._counted(about.name, key, now_ns)
        # Last, as upstream: a filtered event still counts as seen.
        return None if self._is_spam(subject, now_ns) else _sending(note, message, seen, now_ns)

    def _is_one_of_many(self, group: int, message: str, now_ns: int) -> bool:
        similar = self._similar.get(group)
        if similar is None or now_ns - similar.last_ns > SIMILAR_WITHIN_S * 10**9:
            similar = self._similar.put(group, _Similar((), 0))
        if hash(message) not in similar.messages:
            similar.messages += (hash(message),)
        similar.last_ns = now_ns
        if len(similar.messages) < SIMILAR_MAX:
            return False
        similar.messages = similar.messages[1:]  # one below the limit, so that it stays small
        return True

    def _counted(self, about: str, key: int, now_ns: int) -> _Seen:
        seen = self._seen.get(key)
        if seen is None:
            # Objects of two kinds may have one name, and a clock may be coarse.
            self._named_ns = max(now_ns, self._named_ns + 1)
            seen = self._seen.put(key, _Seen(_event_name(about, self._named_ns), 0, now_ns))
        seen.count += 1
        return seen

    def _is_spam(self, subject: int, now_ns: int) -> bool:
        spam = self._spam.get(subject) or self._spam.put(subject, _Spam(float(SPAM_BURST), now_ns))
        earned = max(0, now_ns - spam.last_ns) / (SPAM_REFILL_S * 1e9)
        spam.tokens = min(spam.tokens + earned, float(SPAM_BURST))
        spam.last_ns = now_ns
        if spam.tokens < 1:
            return True
        spam.tokens -= 1
        return False


def _event_name(about: str, now_ns: int) -> str:
    suffix = f".{now_ns:x}"
    return about[: NAME_MAX - len(suffix)].rstrip("-.") + suffix


def _text(now_ns: int) -> str:
    return seconds_text(now_ns // 10**6)


def _sending(note: Note, message: str, seen: _Seen, now_ns: int) -> Sending:
    patch = None
    if seen.count > 1:
        patch = orjson.dumps({"count": seen.count, "lastTimestamp": _text(now_ns), "message": message})
    namespace = note.about.namespace or "default"
    return Sending(namespace, seen.name, _body(note, message, namespace, seen, now_ns), patch)


def _body(note: Note, message: str, namespace: str, seen: _Seen, now_ns: int) -> bytes:
    about = note.about
    reference = {
        "apiVersion": about.api_version,
        "kind": about.kind,
        "namespace": about.namespace,
        "name": about.name,
        "uid": about.uid,
        "resourceVersion": about.resource_version,
    }
    source = {"component": note.component, "host": note.host}
    return orjson.dumps(
        {
            "apiVersion": "v1",
            "kind": "Event",
            "metadata": {"name": seen.name, "namespace": namespace},
            "involvedObject": {key: value for key, value in reference.items() if value},
            "type": note.type,
            "reason": note.reason,
            "message": message,
            "count": seen.count,
            "firstTimestamp": _text(seen.first_ns),
            "lastTimestamp": _text(now_ns),
            "source": {key: value for key, value in source.items() if value},
            "reportingComponent": note.component,
            "reportingInstance": note.host,
        }
    )
