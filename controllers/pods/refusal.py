"""What an API server's refusal says, where a decision hangs on more than its HTTP status."""

import msgspec

_FORBIDDEN = 403
_NAMESPACE_TERMINATING = "NamespaceTerminating"


class _Cause(msgspec.Struct):
    reason: str | None = None


class _Details(msgspec.Struct):
    causes: tuple[_Cause, ...] | None = None


class _Status(msgspec.Struct):
    details: _Details | None = None


_STATUS = msgspec.json.Decoder(_Status)


def namespace_is_terminating(code: int, body: bytes) -> bool:
    """Whether a create was refused because its namespace is being deleted: no failure, and no event.

    Told by a cause in the Status object, not by its text. Upstream:
    `pkg/controller/replicaset/replica_set.go`.
    """
    if code != _FORBIDDEN:
        return False
    try:
        status = _STATUS.decode(body)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError):
        return False  # not a Status object, so a proxy's refusal: an ordinary failure
    causes = (status.details and status.details.causes) or ()
    return any(cause.reason == _NAMESPACE_TERMINATING for cause in causes)
