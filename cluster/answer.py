"""The answer to a request: a code, the raw body, and cheap looks into the body.

A request never raises because of an answer, or because none came. Three codes are ours:
`NO_ANSWER` (0), sent and unanswered, so it may still take effect; `NOT_SENT` (-1), certainly never sent, for want of a
connection or credentials; `TOO_LATE` (-2), certainly never sent, because its deadline passed first.
"""

from typing import Any, TypeVar

import msgspec
import orjson

from oarlock.cluster.http.shallow import decoded, shallow
from oarlock.cluster.resources import Resource

_T = TypeVar("_T")

NO_ANSWER = 0
NOT_SENT = -1
TOO_LATE = -2


class StatusCause(msgspec.Struct, frozen=True, gc=False):
    """One entry of `details.causes`; `reason` is the machine-readable cause type."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """The details of a Status; `retry_after_seconds` is 0 if the server named no wait."""

    name: str = ""
    kind: str = ""
    uid: str = ""
    causes: tuple[StatusCause, ...] | None = ()
    retry_after_seconds: int = 0


class Status(msgspec.Struct, frozen=True):
    """A metav1.Status (upstream: staging/src/k8s.io/apimachinery/pkg/apis/meta/v1/types.go)."""

    kind: str = ""
    status: str = ""
    reason: str = ""
    message: str = ""
    code: int = 0
    details: StatusDetails | None = None

    def has_cause(self, cause_type: str) -> bool:
        """Whether a cause of this type is among the details."""
        causes = self.details.causes if self.details is not None else None
        return any(cause.reason == cause_type for cause in causes or ())


class _Metadata(msgspec.Struct, gc=False, rename="camel"):
    uid: str = ""
    resource_version: str = ""


class _Object(msgspec.Struct, gc=False, rename="camel"):
    api_version: str = ""
    kind: str = ""
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_object = msgspec.json.Decoder(_Object)
_status = msgspec.json.Decoder(Status)


class Answer(msgspec.Struct, frozen=True, gc=False):
    """code: HTTP status, or one of ours; body: as received; retry_after_s: of the header, if any; error: why there was
    no answer (empty when there was one); shown: what `proven` has read of the object in the body.

    An accessor that does not find it there decodes on each call, and only what it returns. An unreadable body yields
    the empty value. Content that is nested too deeply (`cluster.http.shallow`) is left out and makes no accessor raise.
    """

    code: int
    body: bytes = b""
    retry_after_s: float | None = None
    error: str = ""
    shown: _Object | None = None

    @property
    def ok(self) -> bool:
        return 200 <= self.code < 300

    @property
    def uid(self) -> str:
        """metadata.uid of the object in the body, or the uid a Status names; "" if there is none."""
        status = self.status
        if status is not None:
            return status.details.uid if status.details is not None else ""
        return self._object().metadata.uid

    @property
    def resource_version(self) -> str:
        """metadata.resourceVersion of the object in the body; "" if there is none."""
        return self._object().metadata.resource_version

    def object(self) -> dict[str, Any]:
        """The whole body as a dict. Raises ValueError if it is not a JSON object."""
        try:
            found = orjson.loads(self.body)
        except orjson.JSONDecodeError:
            found = orjson.loads(shallow(self.body))  # it may only have been too deep
        if not isinstance(found, dict):
            raise ValueError(f"expected a JSON object, got {type(found).__name__}")
        return found

    @property
    def status(self) -> Status | None:
        """The Status in the body, or None if the body is something else."""
        # The `status` field of an object is a mapping, that of a Status a word: decoding tells them apart.
        if b'"Status"' not in self.body:
            return None
        status = _decoded(_status, self.body)
        return status if status is not None and status.kind == "Status" else None

    @property
    def message(self) -> str:
        """One line for people: the Status's message, else why there was no answer, else the code."""
        status = self.status
        if status is not None and status.message:
            return status.message
        if self.error:
            return self.error
        return f"the server answered {self.code}"

    def _object(self) -> _Object:
        return self.shown or _decoded(_object, self.body) or _Object()


PAST_DEADLINE = Answer(TOO_LATE, error="its deadline passed before it could be sent")
"""To a write whose deadline passed. The server had no part in this, so it is no sign of an outage."""


def _decoded(decoder: msgspec.json.Decoder[_T], body: bytes) -> _T | None:
    """None if the body is something else. Users may nest their objects as deep as they like."""
    try:
        return decoded(decoder.decode, body)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        return None


def proven(answer: Answer, resource: Resource, *, deleted: bool = False) -> Answer:
    """The same answer, unless it says 2xx without showing an object of the kind asked for.

    Such an answer came from something else (a proxy, a login page, another kind's path) or was damaged. It proves
    nothing, so the request counts as unanswered. ``deleted``: a DELETE may be answered by a Status, too.
    """
    if not answer.ok:
        return answer
    try:
        found = _object.decode(answer.body)
    except RecursionError:  # later readers get the part of the body that can be read
        return proven(msgspec.structs.replace(answer, body=shallow(answer.body)), resource, deleted=deleted)
    except (msgspec.MsgspecError, UnicodeDecodeError):
        found = _Object()
    if (found.kind, found.api_version) == (resource.kind, resource.api_version) and found.metadata.uid:
        return Answer(answer.code, answer.body, answer.retry_after_s, shown=found)
    status = answer.status
    if deleted and status is not None and status.status == "Success":
        return answer
    return Answer(NO_ANSWER, error=f"answered {answer.code} without a {resource.kind}: {answer.body[:80]!r}")
