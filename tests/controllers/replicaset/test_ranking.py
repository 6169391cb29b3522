"""Who goes first. Orders are stated as lists: each pod goes before all that follow it."""

import random

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.controllers.replicaset.ranking import age_bucket, age_comparison, age_ratios, node_ranks, rank_key, victims
from tests.controllers.builders import NOW_MS, H, S, pod

MONTH_AGO = NOW_MS - 30 * 24 * H
UNREADY = {"ready": False, "ready_since_ms": 0}
PENDING = {"phase": "Pending", **UNREADY}

UNASSIGNED = pod("unassigned", node_name="", **PENDING)
ASSIGNED_PENDING = pod("assigned-pending", **PENDING)
UNKNOWN = pod("unknown", phase="Unknown", **UNREADY)
NOT_READY = pod("not-ready", **UNREADY)
NO_READY_TIME = pod("no-ready-time", ready_since_ms=0, created_ms=0)
READY_NOW = pod("ready-now", ready_since_ms=NOW_MS - S, created_ms=0)
RESTARTED_3 = pod("restarted-3", ready_since_ms=MONTH_AGO, created_ms=0, restarts=3)
RESTARTED_2 = pod("restarted-2", ready_since_ms=MONTH_AGO, created_ms=NOW_MS - S, restarts=2)
CREATED_LONG_AGO = pod("created-long-ago", ready_since_ms=MONTH_AGO, created_ms=MONTH_AGO, restarts=2)
NINE = [
    UNASSIGNED,
    ASSIGNED_PENDING,
    UNKNOWN,
    NOT_READY,
    NO_READY_TIME,
    READY_NOW,
    RESTARTED_3,
    RESTARTED_2,
    CREATED_LONG_AGO,
]


def compare(a, b, ranks, now_ms):
    """Negative when a goes first, positive when b does, 0 when nothing tells them apart."""
    key_a, key_b = rank_key(a, ranks), rank_key(b, ranks)
    if key_a != key_b:
        return -1 if key_a < key_b else 1
    return age_comparison(now_ms)(a, b)


@pytest.mark.parametrize("now_ms", [NOW_MS, 0], ids=["by order of magnitude", "by time alone"])
@pytest.mark.parametrize("seed", range(20))
def test_nine_pods_in_any_order(seed, now_ms):
    """11.4.9: twenty permutations of nine pods all come out in the one order of the rules."""
    shuffled = random.Random(seed).sample(NINE, len(NINE))
    extra = pod("kept", ready_since_ms=MONTH_AGO, created_ms=MONTH_AGO, deletion_cost=1)
    assert list(victims([*shuffled, extra], len(NINE), (), now_ms)) == NINE


@pytest.mark.parametrize(
    ("count", "given_pods", "expected"),
    [
        pytest.param(0, [], [], id="11.2.26 none of none"),
        pytest.param(2, [READY_NOW, UNASSIGNED], [READY_NOW, UNASSIGNED], id="11.2.26 all: the order given"),
        pytest.param(6, NINE[5::-1], NINE[5::-1], id="11.2.26 all of six mixed ones: the order given"),
        pytest.param(1, [ASSIGNED_PENDING, UNASSIGNED], [UNASSIGNED], id="11.2.26 unassigned first"),
        pytest.param(1, [NOT_READY, ASSIGNED_PENDING], [ASSIGNED_PENDING], id="11.2.26 pending first"),
        pytest.param(1, [READY_NOW, NOT_READY], [NOT_READY], id="11.2.26 not ready first"),
        pytest.param(
            3,
            [READY_NOW, NOT_READY, ASSIGNED_PENDING, RESTARTED_2, UNASSIGNED],
            [UNASSIGNED, ASSIGNED_PENDING, NOT_READY],
            id="11.2.26 three of five mixed ones",
        ),
    ],
)
def test_victims(count, given_pods, expected):
    """The chosen come out first to go first; when all go nothing is sorted."""
    assert list(victims(given_pods, count, (), NOW_MS)) == expected


@pytest.mark.parametrize(
    ("min_ready_seconds", "first"),
    [pytest.param(0, "crowded", id="11.2.26 crowded first"), pytest.param(10, "fresh", id="not available first")],
)
def test_victims_among_pods_that_are_not_available_yet(min_ready_seconds, first):
    """Ready for 3 s on a node of its own, against ready for long on a crowded one."""
    fresh = pod("fresh", node_name="n2", ready_since_ms=NOW_MS - 3 * S, deletion_cost=7)
    crowded = pod("crowded", node_name="n1", ready_since_ms=MONTH_AGO, deletion_cost=7)
    related = [fresh, crowded, pod("neighbour", node_name="n1")]
    (chosen,) = victims([crowded, fresh], 1, related, NOW_MS, min_ready_seconds)
    assert chosen.name == first


def test_what_is_not_ready_goes_before_what_is_ready_for_too_short():
    """However crowded the node of the latter is."""
    waiting = pod("waiting", node_name="n2", ready=False, ready_since_ms=0)
    fresh = pod("fresh", node_name="n1", ready_since_ms=NOW_MS - 3 * S)
    related = [waiting, fresh, pod("neighbour", node_name="n1")]
    assert victims([fresh, waiting], 1, related, NOW_MS, 10) == (waiting,)


@pytest.mark.parametrize("count", [1, 2], ids=["one of two", "all of two"])
def test_victims_on_the_crowded_node(count):
    """11.2.26: related pods on the node decide between two ready ones, but do not reorder all of them."""
    lonely, crowded = pod("lonely", node_name="n2"), pod("crowded", node_name="n1")
    related = [lonely, crowded, pod("neighbour", node_name="n1")]
    expected = [crowded] if count == 1 else [lonely, crowded]
    assert list(victims([lonely, crowded], count, related, NOW_MS)) == expected


def aged(name, ready_hours=None, created_hours=None, **fields):
    return pod(
        name,
        ready_since_ms=MONTH_AGO if ready_hours is None else NOW_MS - int(ready_hours * H),
        created_ms=MONTH_AGO if created_hours is None else NOW_MS - int(created_hours * H),
        **fields,
    )


@pytest.mark.parametrize(
    ("first", "second"),
    [
        pytest.param(UNASSIGNED, ASSIGNED_PENDING, id="11.4.10 rule 1: unassigned"),
        pytest.param(pod("a", node_name=""), ASSIGNED_PENDING, id="rule 1 beats phase and readiness"),
        pytest.param(ASSIGNED_PENDING, UNKNOWN, id="11.4.10 rule 2: pending before unknown"),
        pytest.param(UNKNOWN, NOT_READY, id="11.4.10 rule 2: unknown before running"),
        pytest.param(pod("a", phase="", **UNREADY), UNKNOWN, id="rule 2: a phase not in the list counts as pending"),
        pytest.param(NOT_READY, READY_NOW, id="11.4.10 rule 3: not ready"),
        pytest.param(pod("a", deletion_cost=9, **UNREADY), pod("b", deletion_cost=-9), id="rule 3 beats cost"),
        pytest.param(pod("a", deletion_cost=-1), pod("b"), id="11.4.10 rule 4: below the default cost"),
        pytest.param(
            aged("a", deletion_cost=100), aged("b", ready_hours=1, deletion_cost=1000), id="11.5.5 rule 4 beats age"
        ),
        pytest.param(pod("a", node_name="crowded"), aged("b", ready_hours=0.001), id="11.4.10 rule 5 beats age"),
        pytest.param(NO_READY_TIME, READY_NOW, id="11.4.10 rule 6: an unknown ready time is the newest"),
        pytest.param(aged("z", ready_hours=2), aged("a", ready_hours=5), id="11.4.10 rule 6: 2 h before 5 h"),
        pytest.param(aged("a", ready_hours=8), aged("b", ready_hours=5), id="rule 6: 5 h and 8 h alike, then UID"),
        pytest.param(aged("b", ready_hours=5), aged("c", ready_hours=8), id="rule 6: the same the other way round"),
        pytest.param(aged("z", ready_hours=5), aged("a", ready_hours=10), id="11.4.10 rule 6: 5 h before 10 h"),
        pytest.param(
            aged("a", ready_hours=8), aged("b", ready_hours=5, restarts=9), id="rule 6 by UID still beats restarts"
        ),
        pytest.param(aged("z", restarts=5), aged("a"), id="11.5.5 rule 7: more restarts"),
        pytest.param(aged("z", sidecar_restarts=2), aged("a", sidecar_restarts=1), id="11.4.10 rule 7: sidecars next"),
        pytest.param(
            aged("z", restarts=1), aged("a", sidecar_restarts=9), id="11.4.10 rule 7: regular containers come first"
        ),
        pytest.param(aged("z", created_hours=2), aged("a", created_hours=5), id="11.4.10 rule 8: younger"),
        pytest.param(pod("z", created_ms=0), pod("a"), id="11.4.10 rule 8: an unknown age is the youngest"),
        pytest.param(
            pod("z", created_ms=NOW_MS - H, **UNREADY),
            pod("a", created_ms=NOW_MS - 9 * H, **UNREADY),
            id="rule 6 skips pods that are not ready",
        ),
        pytest.param(aged("a", ready_hours=-1), aged("b", ready_hours=-2), id="rule 6: not yet begun counts as no age"),
    ],
)
def test_unequal_pairs(first, second):
    """11.4.10: listed pairs compare one way, whichever is asked first."""
    ranks = {"n1": 1, "crowded": 3}
    assert compare(first, second, ranks, NOW_MS) < 0
    assert compare(second, first, ranks, NOW_MS) > 0


@pytest.mark.parametrize(
    ("a", "b"),
    [
        pytest.param(UNASSIGNED, UNASSIGNED, id="11.4.10 unassigned with itself"),
        pytest.param(READY_NOW, READY_NOW, id="11.4.10 ready with itself"),
        pytest.param(pod("a"), pod("b"), id="alike but for name and UID"),
        pytest.param(pod("a", node_name="n8"), pod("b", node_name="n9"), id="different nodes alone"),
        pytest.param(pod("a", phase="Pending"), pod("b", phase="Other"), id="pending and a phase not in the list"),
        pytest.param(
            pod("a", ready=False, ready_since_ms=5),
            pod("b", ready=False, ready_since_ms=9),
            id="not ready: no ready time",
        ),
    ],
)
def test_equal_pairs(a, b):
    """11.4.10: listed pairs are not told apart, whichever is asked first."""
    assert compare(a, b, {}, NOW_MS) == 0
    assert compare(b, a, {}, NOW_MS) == 0


@pytest.mark.parametrize(
    ("age_ms", "bucket"),
    [(-5, -1), (0, -1), (1, 19), (H, 41), (2 * H, 42), (5 * H, 44), (8 * H, 44), (10 * H, 45)],
)
def test_age_buckets(age_ms, bucket):
    """The borders are powers of two in nanoseconds, about 1.22 h, 2.44 h, 4.89 h, 9.77 h."""
    assert age_bucket(age_ms) == bucket


def test_node_ranks_count_active_pods():
    """Every active related pod counts, ready or not; unassigned ones count one another."""
    related = [
        pod("a"),
        pod("b", **UNREADY),
        pod("c", phase="Failed"),
        pod("d", deleting_ms=NOW_MS),
        pod("e", node_name=""),
        pod("f", node_name=""),
    ]
    assert dict(node_ranks(related)) == {"n1": 2, "": 2}


@pytest.mark.parametrize(
    ("chosen", "youngest_s", "ratios"),
    [
        pytest.param([aged("a", created_hours=3)], 3600, (3,), id="three times as old"),
        pytest.param([aged("a", created_hours=0.5)], 7200, (1,), id="a candidate itself the youngest"),
        pytest.param([pod("a", **UNREADY)], 3600, (), id="an unready victim has none"),
        pytest.param([aged("a", created_hours=3)], 0, (), id="the youngest has no age: no division by zero"),
    ],
)
def test_age_ratios(chosen, youngest_s, ratios):
    """Integer division by the age of the youngest ready candidate."""
    candidates = [*chosen, pod("y", created_ms=NOW_MS - youngest_s * S)]
    assert age_ratios(chosen, candidates, NOW_MS) == tuple(("uid-a", ratio) for ratio in ratios)


any_pod = st.builds(
    lambda n, node, phase, ready, cost, since, restarts, sidecars, created: pod(
        f"p{n:06}",
        node_name=node,
        phase=phase,
        ready=ready,
        deletion_cost=cost,
        ready_since_ms=since if ready else 0,
        restarts=restarts,
        sidecar_restarts=sidecars,
        created_ms=created,
    ),
    st.integers(0, 10**6),
    st.sampled_from(["", "n1", "n2"]),
    st.sampled_from(["Pending", "Running", "Unknown", ""]),
    st.booleans(),
    st.sampled_from([-1, 0, 7]),
    st.sampled_from([0, NOW_MS - S, NOW_MS - H, NOW_MS - 6 * H, NOW_MS - 7 * H]),
    st.integers(0, 2),
    st.integers(0, 1),
    st.sampled_from([0, NOW_MS - S, NOW_MS - 5 * H, NOW_MS - 8 * H]),
)


@settings(max_examples=200)
@given(st.lists(any_pod, max_size=12, unique_by=lambda p: p.uid), st.integers(0, 12))
def test_victims_are_the_front_of_the_order(candidates, count):
    """Whatever the mix: as many as asked, each once, and by rules 1 to 5 no survivor should have gone
    before.
    """
    ranks = node_ranks(candidates)
    chosen = victims(candidates, count, candidates, NOW_MS)
    assert len(chosen) == min(count, len(candidates))
    assert len({p.uid for p in chosen}) == len(chosen)
    survivors = [p for p in candidates if p not in chosen]
    if chosen and survivors:
        assert max(rank_key(p, ranks) for p in chosen) <= min(rank_key(p, ranks) for p in survivors)


@given(any_pod, any_pod)
def test_comparison_is_antisymmetric(a, b):
    """Asking the other way round gives the opposite answer, corner cases included."""
    assert compare(a, b, {}, NOW_MS) == -compare(b, a, {}, NOW_MS)
