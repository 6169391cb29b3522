"""What an answer shows of the count of terminating pods."""

import pytest

from oarlock.controllers.objects.model import ReplicaSetStatus
from oarlock.controllers.replicaset.status import is_kept, says_nothing_else
from tests.controllers.builders import with_fields

OLD = ReplicaSetStatus(2, 2, 2, 2, None, 1)
ZERO, TWO = with_fields(OLD, terminating=0), with_fields(OLD, terminating=2)


@pytest.mark.parametrize(
    ("old", "new", "body", "kept"),
    [
        pytest.param(OLD, ZERO, b'{"status":{"replicas":2,"terminatingReplicas":0}}', True, id="appears"),
        pytest.param(OLD, ZERO, b'{"status":{"replicas":2}}', False, id="was dropped"),
        pytest.param(ZERO, TWO, b'{"status":{"terminatingReplicas":2}}', True, id="changes"),
        pytest.param(ZERO, TWO, b'{"status":{}}', False, id="dropped by an older server of the same cluster"),
        pytest.param(ZERO, TWO, b'{"status":{"terminatingReplicas":0}}', False, id="stays as it was"),
        pytest.param(ZERO, ZERO, b'{"status":{"terminatingReplicas":0}}', None, id="was there already: says nothing"),
        pytest.param(OLD, OLD, b'{"status":{}}', None, id="was not asked for"),
        pytest.param(TWO, OLD, b'{"status":{}}', None, id="was to go"),
        pytest.param(OLD, ZERO, b'{"metadata":{}}', None, id="no status in the answer"),
        pytest.param(OLD, ZERO, b"<html>", None, id="no object"),
        pytest.param(OLD, ZERO, b"", None, id="nothing"),
        pytest.param(OLD, ZERO, b"\xff", None, id="no text"),
        pytest.param(OLD, ZERO, b'{"a":' * 100_000, None, id="deeper than can be read"),
    ],
)
def test_kept(old, new, body, kept):
    """Only an answer to a count that is new tells."""
    assert is_kept(old, new, body) is kept


@pytest.mark.parametrize(
    ("old", "new", "nothing_else"),
    [
        pytest.param(OLD, ZERO, True, id="the count alone"),
        pytest.param(OLD, with_fields(ZERO, ready=1), False, id="and another"),
        pytest.param(ZERO, TWO, False, id="the object has the count: it is kept"),
        pytest.param(OLD, OLD, True, id="nothing at all"),
    ],
)
def test_says_nothing_else(old, new, nothing_else):
    """Only where the object has no count."""
    assert says_nothing_else(old, new) is nothing_else
