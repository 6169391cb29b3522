"""Pods of DaemonSets that have ended, which daemons do not do: they go, failed ones not at any speed."""

import pytest

from oarlock.controllers.daemonset.backoff import BackOff
from oarlock.controllers.daemonset.decide import decide
from oarlock.controllers.pods.events import NORMAL, WARNING
from tests.controllers.builders import NOW_MS, S
from tests.controllers.daemonset.daemon_builders import (
    created,
    deleted,
    dpods,
    ds,
    laid,
    names_of,
    numbered,
    slot,
    snap,
    surging,
)


@pytest.mark.parametrize(
    ("letters", "owner", "create", "delete", "reasons"),
    [
        pytest.param("R", ds(), 0, "", [], id="26.1.32 0 failed, 1 normal"),
        pytest.param("", ds(), 1, "", [], id="26.1.32 0 failed, 0 normal"),
        pytest.param("F", ds(), 0, "n1/0", ["FailedDaemonPod"], id="26.1.32 1 failed, 0 normal"),
        pytest.param("FRRR", ds(), 0, "n1/0 n1/2 n1/3", ["FailedDaemonPod"], id="26.1.32 1 failed, 3 normal"),
        pytest.param("FF", ds(), 0, "n1/0", ["FailedDaemonPod"], id="of two failed ones the older"),
        pytest.param("S", ds(), 0, "n1/0", ["SucceededDaemonPod"], id="succeeded: at once"),
        pytest.param("SSR", ds(), 0, "n1/0 n1/1", ["SucceededDaemonPod"] * 2, id="two succeeded"),
        pytest.param("FSR", ds(), 0, "n1/0 n1/1", ["FailedDaemonPod", "SucceededDaemonPod"], id="one of each"),
        pytest.param("f", ds(), 1, "", [], id="going already"),
        pytest.param("F", surging(), 1, "n1/0", ["FailedDaemonPod"], id="surge: replaced in the same turn"),
        pytest.param("S", surging(), 1, "n1/0", ["SucceededDaemonPod"], id="surge: succeeded, the same"),
        pytest.param("FF", surging(), 0, "n1/0", ["FailedDaemonPod"], id="surge: no third while two are there"),
    ],
)
def test_pods_that_have_ended(letters, owner, create, delete, reasons):
    """They go, with a word about each; without surge the node is filled once they have left."""
    plan = decide(snap(numbered(1), dpods("n1", letters), owner), NOW_MS)
    assert len(plan.create) == create
    assert deleted(plan) == names_of(delete)
    assert [event.reason for event in plan.events] == reasons
    failed = reasons.count("FailedDaemonPod")
    assert plan.back_offs == (("n1", "generation=1 delay_ms=1000 at_ms=1750000000000"),) * failed


def test_what_is_said_of_pods_that_have_ended():
    """Pod and node are named."""
    failed, succeeded = decide(snap(numbered(2), laid({"n1": "F", "n2": "S"})), NOW_MS).events
    assert (failed.type, succeeded.type) == (WARNING, NORMAL)
    for event, node in ((failed, "n1"), (succeeded, "n2")):
        assert f"default/{slot(node)} on node {node}," in event.message


def waiting(delay_ms, ago_ms, letters="F", owner=None, generation=1):
    back_offs = {"n1": BackOff(generation, delay_ms, NOW_MS - ago_ms), "n2": BackOff(1, 60 * S, NOW_MS)}
    return decide(snap(numbered(1), dpods("n1", letters), owner, back_offs=back_offs), NOW_MS)


@pytest.mark.parametrize(
    ("delay_s", "ago_ms", "fields", "again_ms", "next_s"),
    [
        pytest.param(1, 400, {}, 600, None, id="26.1.33 a second failure inside the delay: what is left of it"),
        pytest.param(8, 7999, {}, 1, None, id="26.1.33 all but over"),
        pytest.param(8, 8000, {}, None, 16, id="26.1.33 exactly at the boundary it goes"),
        pytest.param(900, 900 * S, {}, None, 900, id="no more than a quarter of an hour"),
        pytest.param(900, 1801 * S, {}, None, 1, id="forgotten after half an hour"),
        pytest.param(900, 0, {"generation": 2}, None, 1, id="of another generation: afresh"),
        pytest.param(4, 0, {"letters": "FR"}, 4000, None, id="beside a running one it waits as well"),
        pytest.param(4, 4 * S, {"letters": "FF"}, 8000, 8, id="the next one waits for the new delay"),
        pytest.param(4, 0, {"letters": "fR"}, None, None, id="one that goes already does not wait"),
    ],
)
def test_back_off(delay_s, ago_ms, fields, again_ms, next_s):
    """Either the pod waits, and the key comes again when it may go, or it goes, and the new delay is recorded."""
    plan = waiting(delay_s * S, ago_ms, **fields)
    assert plan.again_ms == again_ms
    assert bool(plan.delete) == bool(next_s)
    if next_s:
        [(node, text)] = plan.back_offs
        assert (node, BackOff.parse(text)) == ("n1", BackOff(1, next_s * S, NOW_MS))
    else:
        assert (plan.back_offs, plan.events) == ((), ())


def test_back_off_and_surge():
    """The failed pod does not count as running: its replacement comes at once, a second one does not."""
    alone, beside = waiting(60 * S, 0, "F", surging()), waiting(60 * S, 0, "FF", surging())
    assert (created(alone), deleted(alone), alone.again_ms) == (["n1"], [], 60 * S)
    assert (created(beside), deleted(beside), beside.again_ms) == ([], [], 60 * S)
