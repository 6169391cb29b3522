"""Answers to writes, sorted by what happens next. Pure.

    code                    create                 delete             patch, put
    2xx                     DONE                   DONE               DONE
    404 (Status)            REFUSED                GONE               GONE
    404 of the path         REFUSED                GONE               REFUSED
    409 AlreadyExists       EXISTS                 -                  -
    500 generated name      EXISTS                 -                  -
    500 failed webhook      REFUSED                UNKNOWN            UNKNOWN
    409 (Status), other     CONFLICT               CONFLICT, look     CONFLICT
    403 + cause             NAMESPACE_TERMINATING  REFUSED            REFUSED
    403, 422                REFUSED                REFUSED            REFUSED
    429                     THROTTLED              THROTTLED          THROTTLED
    other 4xx (Status)      REFUSED                REFUSED            REFUSED
    never sent              NOT_SENT               NOT_SENT           NOT_SENT
    past its deadline       TOO_LATE               TOO_LATE           TOO_LATE
    5xx, 3xx, 408, silence,
    4xx without a Status,
    2xx without the object  UNKNOWN                UNKNOWN            UNKNOWN

A server-side apply is sorted as a patch, but for what it has in common with a create: 404 is REFUSED, as the namespace
or the kind is not there, 403 with that cause is NAMESPACE_TERMINATING, and a webhook that could not be called refuses
it. An object that does not fit its schema (a field of another name or type) is refused with 500, too, told by its text
(upstream: apimachinery/pkg/util/managedfields/internal/structuredmerge.go); it was not stored.

Only UNKNOWN leaves open whether the write took or will take effect. A 4xx without a Status did not come from the API
server (but from a proxy, or a wrong path), so it proves nothing. 429 is the exception, because the server's own
overload filter answers in plain text (upstream: apiserver/pkg/server/filters/maxinflight.go).

"Of the path": the server does not serve the kind, or this part of it, such as the status; nothing is said of an object
(upstream: apimachinery/pkg/api/errors, NewGenericServerResponse). Of a kind of a CustomResourceDefinition it answers to
an unknown part as if the object were not there (upstream: apiextensions-apiserver/pkg/apiserver,
customresource_handler.go). A look at the object tells these apart.

"Generated name": our pods have a generateName beside their name. If the name exists, older servers (seen: 1.20.2)
refuse such an object with 500 ServerTimeout, so that clients with generated names try again (upstream:
apiserver/pkg/registry/rest/create.go, CheckGeneratedNameError). The details tell it apart: their operation is POST,
while unreachable storage says `create` and admission that is not ready says `CREATE`. Like any 5xx it is no proof: it
only makes a look worth while (`taken_for_certain`). A create without generateName would get a 409 everywhere, but
every pod of upstream's has one, and there are programs that name a pod's workload by it.

"Failed webhook": an admission webhook could not be called, and must not be skipped. Admission comes before storage, so
a create with this answer has stored nothing. The answer has no code of its own, only the text that the server puts
before the reason (upstream: apiserver/pkg/util/webhook/error.go, ErrCallingWebhook, within
apimachinery/pkg/api/errors, NewInternalError). The text of a webhook itself begins otherwise.
"""

from enum import StrEnum

from oarlock.cluster.answer import NOT_SENT, TOO_LATE, Answer, Status

NAMESPACE_TERMINATING_CAUSE = "NamespaceTerminating"
GENERATED_NAME_OPERATION = "POST"
NOT_SERVED = "the server could not find the requested resource"
NOT_TYPED = "failed to create typed patch object"
WEBHOOK_NOT_CALLED = "Internal error occurred: failed calling webhook "
THROTTLED_DEFAULT_S = 1.0
THROTTLED_MAX_S = 300.0
"""No server means a longer wait. A wrong number, or a date read by another clock, must not put work off for a day."""


class Outcome(StrEnum):
    """What a write came to."""

    DONE = "done"
    EXISTS = "exists"  # create: the name is taken (see `taken_for_certain`); GET tells by whom
    GONE = "gone"  # the object (or this incarnation of it) no longer exists
    CHANGED = "changed"  # delete: same UID, newer resourceVersion; certainly not deleted
    CONFLICT = "conflict"  # a precondition or the resourceVersion did not hold; certainly not done
    REFUSED = "refused"  # quota, admission, validation, rights; certainly not done
    NAMESPACE_TERMINATING = "namespace-terminating"  # certainly not done, and never will be
    THROTTLED = "throttled"  # certainly not done; wait `delay_s` and try again
    NOT_SENT = "not-sent"  # certainly not done: no byte left this process, as no server could be asked
    TOO_LATE = "too-late"  # certainly not done: its deadline passed first; nothing failed, so try again
    UNKNOWN = "unknown"  # may have taken effect, or may still: send the same again

    @property
    def was_sent(self) -> bool:
        """Whether a byte of the request may have left this process."""
        return self not in (Outcome.NOT_SENT, Outcome.TOO_LATE)


DONE, EXISTS, UNKNOWN = Outcome.DONE, Outcome.EXISTS, Outcome.UNKNOWN
"""For what every write passes: Python 3.11 takes eight times as long to find a member of an enum as a name."""


def of_create(answer: Answer) -> Outcome:
    """Sort the answer to a POST of an object with a fixed name."""
    if answer.ok:
        return DONE
    status = answer.status
    if answer.code == 409 and status is not None and status.reason == "AlreadyExists":
        return Outcome.EXISTS
    if answer.code == 500 and status is not None and _generated_name_exists(status):
        return Outcome.EXISTS
    if answer.code == 403 and status is not None and status.has_cause(NAMESPACE_TERMINATING_CAUSE):
        return Outcome.NAMESPACE_TERMINATING
    if answer.code == 500 and status is not None and _webhook_was_not_called(status):
        return Outcome.REFUSED
    return _common(answer, status)


def taken_for_certain(answer: Answer) -> bool:
    """Of a create sorted as EXISTS: whether the answer alone proves that it did not take effect and never will.

    Where it does not, seeing who bears the name proves it, and seeing nobody does not.
    """
    return answer.code == 409


def of_delete(answer: Answer) -> Outcome:
    """Sort the answer to a DELETE with preconditions. After CONFLICT, GET and ask `of_delete_conflict`."""
    if answer.code == 404 and answer.status is not None:
        return Outcome.GONE  # of a kind that is not served there is no object
    return of_change(answer)


def of_delete_conflict(look: Answer, uid: str) -> Outcome:
    """What a conflicting DELETE of `uid` met, told by the GET made after it.

    GONE: not there, or another UID under the name. CHANGED: still there (the cache must pass the
    resourceVersion of `look`). UNKNOWN: the look told nothing; the same DELETE may be sent again.
    """
    if look.code == 404 and look.status is not None:
        return Outcome.GONE
    if not look.ok or not look.uid:
        return Outcome.UNKNOWN
    return Outcome.CHANGED if look.uid == uid else Outcome.GONE


def of_change(answer: Answer) -> Outcome:
    """Sort the answer to a PATCH, a PUT or a status write."""
    if answer.ok:
        return DONE
    status = answer.status
    if answer.code == 404 and status is not None and not status.message.startswith(NOT_SERVED):
        return Outcome.GONE
    return _common(answer, status)


def of_apply(answer: Answer) -> Outcome:
    """Sort the answer to a server-side apply. A 404 says that the namespace or the kind is not there.

    CONFLICT: others manage a field with another value, or the uid or resourceVersion is not the object's any more.
    """
    if answer.ok:
        return DONE
    status = answer.status
    if answer.code == 403 and status is not None and status.has_cause(NAMESPACE_TERMINATING_CAUSE):
        return Outcome.NAMESPACE_TERMINATING
    if answer.code == 500 and status is not None and status.message.startswith((NOT_TYPED, WEBHOOK_NOT_CALLED)):
        return Outcome.REFUSED
    return _common(answer, status)


def delay_s(answer: Answer) -> float:
    """Seconds to wait after THROTTLED: the larger of header and Status, up to THROTTLED_MAX_S, else the default."""
    status = answer.status
    named_s = status.details.retry_after_seconds if status is not None and status.details is not None else 0
    return min(max(answer.retry_after_s or 0.0, named_s), THROTTLED_MAX_S) or THROTTLED_DEFAULT_S


def _generated_name_exists(status: Status) -> bool:
    details = status.details
    return status.reason == "ServerTimeout" and details is not None and details.name == GENERATED_NAME_OPERATION


def _webhook_was_not_called(status: Status) -> bool:
    return status.reason == "InternalError" and status.message.startswith(WEBHOOK_NOT_CALLED)


def _common(answer: Answer, status: Status | None) -> Outcome:
    """Of an answer that is not 2xx."""
    code = answer.code
    if code == NOT_SENT:
        return Outcome.NOT_SENT
    if code == TOO_LATE:
        return Outcome.TOO_LATE
    if code == 429:
        return Outcome.THROTTLED
    if status is None or code == 408 or not 400 <= code < 500:
        return Outcome.UNKNOWN
    return Outcome.CONFLICT if code == 409 else Outcome.REFUSED
