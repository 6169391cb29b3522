"""What an answer to a write means, line by line of the table in cluster/outcome.py."""

import json
import math

import pytest

from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, PAST_DEADLINE, TOO_LATE, Answer, proven
from oarlock.cluster.outcome import (
    Outcome,
    delay_s,
    of_apply,
    of_change,
    of_create,
    of_delete,
    of_delete_conflict,
    taken_for_certain,
)
from oarlock.cluster.resources import PODS
from tests.cluster.client_helpers import status_json

POD = b'{"kind":"Pod","metadata":{"uid":"u1","resourceVersion":"42"},"status":{"phase":"Pending"}}'
POD_WITH_KIND = b'{"kind":"Pod","apiVersion":"v1","metadata":{"uid":"u1","resourceVersion":"42"}}'
TERMINATING = [{"reason": "NamespaceTerminating", "message": "going", "field": "metadata.namespace"}]
O = Outcome  # noqa: E741


def said(code, reason="", **details):
    return Answer(code, status_json(code, reason, **details))


@pytest.mark.parametrize(
    ("answer", "create", "delete", "change"),
    [
        pytest.param(Answer(200, POD), O.DONE, O.DONE, O.DONE, id="200"),
        pytest.param(Answer(201, POD), O.DONE, O.DONE, O.DONE, id="201"),
        pytest.param(Answer(202, b"{}"), O.DONE, O.DONE, O.DONE, id="202 accepted"),
        pytest.param(said(404, "NotFound"), O.REFUSED, O.GONE, O.GONE, id="404"),
        pytest.param(
            Answer(404, status_json(404, "NotFound", "the server could not find the requested resource")),
            O.REFUSED,
            O.GONE,
            O.REFUSED,
            id="404 of the path",
        ),
        pytest.param(Answer(404, b"404 page not found"), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="404 of no API"),
        pytest.param(said(409, "AlreadyExists"), O.EXISTS, O.CONFLICT, O.CONFLICT, id="409 name taken"),
        pytest.param(
            said(409, "AlreadyExists", retryAfterSeconds=1),
            O.EXISTS,
            O.CONFLICT,
            O.CONFLICT,
            id="409 name taken although generateName was given too",
        ),
        pytest.param(said(409, "Conflict"), O.CONFLICT, O.CONFLICT, O.CONFLICT, id="409 quota or precondition"),
        pytest.param(Answer(409, b"conflict"), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="409 of no API"),
        pytest.param(said(403, "Forbidden"), O.REFUSED, O.REFUSED, O.REFUSED, id="403 quota, rights"),
        pytest.param(
            said(403, "Forbidden", causes=TERMINATING),
            O.NAMESPACE_TERMINATING,
            O.REFUSED,
            O.REFUSED,
            id="403 namespace terminating, by cause",
        ),
        pytest.param(
            Answer(403, status_json(403, "Forbidden", "because it is being terminated")),
            O.REFUSED,
            O.REFUSED,
            O.REFUSED,
            id="403 that only sounds like it",
        ),
        pytest.param(
            said(403, "Forbidden", causes=[{"reason": "Other"}, *TERMINATING]),
            O.NAMESPACE_TERMINATING,
            O.REFUSED,
            O.REFUSED,
            id="403 namespace terminating, one of several causes",
        ),
        pytest.param(
            said(403, "Forbidden", causes=[{"reason": "Other"}]),
            O.REFUSED,
            O.REFUSED,
            O.REFUSED,
            id="403 another cause",
        ),
        pytest.param(
            said(409, "Conflict", causes=TERMINATING), O.CONFLICT, O.CONFLICT, O.CONFLICT, id="409 with that cause"
        ),
        pytest.param(Answer(403, b"<html>forbidden</html>"), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="403 of no API"),
        pytest.param(Answer(403, b""), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="403 without a body"),
        pytest.param(said(403, "Forbidden", causes=None), O.REFUSED, O.REFUSED, O.REFUSED, id="403 with causes null"),
        pytest.param(said(422, "Invalid"), O.REFUSED, O.REFUSED, O.REFUSED, id="422"),
        pytest.param(said(400, "BadRequest"), O.REFUSED, O.REFUSED, O.REFUSED, id="400"),
        pytest.param(said(401, "Unauthorized"), O.REFUSED, O.REFUSED, O.REFUSED, id="401"),
        pytest.param(said(413, "RequestEntityTooLarge"), O.REFUSED, O.REFUSED, O.REFUSED, id="413"),
        pytest.param(said(408, "Timeout"), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="408"),
        pytest.param(said(429, "TooManyRequests"), O.THROTTLED, O.THROTTLED, O.THROTTLED, id="429"),
        pytest.param(Answer(429, b"Too many requests"), O.THROTTLED, O.THROTTLED, O.THROTTLED, id="429 in plain text"),
        pytest.param(said(500, "InternalError"), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="500"),
        pytest.param(said(504, "Timeout"), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="504"),
        pytest.param(Answer(502, b"<html>"), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="502 of a proxy"),
        pytest.param(Answer(307), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="a redirect"),
        pytest.param(Answer(NO_ANSWER), O.UNKNOWN, O.UNKNOWN, O.UNKNOWN, id="silence"),
        pytest.param(Answer(NOT_SENT), O.NOT_SENT, O.NOT_SENT, O.NOT_SENT, id="never sent"),
        pytest.param(PAST_DEADLINE, O.TOO_LATE, O.TOO_LATE, O.TOO_LATE, id="past its deadline"),
        pytest.param(Answer(TOO_LATE, error="?"), O.TOO_LATE, O.TOO_LATE, O.TOO_LATE, id="whatever its text says"),
        pytest.param(
            Answer(NOT_SENT, error=PAST_DEADLINE.error), O.NOT_SENT, O.NOT_SENT, O.NOT_SENT, id="a text alone is not"
        ),
    ],
)
def test_answers_to_writes(answer, create, delete, change):
    assert (of_create(answer), of_delete(answer), of_change(answer)) == (create, delete, change)
    apply = create if create in (O.NAMESPACE_TERMINATING, O.REFUSED) else change
    assert of_apply(answer) == apply


@pytest.mark.parametrize(
    ("reason", "details", "expected"),
    [
        pytest.param("ServerTimeout", {"name": "POST", "kind": "Pod"}, O.EXISTS, id="the name is taken"),
        pytest.param(
            "ServerTimeout", {"name": "POST", "group": "apps", "kind": "ControllerRevision"}, O.EXISTS, id="of any kind"
        ),
        pytest.param(
            "ServerTimeout", {"name": "create", "kind": "pods", "retryAfterSeconds": 2}, O.UNKNOWN, id="no storage"
        ),
        pytest.param("ServerTimeout", {"name": "CREATE", "kind": "pods"}, O.UNKNOWN, id="admission is not ready"),
        pytest.param("ServerTimeout", None, O.UNKNOWN, id="no details"),
        pytest.param("InternalError", {"name": "POST", "kind": "Pod"}, O.UNKNOWN, id="another reason"),
    ],
)
def test_a_name_beside_a_generate_name_that_exists(reason, details, expected):
    """Seen with 1.20.2, for a pod with both whose name was taken. Whatever the message says: it is for people."""
    status = {"kind": "Status", "status": "Failure", "code": 500, "reason": reason, "details": details}
    status["message"] = "The POST operation against Pod could not be completed at this time, please try again."
    answer = Answer(500, json.dumps(status).encode())
    assert (of_create(answer), of_change(answer)) == (expected, O.UNKNOWN)
    assert not taken_for_certain(answer)


DOWN = 'failed calling webhook "pods.example.com": Post "https://x/": dial tcp 127.0.0.1:1: connect: connection refused'
LATE = 'failed calling webhook "pods.example.com": Post "https://x/?timeout=10s": context deadline exceeded'


@pytest.mark.parametrize(
    ("code", "reason", "message", "create"),
    [
        pytest.param(500, "InternalError", f"Internal error occurred: {DOWN}", O.REFUSED, id="down, up to 1.20"),
        pytest.param(
            500,
            "InternalError",
            f"Internal error occurred: {DOWN.replace('Post', 'failed to call webhook: Post')}",
            O.REFUSED,
            id="down, since 1.21",
        ),
        pytest.param(500, "InternalError", f"Internal error occurred: {LATE}", O.REFUSED, id="too slow"),
        pytest.param(
            500, "InternalError", "Internal error occurred: etcdserver: request timed out", O.UNKNOWN, id="no storage"
        ),
        pytest.param(
            500,
            "InternalError",
            f"Internal error occurred: conversion webhook for x failed: {DOWN}",
            O.UNKNOWN,
            id="conversion: after storage",
        ),
        pytest.param(500, "InternalError", DOWN, O.UNKNOWN, id="not in the server's own words"),
        pytest.param(500, "Timeout", f"Internal error occurred: {DOWN}", O.UNKNOWN, id="another reason"),
        pytest.param(503, "InternalError", f"Internal error occurred: {DOWN}", O.UNKNOWN, id="another code"),
        pytest.param(504, "Timeout", f"Internal error occurred: {LATE}", O.UNKNOWN, id="a timeout"),
        pytest.param(0, "InternalError", f"Internal error occurred: {DOWN}", O.UNKNOWN, id="silence"),
    ],
)
def test_a_webhook_that_cannot_be_called(code, reason, message, create):
    """Refuses a create, which comes to it before it comes to storage. Of other writes it proves nothing."""
    answer = Answer(code, status_json(code, reason, message))
    assert (of_create(answer), of_delete(answer), of_change(answer)) == (create, O.UNKNOWN, O.UNKNOWN)


def test_a_taken_name_is_certain_by_409_alone():
    assert taken_for_certain(said(409, "AlreadyExists"))


def test_what_never_left_this_process():
    assert [outcome for outcome in Outcome if not outcome.was_sent] == [Outcome.NOT_SENT, Outcome.TOO_LATE]


@pytest.mark.parametrize(
    ("look", "expected"),
    [
        pytest.param(Answer(200, POD), O.CHANGED, id="same UID: changed since"),
        pytest.param(Answer(200, POD.replace(b"u1", b"u2")), O.GONE, id="another UID"),
        pytest.param(said(404, "NotFound"), O.GONE, id="not there"),
        pytest.param(Answer(404, b""), O.UNKNOWN, id="404 of no API"),
        pytest.param(Answer(NO_ANSWER), O.UNKNOWN, id="the look went unanswered"),
        pytest.param(said(500, "InternalError"), O.UNKNOWN, id="the look failed"),
        pytest.param(Answer(200, b"<html>"), O.UNKNOWN, id="the look is no object"),
    ],
)
def test_a_conflicting_delete_is_settled_by_a_look(look, expected):
    assert of_delete_conflict(look, "u1") is expected


@pytest.mark.parametrize(
    ("answer", "expected"),
    [
        (Answer(429), 1.0),
        (Answer(429, retry_after_s=7.0), 7.0),
        (said(429, "TooManyRequests", retryAfterSeconds=3), 3.0),
        (Answer(429, status_json(429, "TooManyRequests", retryAfterSeconds=3), 2.0), 3.0),
        (Answer(429, retry_after_s=86_400.0), 300.0),
        (Answer(429, retry_after_s=math.inf), 300.0),
        (said(429, "TooManyRequests", retryAfterSeconds=86_400), 300.0),
        (said(429, "TooManyRequests", retryAfterSeconds=-5), 1.0),
        (Answer(429, b'{"kind":"Status","details":{"retryAfterSeconds":1%s}}' % (b"0" * 400)), 300.0),
    ],
)
def test_the_wait_after_429(answer, expected):
    assert delay_s(answer) == expected


def test_looks_into_an_answer():
    answer = Answer(201, POD)
    assert (answer.ok, answer.uid, answer.resource_version) == (True, "u1", "42")
    assert answer.status is None
    assert answer.object()["status"] == {"phase": "Pending"}


def test_looks_into_a_status():
    answer = said(404, "NotFound", uid="u9", name="p", kind="pods")
    assert (answer.ok, answer.uid, answer.resource_version, answer.message) == (False, "u9", "", "said so")
    assert answer.status is not None
    assert (answer.status.reason, answer.status.code) == ("NotFound", 404)


@pytest.mark.parametrize("body", [b"", b"<html>", b"[]", b'{"metadata":7}', b'{"metadata":{"uid":7}}', b"\xff"])
def test_unreadable_bodies_have_nothing_in_them(body):
    answer = Answer(502, body)
    assert (answer.uid, answer.resource_version, answer.status) == ("", "", None)
    assert answer.message == "the server answered 502"


DEEP = 100_000


@pytest.mark.parametrize("opening", [b"[", b'{"a":'], ids=["arrays", "objects"])
def test_what_is_nested_deeply_hides_nothing_and_raises_nothing(opening):
    """managedFields and ControllerRevisions hold what anybody wrote into them; json, orjson and msgspec all give up."""
    closing = b"]" if opening == b"[" else b"1}"
    inner = (
        opening * DEEP + closing * (DEEP if opening == b"[" else 1) + (b"}" * (DEEP - 1) if opening != b"[" else b"")
    )
    pod = b'{"kind":"Pod","apiVersion":"v1","metadata":{"managedFields":%s,"uid":"u1","resourceVersion":"42"}}' % inner
    answer = Answer(201, pod)
    assert (answer.uid, answer.resource_version, answer.status) == ("u1", "42", None)
    assert answer.object()["metadata"]["uid"] == "u1"
    assert of_create(proven(answer, PODS)) is Outcome.DONE
    refused = Answer(409, b'{"extra":%s,"kind":"Status","reason":"AlreadyExists","message":"there"}' % inner)
    assert (of_create(refused), refused.message) == (Outcome.EXISTS, "there")
    for cut in (pod[:-1], inner[:-1], opening * DEEP):
        broken = Answer(200, cut)
        assert (broken.uid, broken.status, of_create(proven(broken, PODS))) == ("", None, Outcome.UNKNOWN)
        with pytest.raises(ValueError):
            broken.object()


DELETED = b'{"kind":"Status","apiVersion":"v1","status":"Success","details":{"name":"p","kind":"pods","uid":"u1"}}'


@pytest.mark.parametrize(
    ("body", "create", "delete"),
    [
        pytest.param(POD_WITH_KIND, O.DONE, O.DONE, id="the pod"),
        pytest.param(DELETED, O.UNKNOWN, O.DONE, id="a Status of success"),
        pytest.param(DELETED.replace(b"Success", b"Failure"), O.UNKNOWN, O.UNKNOWN, id="a Status of failure"),
        pytest.param(b"", O.UNKNOWN, O.UNKNOWN, id="nothing"),
        pytest.param(b"<html>welcome</html>", O.UNKNOWN, O.UNKNOWN, id="a page"),
        pytest.param(b"{}", O.UNKNOWN, O.UNKNOWN, id="an empty object"),
        pytest.param(b"null", O.UNKNOWN, O.UNKNOWN, id="null"),
        pytest.param(POD_WITH_KIND[:-1], O.UNKNOWN, O.UNKNOWN, id="half a pod"),
        pytest.param(POD_WITH_KIND.replace(b"u1", b""), O.UNKNOWN, O.UNKNOWN, id="a pod that was never stored"),
        pytest.param(POD_WITH_KIND.replace(b'"Pod"', b'"Node"'), O.UNKNOWN, O.UNKNOWN, id="another kind"),
        pytest.param(POD_WITH_KIND.replace(b'"v1"', b'"apps/v1"'), O.UNKNOWN, O.UNKNOWN, id="of another group"),
        pytest.param(
            b'{"kind":"PodList","apiVersion":"v1","metadata":{"uid":"u1"}}', O.UNKNOWN, O.UNKNOWN, id="a list"
        ),
    ],
)
def test_a_success_that_shows_no_object_of_the_kind_proves_nothing(body, create, delete):
    for code in (200, 201, 202, 204):
        answer = Answer(code, body)
        assert of_create(proven(answer, PODS)) is create
        assert of_change(proven(answer, PODS)) is create
        assert of_delete(proven(answer, PODS, deleted=True)) is delete


def test_why_a_success_proves_nothing_is_told():
    assert proven(Answer(200, b"<html>"), PODS).message == "answered 200 without a Pod: b'<html>'"


def test_an_object_that_speaks_of_status_is_not_one():
    answer = Answer(200, b'{"kind":"Pod","metadata":{"name":"Status","uid":"u","labels":{"a":"Status"}}}')
    assert (answer.status, answer.uid) == (None, "u")


def test_no_answer_says_why():
    assert Answer(NO_ANSWER, error="no answer within 4 s").message == "no answer within 4 s"


@pytest.mark.parametrize("body", [b"", b"[]", b"x"])
def test_object_insists_on_an_object(body):
    with pytest.raises(ValueError):
        Answer(200, body).object()
