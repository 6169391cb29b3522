"""The audit log: one `audit.k8s.io/v1` Event per answered write, as JSON lines.

Pods are recorded with request and response (level RequestResponse), other kinds with Metadata unless the
log is asked for more. A write counts as answered when the server is done with it: one whose answer was
dropped on purpose is recorded too, with the resourceVersion it committed. Two annotations are ours:
`oarlock.io/committed` ("true"/"false": did this request change the store) and `oarlock.io/answer` (what a
fault made of the answer: "dropped", "failed", "refused", "delayed").
"""

from __future__ import annotations

import asyncio
import math
import os
import uuid
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any, BinaryIO, Final

import orjson

from oarlock.sandbox.apiserver.http.paths import Target
from oarlock.sandbox.apiserver.text.times import rfc3339_micro

COMMITTED: Final = "oarlock.io/committed"
ANSWER: Final = "oarlock.io/answer"
FLUSH_EVERY_S: Final = 0.05


@dataclass(slots=True)
class Call:
    """A request as the audit log sees it.

    ``received_s``: when it reached the machine, in unix seconds. ``until_s``: on the monotonic clock; from then on
    it is not carried out.
    """

    verb: str
    uri: str
    user: str
    user_agent: str
    source_ip: str
    target: Target
    received_s: float
    until_s: float = math.inf
    body: bytes = b""
    content_type: str = ""
    body_is_json: bool = True
    committed: bool = False
    annotations: dict[str, str] = field(default_factory=dict)


class AuditLog:
    """Appends to `path`. `full_for_all`: level RequestResponse for every kind; `reads`: record reads too."""

    def __init__(self, path: Path, *, full_for_all: bool = False, reads: bool = False) -> None:
        self.reads = reads
        self._full_for_all = full_for_all
        fd = os.open(path, os.O_WRONLY | os.O_CREAT | os.O_APPEND | os.O_CLOEXEC, 0o600)  # it may hold whole requests
        self._file: BinaryIO = os.fdopen(fd, "ab", buffering=0)
        self._pending: list[bytes] = []
        self._flush_due: asyncio.TimerHandle | None = None

    def record(self, call: Call, code: int, answer: bytes, about: dict[str, Any], completed_s: float) -> None:
        """Note one answered request; written within FLUSH_EVERY_S. `about`: metadata of the object meant."""
        target = call.target
        kind = target.kind
        full = self._full_for_all or kind.name == "Pod"
        reference: dict[str, str] = {
            "resource": kind.plural,
            "namespace": target.namespace,
            "name": target.name or about.get("name", ""),
            "uid": about.get("uid", ""),
            "apiGroup": kind.group,
            "apiVersion": kind.version,
            "resourceVersion": about.get("resourceVersion", ""),
            "subresource": target.subresource,
        }
        event: dict[str, Any] = {
            "kind": "Event",
            "apiVersion": "audit.k8s.io/v1",
            "level": "RequestResponse" if full else "Metadata",
            "auditID": str(uuid.uuid4()),
            "stage": "ResponseComplete",
            "requestURI": call.uri,
            "verb": call.verb,
            "user": {"username": call.user},
            "sourceIPs": [call.source_ip],
            "userAgent": call.user_agent,
            "objectRef": {key: value for key, value in reference.items() if value},
            "responseStatus": {"metadata": {}, "code": code},
        }
        if full:
            if call.body and call.body_is_json:
                event["requestObject"] = _one_line(call.body)
            if answer:
                event["responseObject"] = orjson.Fragment(answer)
        event["requestReceivedTimestamp"] = rfc3339_micro(call.received_s)
        event["stageTimestamp"] = rfc3339_micro(completed_s)
        if call.annotations:
            event["annotations"] = call.annotations
        self._pending.append(orjson.dumps(event, option=orjson.OPT_APPEND_NEWLINE))
        if self._flush_due is None:
            self._flush_due = asyncio.get_running_loop().call_later(FLUSH_EVERY_S, self.flush)

    def flush(self) -> None:
        """Write what is pending now."""
        if self._flush_due is not None:
            self._flush_due.cancel()
            self._flush_due = None
        if self._pending:
            lines = memoryview(b"".join(self._pending))
            self._pending.clear()
            while lines:  # an unbuffered write may be short
                lines = lines[self._file.write(lines) :]

    def close(self) -> None:
        self.flush()
        self._file.close()


def _one_line(body: bytes) -> object:
    """The body as it was sent; one with a line break in it is written anew."""
    return orjson.loads(body) if b"\n" in body else orjson.Fragment(body)
