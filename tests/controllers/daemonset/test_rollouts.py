"""Whole rollouts, turn by turn, with the decision as it is: upstream's sequences, and what holds for any."""

from collections import Counter

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.controllers.daemonset.limits import max_surge, max_unavailable, surges
from oarlock.controllers.daemonset.model import ON_DELETE
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.daemonset.rolling import rolling
from oarlock.controllers.history.model import HASH_LABEL
from tests.controllers.builders import NOW_MS, S
from tests.controllers.daemonset.daemon_builders import NEW, OLD, ds
from tests.controllers.daemonset.rollout import Rollout, lettered, node_name, parsed


@pytest.mark.parametrize(
    ("node_count", "fields", "script"),
    [
        pytest.param(5, {"max_unavailable": 2}, "+5 R r -2 +2 R -2 +2 R -1 +1 R 0", id="26.2.1 limit 2"),
        pytest.param(
            5, {"max_surge": 2}, "+5 R r +2 0 R -2 +2 0 R -2 +1 0 R -1 0", id="26.2.2 surge 2, a turn for each phase"
        ),
        pytest.param(
            5,
            {"max_surge": 1},
            "+5 R r t0 +1-1 0 R -1 +1 0 R -1 +1 0 R -1 +1 0 R -1 0",
            id="26.2.3 surge 1, a node is lost",
        ),
        pytest.param(5, {"max_unavailable": 3}, "+5 R r -3 +3 0 0", id="26.2.4 new pods are never ready"),
        pytest.param(5, {"max_unavailable": 3}, "+5 r -5 +5 0", id="26.2.5 old pods are never ready"),
        pytest.param(5, {"max_surge": 3}, "+5 r +5 -5 0", id="26.2.6 old pods are never ready, surge"),
        pytest.param(
            5,
            {"max_surge": 3},
            "+5 R @100 m15 r +3 R2 x1 @110 +1 @120 -3 +1 R @140 -2 @150 0",
            id="26.2.6 second round",
        ),
        pytest.param(5, {"max_unavailable": 3}, "+5 R 0 0", id="26.2.7 the template does not change"),
        pytest.param(
            5, {"strategy": ON_DELETE, "max_unavailable": 3}, "+5 R RollingUpdate 0", id="26.2.7 the strategy does"
        ),
        pytest.param(
            5, {"max_unavailable": 2}, "+5 R r -2 +2 0 r -2 +2 0", id="a second template replaces what the first made"
        ),
        pytest.param(
            20,
            {"max_unavailable": 10},
            "+20 R r -10 +10 0 u7 r -10 +10 0 u0 r -10 +10 0 u3 r -10 +10 0 u11 r -11 +11 0",
            id="available old pods are spared however often the template changes",
        ),
        pytest.param(100, {"max_unavailable": "10%"}, "+100 R r -10 +10 R -10 +10 R -10 +10", id="10 % of 100"),
        pytest.param(5, {"max_surge": 1}, "+5 R r +1 0 e4 +1 0", id="26.1.45 at the limit, an old one is deleted"),
        pytest.param(
            2,
            {"max_surge": 1, "min_ready_seconds": 15},
            "+2 R @60 r +1 R @70 0 @75 -1 +1 R @89 0 @90 -1 0",
            id="26.1.47 old pods wait for minReadySeconds of the new",
        ),
        pytest.param(
            2,
            {"min_ready_seconds": 15},
            "+2 R @60 r -1 +1 R @70 0 @75 -1 +1 R @89 0 @90 0",
            id="so does the next delete without surge",
        ),
        pytest.param(
            3, {"strategy": ON_DELETE}, "+3 R r 0 d1 +1 0 R 0", id="26.4.13 OnDelete: only what somebody removed"
        ),
        pytest.param(
            3, {"strategy": ON_DELETE}, "+3 R r 0 d1 +1 R RollingUpdate -1 +1 R -1 +1 R 0", id="switched on later"
        ),
        pytest.param(5, {"max_unavailable": 2}, "+5 R r e0 -1 +1 0", id="what somebody else deletes counts"),
        pytest.param(3, {"max_unavailable": 1}, "+3 R r t0 -1 -1 +1 R -1 +1 R 0", id="a tainted node stays empty"),
        pytest.param(3, {"max_unavailable": 0, "max_surge": 0}, "+3 R r -1 +1 R -1 +1 R -1 +1 R 0", id="both 0"),
    ],
)
def test_turns(node_count, fields, script):
    """Creates and deletes of each turn."""
    limits = {"max_unavailable": 0} if "max_surge" in fields else {}
    assert Rollout(node_count, **{**limits, **fields}).play(script) == script


@pytest.mark.parametrize(
    ("later_ms", "deleted"), [pytest.param(0, 1, id="26.1.47 at 10 s"), pytest.param(10 * S, 2, id="26.1.47 at 20 s")]
)
def test_a_ready_old_pod_stays_until_the_new_one_is_available(later_ms, deleted):
    """Beside a further old one, which goes at once, and three nodes without a pod."""
    rollout = Rollout(5, max_unavailable=0, max_surge=1, min_ready_seconds=15)
    rollout.revision = 2
    rollout.put(lettered("OOs", node_name(1)) + lettered("N", node_name(3)))
    rollout.now_ms += later_ms
    plan = rollout.turn()
    assert (len(plan.create), len(plan.delete)) == (3, deleted)


def test_rolled_back_midway():
    """26.5.7: pods that were never updated are not touched by the way back."""
    rollout = Rollout(4, max_unavailable=1)
    rollout.play("+4 R r -1 +1")
    kept = {pod.uid for pod in rollout.staying() if not rollout.is_new(pod)}
    rollout.revision = 1
    assert rollout.play("-1 +1 R 0") == "-1 +1 R 0"
    assert kept <= {pod.uid for pod in rollout.staying()}


letters = st.sampled_from(["", "N", "n", "s", "O", "o", "S", "f", "p", "t", "T", "NO", "nO", "no", "tN", "tO", "OO"])
words = st.builds(lambda mark, pods: mark + (pods or "-"), st.sampled_from(["", "", "", "!", "?"]), letters)
limits = st.integers(0, 6) | st.sampled_from(["0%", "10%", "34%", "50%", "100%"])
minutes = st.sampled_from([0, 15])


def unavailable(podmap, eligible, min_ready_seconds):
    """Nodes that are or should be in the map and have not exactly one pod that stays and is available, by the letters:
    what stays is no `t`, what is available is capital, small `s` and `S` within minReadySeconds not.
    """
    available = set("NO") if min_ready_seconds else set("NOsS")
    wanting = {node for node, (should_run, _) in eligible.items() if should_run}
    staying = {
        node: [pod.name[-1] for pod in podmap.get(node, ()) if not pod.deleting_ms] for node in wanting | set(podmap)
    }
    return {node for node, found in staying.items() if len(found) != 1 or found[0] not in available}


@settings(max_examples=400)
@given(st.lists(words, max_size=8), limits, minutes)
def test_any_step_without_surge(words, limit, min_ready_seconds):
    """What it takes down beyond what is down already stays within the limit; what is down and old goes; new pods, and
    pods on their way out, are left alone.
    """
    known, podmap, eligible = parsed(" ".join(words))
    owner = ds(max_unavailable=limit, min_ready_seconds=min_ready_seconds)
    result = rolling(DaemonSnapshot(owner, (), known, NEW), podmap, eligible, NOW_MS)
    before = unavailable(podmap, eligible, min_ready_seconds)
    deleted = {pod.target_node for pod in result.delete}
    allowed = max_unavailable(owner, sum(should_run for should_run, _ in eligible.values()))
    assert not result.error
    assert not result.create_on
    assert len(deleted) == len(result.delete)
    assert all(pod.labels[HASH_LABEL] != NEW and not pod.deleting_ms for pod in result.delete)
    assert len(before | deleted) <= max(allowed, len(before))
    old_only = {n for n, pods in podmap.items() if [p.labels[HASH_LABEL] for p in pods if not p.deleting_ms] == [OLD]}
    assert before & old_only <= deleted
    room = max(0, allowed - len(before))
    assert len(deleted - before) == min(room, len(old_only - before)), "nor does it hesitate"


@settings(max_examples=400)
@given(st.lists(words, max_size=8), st.integers(1, 4) | st.just("34%"), minutes)
def test_any_step_with_surge(words, limit, min_ready_seconds):
    """No second pod of a revision on any node, none where none should run; no node with an available pod loses its
    last, unless it is one too many where none should run.
    """
    known, podmap, eligible = parsed(" ".join(words))
    owner = ds(max_unavailable=0, max_surge=limit, min_ready_seconds=min_ready_seconds)
    desired = sum(should_run for should_run, _ in eligible.values())
    if max_surge(owner, desired) == 0:
        return
    result = rolling(DaemonSnapshot(owner, (), known, NEW), podmap, eligible, NOW_MS)
    if result.error:
        assert any(word in ("?O", "?o", "?S", "?f", "?p", "?tO") for word in words)
        assert not result.delete
        assert not result.create_on
        return
    assert len(set(result.create_on)) == len(result.create_on)
    for node in result.create_on:
        staying = [pod.labels[HASH_LABEL] for pod in podmap[node] if not pod.deleting_ms]
        assert staying == [OLD]
        assert eligible[node][0]
    deleted = {pod.uid for pod in result.delete}
    assert len(deleted) == len(result.delete)
    assert all(pod.labels[HASH_LABEL] != NEW and not pod.deleting_ms for pod in result.delete)
    after = {node: [pod for pod in pods if pod.uid not in deleted] for node, pods in podmap.items()}
    nowhere = dict.fromkeys(known, (False, True))
    lost = unavailable(after, nowhere, min_ready_seconds) - unavailable(podmap, nowhere, min_ready_seconds)
    assert all(not eligible[node][0] for node in lost)
    up = podmap.keys() - unavailable(podmap, nowhere, min_ready_seconds)
    assert not lost or len(up - lost) + sum(len(pods) > 1 for pods in podmap.values()) >= desired


@st.composite
def rollouts(draw, surge):
    """A rollout under way: at most one pod a node that stays, of any revision and in any state."""
    size = draw(st.integers(1, 6))
    limit = draw(st.integers(1, 4) | st.sampled_from(["1%", "34%", "100%"]))
    limits = {"max_unavailable": 0, "max_surge": limit} if surge else {"max_unavailable": limit}
    rollout = Rollout(size, lingers=draw(st.booleans()), min_ready_seconds=draw(minutes), **limits)
    rollout.revision = 2
    for number in range(size):
        rollout.put(lettered(draw(st.sampled_from(["", "N", "n", "O", "o", "f", "t"])), node_name(number)))
    return rollout


def weather(rollout, random):
    """Between two turns: some of what is ending ends, some of what is not ready turns ready, time passes, and now and
    then the template changes.
    """
    rollout.now_ms += random.choice([1, 1, 8]) * S
    rollout.bury(lambda pod: random.random() < 0.5)
    rollout.ready(None, lambda pod: pod.phase != "Failed" and random.random() < 0.4)
    if random.random() < 0.1:
        rollout.play("r")


def most_on_a_node(rollout):
    """Pods on the fullest node. One that has failed and is being deleted may hang on for ever, and is replaced."""
    counted = [pod for pod in rollout.pods.values() if not (pod.phase == "Failed" and pod.deleting_ms)]
    return max(Counter(pod.node_name for pod in counted).values(), default=0)


def finish(rollout):
    """Everything that can go well does, until nothing is to be done any more."""
    for _ in range(12 * len(rollout.nodes) + 12):
        rollout.bury()
        rollout.ready(None, lambda pod: pod.phase != "Failed")
        rollout.now_ms += 2000 * S  # longer than any back-off of a failed pod
        if not rollout.turn().writes:
            break
    else:
        raise AssertionError("it never comes to rest")
    assert [(pod.node_name, rollout.is_new(pod)) for pod in rollout.staying()] == [(n, True) for n in rollout.nodes]
    status = rollout.decide().counts
    size = len(rollout.nodes)
    assert (status.desired, status.current, status.updated, status.ready, status.available) == (size,) * 5
    assert (status.misscheduled, status.unavailable) == (0, 0)


@settings(max_examples=120)
@given(rollouts(surge=False), st.randoms(use_true_random=False), st.integers(0, 15))
def test_any_rollout_without_surge(rollout, random, rounds):
    """Our own writes never leave more nodes without an available pod than the limit, or than there were; there is one
    pod on a node at most, dying ones included; it ends with all updated.
    """
    allowed = max_unavailable(rollout.owner, len(rollout.nodes))
    for _ in range(rounds):
        down = rollout.down()
        rollout.turn()
        assert len(rollout.down()) <= max(allowed, len(down))
        assert most_on_a_node(rollout) <= 1
        weather(rollout, random)
    finish(rollout)


@settings(max_examples=120)
@given(rollouts(surge=True), st.randoms(use_true_random=False), st.integers(0, 15))
def test_any_rollout_with_surge(rollout, random, rounds):
    """Our own writes never take the last available pod from a node. There are two pods on a node at most, dying ones
    included, and one of a revision that stays; it ends with all updated.
    """
    assert surges(rollout.owner)
    for _ in range(rounds):
        down = rollout.down()
        rollout.turn()
        assert rollout.down() <= down
        assert most_on_a_node(rollout) <= 2
        running = Counter((p.node_name, p.labels[HASH_LABEL]) for p in rollout.staying() if p.phase != "Failed")
        assert max(running.values(), default=0) <= 1
        weather(rollout, random)
    finish(rollout)
