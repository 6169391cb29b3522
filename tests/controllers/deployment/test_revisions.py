"""The history of templates. Numbers are those of section 23 of the upstream cases."""

import pytest

from oarlock.controllers.deployment.annotations import DESIRED_REPLICAS, REVISION, ROLLBACK_TO
from oarlock.controllers.deployment.events import NO_LAST_REVISION, REVISION_NOT_FOUND, rolled_back, template_unchanged
from oarlock.controllers.deployment.plan import Rollback, Rollout
from oarlock.controllers.deployment.revisions import (
    next_revision,
    revision_of,
    rollback,
    rollback_requested,
    surplus,
)
from oarlock.controllers.objects.model import ReplicaSetStatus
from tests.controllers.deployment.deployment_builders import owned
from tests.controllers.deployment.sizes_builders import dep


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        pytest.param("", 0, id="none"),
        pytest.param("7", 7, id="a number"),
        pytest.param("text", None, id="no number"),
        pytest.param("9223372036854775808", None, id="more than 64 bits"),
    ],
)
def test_revision(text, revision):
    """Section 7.2: one that is no number is passed over."""
    replicaset = owned("old", revision=text)
    assert (revision_of(replicaset), next_revision([replicaset])) == (revision, (revision or 0) + 1)


def test_next_revision():
    """One more than the highest."""
    assert next_revision([owned("a", revision=4), owned("b", revision=9), owned("c", revision="x"), owned("d")]) == 10
    assert next_revision([]) == 1


UNOBSERVED, WITH_PODS = {"generation": 2}, {"pods": 1}
ENDING, ENDED = ({"status": ReplicaSetStatus(terminating=count, observed_generation=1)} for count in (1, 0))


@pytest.mark.parametrize(
    ("limit", "old", "pruned"),
    [
        pytest.param(1, [(0, 1), (0, 2), (0, 3)], "ab", id="23.1.19 all but one"),
        pytest.param(0, [(0, 1), (0, 2), (0, 3)], "abc", id="23.1.19 all"),
        pytest.param(None, [(0, 1), (0, 2), (0, 3)], "", id="23.1.19 no limit"),
        pytest.param(3, [(0, 1), (0, 2), (0, 3)], "", id="no surplus"),
        pytest.param(1, [(1, 1), (0, 2), (0, 3)], "b", id="23.1.19 not one that wants pods"),
        pytest.param(1, [(0, 1, WITH_PODS), (0, 2), (0, 3)], "b", id="23.1.19 not one that has pods"),
        pytest.param(1, [(0, 1, ENDING), (0, 2, ENDED), (0, 3)], "b", id="not one with pods on their way out"),
        pytest.param(1, [(0, 1, UNOBSERVED), (0, 2), (0, 3)], "b", id="23.1.19 not one whose size is not observed"),
        pytest.param(1, [(0, 1, {"deleting_ms": 1}), (0, 2), (0, 3)], "b", id="23.1.19 one that goes counts as gone"),
        pytest.param(2, [(1, 1), (0, 2), (0, 3)], "", id="23.1.20 no other goes in its place"),
        pytest.param(1, [(0, 9), (0, 2), (0, 11)], "ab", id="23.1.20 by number, not by age or text"),
        pytest.param(2, [(0, 3), (0, 2), (0, "")], "c", id="23.1.20 the one without a revision first"),
        pytest.param(2, [(0, 3), (0, "x"), (0, 2)], "b", id="23.1.20 as with one that is no number"),
        pytest.param(2, [(0, 2, {"age_s": 1}), (0, 2, {"age_s": 9}), (0, 2, {"age_s": 5})], "b", id="23.1.20 by age"),
        pytest.param(2, [(0, 2), (0, 2), (0, 2)], "a", id="and by name"),
    ],
)
def test_surplus(limit, old, pruned):
    """23.1.19, 23.1.20: size, revision, and what else there is to say of a, b, c ..."""
    replicasets = [
        owned(name, size, revision, **dict(*rest)) for name, (size, revision, *rest) in zip("abcdef", old, strict=False)
    ]
    for given in (replicasets, replicasets[::-1]):
        found = surplus(dep(revision_history_limit=limit), given)
        assert "".join(sorted(each.name for each in found)) == pruned


@pytest.mark.parametrize(
    ("text", "revision"),
    [
        pytest.param(None, None, id="none"),
        pytest.param("", None, id="empty"),
        pytest.param("text", None, id="no number"),
        pytest.param("0", 0, id="the last one"),
        pytest.param("3", 3, id="a certain one"),
    ],
)
def test_request(text, revision):
    """Section 18.1: what is no number is no request."""
    assert rollback_requested(dep(annotations={} if text is None else {ROLLBACK_TO: text})) == revision


OWN = {ROLLBACK_TO: "1", REVISION: "3", "only": "ours", "cause": "third"}
NEW, FIRST = owned("new", 3, 3), owned("first", 0, 1, notes={"cause": "first", DESIRED_REPLICAS: "9"}, age_s=90)
SECOND, LETTERS = owned("second", 0, 2, age_s=80), owned("letters", 0, "x", age_s=70)
BACK = {REVISION: "3", "cause": "first"}


@pytest.mark.parametrize(
    ("new", "old", "revision", "expected"),
    [
        pytest.param(NEW, (FIRST, SECOND), 1, Rollback(FIRST, rolled_back("web", 1), BACK), id="23.6.4 to one"),
        pytest.param(NEW, (FIRST, LETTERS), 0, Rollback(FIRST, rolled_back("web", 1), BACK), id="to the last one"),
        pytest.param(NEW, (), 0, Rollback(None, NO_LAST_REVISION), id="there is only one"),
        pytest.param(NEW, (LETTERS,), 0, Rollback(None, NO_LAST_REVISION), id="the other has no number"),
        pytest.param(NEW, (FIRST,), 7, Rollback(None, REVISION_NOT_FOUND), id="no such one"),
        pytest.param(NEW, (FIRST,), -1, Rollback(None, REVISION_NOT_FOUND), id="below all"),
        pytest.param(NEW, (FIRST,), 3, Rollback(None, template_unchanged("web")), id="it is the present one"),
        pytest.param(None, (owned("new-b", 0, 1),), 1, Rollback(None, template_unchanged("web")), id="its template"),
    ],
)
def test_rollback(new, old, revision, expected):
    """Section 18.1. The annotations of the target come back, but for those that each object has for itself."""
    assert rollback(dep(annotations=OWN), Rollout(new, old), revision) == expected


def test_texts_of_events():
    """As upstream words them."""
    assert rolled_back("web", 2).message == 'Rolled back deployment "web" to revision 2'
    unchanged = 'The rollback revision contains the same template as current deployment "web"'
    assert template_unchanged("web").message == unchanged
    assert (NO_LAST_REVISION.type, rolled_back("web", 2).type) == ("Warning", "Normal")
