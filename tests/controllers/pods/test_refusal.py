"""Refusals that mean more than their HTTP status."""

import json

import pytest

from oarlock.controllers.pods.refusal import namespace_is_terminating


def status(*reasons):
    causes = [{"reason": reason, "field": "metadata.namespace"} for reason in reasons]
    return json.dumps({"kind": "Status", "reason": "Forbidden", "details": {"causes": causes}}).encode()


@pytest.mark.parametrize(
    ("code", "body", "expected"),
    [
        pytest.param(403, status("NamespaceTerminating"), True, id="the cause tells"),
        pytest.param(403, status("Other", "NamespaceTerminating"), True, id="one of several causes"),
        pytest.param(403, status("Other"), False, id="another cause"),
        pytest.param(403, b'{"message":"namespace is being terminated"}', False, id="the text does not tell"),
        pytest.param(403, b'{"details":{"causes":null}}', False, id="null causes"),
        pytest.param(409, status("NamespaceTerminating"), False, id="another code"),
        pytest.param(403, b"<html>forbidden</html>", False, id="not an answer of the API"),
        pytest.param(403, b"", False, id="no body"),
    ],
)
def test_namespace_is_terminating(code, body, expected):
    """Recognised by the cause's type in a 403."""
    assert namespace_is_terminating(code, body) is expected
