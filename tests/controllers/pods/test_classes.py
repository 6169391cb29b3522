"""The class of a pod, and whose pods may come as counts."""

import pytest

from oarlock.controllers.objects.codec import encode
from oarlock.controllers.objects.model import Requirement, label_selector
from oarlock.controllers.pods.classes import PodClass, asked_word, class_of, read_class
from tests.controllers.builders import NOW_MS, pod, pods, rs


@pytest.mark.parametrize(
    ("letter", "kind"),
    [("R", "+r"), ("n", "+u"), ("p", "+u"), ("t", "-t"), ("F", "-f"), ("S", "-f")],
)
def test_the_class_of_a_pod(letter, kind):
    (one,) = pods(letter)
    assert class_of(one).startswith(f"{kind}/default\n".encode())
    assert read_class(class_of(one)) == PodClass(kind, "default", {"app": "web"})


def test_a_finished_pod_that_is_being_deleted_has_finished():
    assert class_of(pod("a", phase="Failed", deleting_ms=NOW_MS)).startswith(b"-f/")


def test_what_no_two_pods_share_is_in_no_class():
    one = pod("a", uid="uid-x", node_name="n", restarts=3, created_ms=5, ready_since_ms=6, deletion_cost=7)
    assert class_of(one) == class_of(pod("b"))


@pytest.mark.parametrize("uid", ["u", "é", "u" * 31, "u" * 32, "00000000-0000-0000-0000-000000000000"])
def test_a_class_ends_the_blobs_of_its_pods_but_for_their_uids(uid):
    one = pod("a", uid=uid)
    _, _, ending = class_of(one).partition(b"\n")
    assert encode(one).endswith(ending + uid.encode())
    assert read_class(class_of(one)) == PodClass("+r", "default", {"app": "web"})


@pytest.mark.parametrize("labels", [{}, {"a": ""}, {'"': "#/ ="}, {"x/y": "é", "b": "\t"}])
def test_any_labels(labels):
    assert read_class(class_of(pod("a", labels=labels))) == PodClass("+r", "default", labels)


@pytest.mark.parametrize(
    "text",
    [
        b"",
        b"+r",
        b"+r/default",
        b"+r/default\n",
        b"+x/default\n\xa0\xc3\xc2\x80\x90\xa0",
        b"+r/default\n\xa0\xc3\xc2\x90\x90\xa0",
        b"+r/default\n\xa0\xc3\xc2\x81\xa1a\x01\x90\xa0",
        b"+r/d\n\xa0\xc3\xc2\x80\x90xx\xa0",
        b"+r/d\n\x80\x90\xa0",
        b"\xff/d\n\xa0\xc3\xc2\x80\x90\xa0",
    ],
)
def test_what_is_no_class(text):
    assert read_class(text) is None


INVALID = label_selector(None, (Requirement("app", "In"),))


@pytest.mark.parametrize(
    ("fields", "word"),
    [
        pytest.param({}, ("=2",), id="as many as it asks for"),
        pytest.param({"strict": True}, ("=2",), id="strict"),
        pytest.param({"replicas": 0}, ("=0",), id="none"),
        pytest.param({"min_ready_seconds": 1}, (), id="time changes what is available"),
        pytest.param({"deleting_ms": NOW_MS}, (), id="going"),
        pytest.param({"selector": None}, (), id="no selector"),
        pytest.param({"selector": INVALID}, (), id="a selector that says nothing"),
    ],
)
def test_the_word_of_an_owner(fields, word):
    assert asked_word(rs(**fields)) == word
