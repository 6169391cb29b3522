"""What came back for a request: a code, the raw body, and cheap looks into it.

A request never raises because of what the server said, or because it said nothing. Two codes are ours:
`NO_ANSWER` (0), sent and unanswered, so it may still take effect; `NOT_SENT` (-1), certainly never sent.
"""

from typing import Any

import msgspec
import orjson

NO_ANSWER = 0
NOT_SENT = -1


class StatusCause(msgspec.Struct, frozen=True, gc=False):
    """One entry of `details.causes`; `reason` is the machine-readable cause type."""

    reason: str = ""
    message: str = ""
    field: str = ""


class StatusDetails(msgspec.Struct, frozen=True, rename="camel"):
    """What a Status is about; `retry_after_seconds` is 0 when the server named no wait."""

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


class _Object(msgspec.Struct, gc=False):
    metadata: _Metadata = msgspec.field(default_factory=_Metadata)


_object = msgspec.json.Decoder(_Object)
_status = msgspec.json.Decoder(Status)


class Answer(msgspec.Struct, frozen=True, gc=False):
    """code: HTTP status, or NO_ANSWER / NOT_SENT; body: as received; retry_after_s: of the header, if any;
    error: why there was no answer (empty when there was one).

    The accessors decode on each call and only what they return; an unreadable body yields the empty value.
    """

    code: int
    body: bytes = b""
    retry_after_s: float | None = None
    error: str = ""

    @property
    def ok(self) -> bool:
        return 200 <= self.code < 300

    @property
    def uid(self) -> str:
        """metadata.uid of the object in the body, or the uid a Status names; "" if there is none."""
        status = self.status
        if status is not None:
            return status.details.uid if status.details is not None else ""
        return self._metadata().uid

    @property
    def resource_version(self) -> str:
        """metadata.resourceVersion of the object in the body; "" if there is none."""
        return self._metadata().resource_version

    def object(self) -> dict[str, Any]:
        """The whole body as a dict. Raises ValueError if it is not a JSON object."""
        decoded = orjson.loads(self.body)
        if not isinstance(decoded, dict):
            raise ValueError(f"expected a JSON object, got {type(decoded).__name__}")
        return decoded

    @property
    def status(self) -> Status | None:
        """The Status in the body, or None if the body is something else."""
        # An object's own `status` field is a mapping, a Status's is a word: the type check tells them apart.
        if b'"Status"' not in self.body:
            return None
        try:
            status = _status.decode(self.body)
        except (msgspec.DecodeError, RecursionError):
            return None  # an object of somebody's may be nested as deep as he likes
        return status if status.kind == "Status" else None

    @property
    def message(self) -> str:
        """One line for people: the Status's message, else why there was no answer, else the code."""
        status = self.status
        if status is not None and status.message:
            return status.message
        if self.error:
            return self.error
        return f"the server answered {self.code}"

    def _metadata(self) -> _Metadata:
        try:
            return _object.decode(self.body).metadata
        except msgspec.DecodeError:
            return _Metadata()
