"""The audit log as requests. A parser of its own: one JSON line each, only the fields that are judged."""

from __future__ import annotations

from collections.abc import Iterable, Iterator

import msgspec

from oarlock.chaos.judge.evidence.evidence import Request
from oarlock.chaos.judge.evidence.objects import Ref, unix_s
from oarlock.chaos.judge.evidence.sightings import QUEUE_OF_KIND

WORKER_AGENT = "(worker)"
"""Stands in the user agent of the requests that turns send."""


class _Meta(msgspec.Struct, rename="camel"):
    """The metadata of an object, or of a patch, in which other fields may be null."""

    name: str = ""
    uid: str = ""
    resource_version: str = ""
    owner_references: list[Ref] | None = None


class _Preconditions(msgspec.Struct, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Body(msgspec.Struct):
    metadata: _Meta | None = None
    preconditions: _Preconditions | None = None
    spec: msgspec.Raw = msgspec.Raw()


class _Object(msgspec.Struct, rename="camel"):
    resource: str = ""
    namespace: str = ""
    name: str = ""
    uid: str = ""
    resource_version: str = ""
    subresource: str = ""


class _Status(msgspec.Struct):
    code: int = 0


class _Event(msgspec.Struct, rename="camel"):
    verb: str
    request_uri: str = msgspec.field(default="", name="requestURI")
    user_agent: str = ""
    object_ref: _Object = msgspec.field(default_factory=_Object)
    response_status: _Status = msgspec.field(default_factory=_Status)
    request_object: msgspec.Raw = msgspec.Raw()
    request_received_timestamp: str = ""
    stage_timestamp: str = ""
    annotations: dict[str, str] = {}


_event = msgspec.json.Decoder(_Event)
_body = msgspec.json.Decoder(_Body)


def read_requests(lines: Iterable[bytes], second_timeout_ms: int = 0) -> Iterator[Request]:
    """Every request of the log, in its order. Raises msgspec.DecodeError for a line that is none.

    ``second_timeout_ms``: the time limit that a second fleet asks of the server with each request, unlike the first;
    it is what tells the two apart. 0: there was none.
    """
    mark = f"timeout={second_timeout_ms}ms" if second_timeout_ms else ""
    for line in lines:
        if line.strip():
            yield _request(_event.decode(line), mark)


def _request(event: _Event, second_mark: str) -> Request:
    about = event.object_ref
    has_body = bool(event.request_object)
    body = _body.decode(event.request_object) if has_body else _Body()
    meta, conditions = body.metadata or _Meta(), body.preconditions or _Preconditions()
    owner = task = ""
    for ref in meta.owner_references or ():
        if ref.controller:
            owner, queue = ref.uid, QUEUE_OF_KIND.get(ref.kind, "")
            task = f"{queue}:{about.namespace}/{ref.name}" if queue else ""
    deletes = event.verb == "delete"
    worker = WORKER_AGENT in event.user_agent
    second = worker and bool(second_mark) and second_mark in event.request_uri
    return Request(
        received_s=unix_s(event.request_received_timestamp),
        done_s=unix_s(event.stage_timestamp),
        verb=event.verb,
        resource=f"{about.resource}/{about.subresource}" if about.subresource else about.resource,
        namespace=about.namespace,
        name=about.name or meta.name,
        code=event.response_status.code,
        committed=event.annotations.get("oarlock.io/committed") == "true",
        ours=worker and not second,
        rv=int(about.resource_version or 0),
        uid=about.uid,
        owner=owner,
        task=task,
        asked_uid=conditions.uid if deletes else meta.uid,
        asked_rv=conditions.resource_version if deletes else meta.resource_version,
        fault=event.annotations.get("oarlock.io/answer", ""),
        body=has_body,
        second=second,
        spec=bool(body.spec),
    )
