"""Counting in shared memory: nothing is lost or doubled by a SIGKILL, and nothing grows."""

from __future__ import annotations

import mmap
import os
import random
import signal
import struct
from bisect import bisect_left
from dataclasses import fields

import pytest

from oarlock.broker.values.claims import Batch, Claim
from oarlock.broker.values.turns import Change, Finish, Verdict
from oarlock.workers.counters import layout, turn_counts
from oarlock.workers.counters.layout import CLAIM_WAIT_S, CODES, OUTCOMES, WAIT_S, WORK_S, Histogram, Layout, code_at
from oarlock.workers.counters.request_counts import RequestCounts
from oarlock.workers.counters.supervision import Supervision
from oarlock.workers.counters.table import CELL_BYTES, EXEMPLAR_CELLS, Exemplar, Row, Table, own_row
from oarlock.workers.counters.turn_counts import TurnCounts
from oarlock.workers.metrics.count_samples import rebucket
from oarlock.workers.process.death_signal import die_with_parent
from oarlock.workers.process.exit_code import ExitCode, death_of

QUEUE = "replicaset"
LAYOUT = Layout()


def claim(key: str, queue: str = QUEUE, needs: str = "") -> Claim:
    return Claim(queue, key, "n", None, [], None, needs, False, 0)


def batch(*waited_ms: int, queue: str = QUEUE, needs: str = "") -> Batch:
    claims = [claim(f"a/{number}", queue, needs) for number in range(len(waited_ms))]
    return Batch(queue, claims, {}, {}, waited_ms)


def finish(verdict: Verdict = Verdict.OK, delay_ms: int | None = None, changes: tuple[Change, ...] = ()) -> Finish:
    return Finish(QUEUE, "a/1", "n", verdict, delay_ms, changes)


def outcomes(row: Row, queue: str = QUEUE) -> dict[str, int]:
    first = LAYOUT.queues[queue].outcomes
    return {name: row.ints[first + at] for at, name in enumerate(OUTCOMES) if row.ints[first + at]}


def counted(table: Table) -> list[int]:
    """How many turns each part of the table has seen: waits, work, outcomes."""
    ints, _ = table.totals()
    cells = LAYOUT.queues[QUEUE]
    return [sum(ints[at] for at in part) for part in (cells.wait.cells, cells.work.cells, [cells.outcomes])]


def work_for_ever(row: Row, told: mmap.mmap) -> None:
    counts, done = TurnCounts(row), 0
    while True:
        counts.claimed(batch(3))
        begun_ns = counts.begun()
        counts.worked(QUEUE, begun_ns, 0)
        counts.finished(finish(), False, 0)
        done += 1
        told[:8] = struct.pack("<q", done)


def test_a_killed_worker_takes_no_count_with_it_and_the_next_counts_on() -> None:
    """The child is killed at any moment: what it had told is in the table, and at most one turn more."""
    seed = int.from_bytes(os.urandom(4), "big")
    print(f"seed {seed}")
    chance = random.Random(seed)
    table, told, parent_pid = Table(2), mmap.mmap(-1, 8), os.getpid()
    before = counted(table)
    for _ in range(5):
        told[:8] = bytes(8)
        pid = os.fork()
        if pid == 0:
            try:
                die_with_parent(parent_pid=parent_pid)
                work_for_ever(table.rows[0], told)
            finally:
                os._exit(1)
        end = chance.randrange(50, 2_000)
        while struct.unpack("<q", told[:8])[0] < end:
            pass
        os.kill(pid, signal.SIGKILL)
        os.waitpid(pid, 0)
        (done,) = struct.unpack("<q", told[:8])
        after = counted(table)
        for now, then in zip(after, before, strict=True):
            assert done <= now - then <= done + 1
        before = after
    assert not any(table.rows[1].ints), "a row is one position's"


def test_totals_are_sums_over_rows() -> None:
    table = Table(3)
    for at, row in enumerate(table.rows, start=1):
        row.ints[LAYOUT.starts] = at
        row.sums[0] = at / 2
    ints, sums = table.totals()
    assert (ints[LAYOUT.starts], sums[0]) == (6, 3.0)
    assert len(ints) == LAYOUT.ints
    assert len(sums) == LAYOUT.sums


def test_no_two_cells_share_a_place() -> None:
    taken: list[int] = []
    for queue in LAYOUT.queues.values():
        taken += [*queue.wait.cells, *queue.work.cells, *queue.failover.cells, queue.retries]
        taken += range(queue.outcomes, queue.outcomes + len(OUTCOMES))
    for method in layout.METHODS:
        taken += range(LAYOUT.codes[method], LAYOUT.codes[method] + len(CODES))
        taken += [*LAYOUT.requests[method].cells, *LAYOUT.limits[method].cells]
    taken += range(LAYOUT.gc, LAYOUT.gc + layout.GC_GENERATIONS * len(layout.GC_FACTS))
    taken += range(LAYOUT.deaths, LAYOUT.deaths + len(layout.DEATHS))
    taken += [
        LAYOUT.tick_ms,
        LAYOUT.pid,
        LAYOUT.turn_since_ns,
        LAYOUT.turns_under_way,
        LAYOUT.turn_queue,
        LAYOUT.starts,
        LAYOUT.reclaims,
    ]
    taken += [LAYOUT.releases, LAYOUT.epochs_lost, LAYOUT.leaving, *LAYOUT.age_ratio.cells]
    taken += [at for skips in LAYOUT.skips.values() for at in skips.values()]
    taken += [at for lane in LAYOUT.budget.lanes.values() for at in lane]
    taken += [getattr(LAYOUT.budget, each.name) for each in fields(LAYOUT.budget) if each.name != "lanes"]
    assert sorted(taken) == list(range(LAYOUT.ints))


def test_a_table_is_small_and_stays_so() -> None:
    cells = LAYOUT.ints + LAYOUT.sums + LAYOUT.exemplars * EXEMPLAR_CELLS
    assert cells * CELL_BYTES < 14_336, "bytes a worker"


def exemplified(row: Row, value: float, trace_id: str, at_s: float) -> None:
    row.exemplify(LAYOUT.queues[QUEUE].work, value, trace_id, at_s)


def test_the_last_exemplar_of_a_bucket_is_kept_and_the_newest_of_all_rows_is_told() -> None:
    table, work = Table(2), LAYOUT.queues[QUEUE].work
    ids = [f"{number:032x}" for number in (1, 2**128 - 1, 2**127, 3)]
    exemplified(table.rows[0], 0.02, ids[0], 5.0)
    exemplified(table.rows[0], 0.03, ids[1], 6.0)
    exemplified(table.rows[1], 0.04, ids[2], 7.0)
    exemplified(table.rows[1], 99.0, ids[3], 1.0)
    found = dict(zip((*work.bounds, float("inf")), table.exemplars(work), strict=True))
    assert {bound: each for bound, each in found.items() if each is not None} == {
        0.1: Exemplar(ids[2], 0.04, 7.0),
        float("inf"): Exemplar(ids[3], 99.0, 1.0),
    }
    assert table.rows[0].exemplar(work.exemplars + list(found).index(0.1)) == Exemplar(ids[1], 0.03, 6.0)  # type: ignore[operator]
    assert not any(each for queue in LAYOUT.queues.values() for each in table.exemplars(queue.wait))
    assert table.exemplars(LAYOUT.age_ratio) == [None] * 7


def test_no_two_exemplars_share_a_place() -> None:
    places = [
        each.exemplars + at
        for queue in LAYOUT.queues.values()
        for each in (queue.wait, queue.work)
        if each.exemplars is not None
        for at in range(len(each.cells))
    ]
    assert sorted(places) == list(range(LAYOUT.exemplars))


def test_how_long_keys_waited() -> None:
    row = own_row()
    counts = TurnCounts(row)
    counts.claimed(batch(0, 1, 7, 700_000))
    cells = LAYOUT.queues[QUEUE].wait
    found = {bound: row.ints[cells.counts + at] for at, bound in enumerate((*WAIT_S, float("inf")))}
    assert {bound: count for bound, count in found.items() if count} == {1e-8: 1, 0.001: 1, 0.01: 1, float("inf"): 1}
    assert row.sums[cells.sum] == pytest.approx(700.008)


@pytest.mark.parametrize(
    ("turn", "failed", "in_a_row", "outcome", "again"),
    [
        (finish(), False, 0, "done", 0),
        (finish(delay_ms=500), False, 0, "done", 1),
        (finish(changes=(Change.min_rv("pods", "7"), Change.again(20))), False, 0, "done", 1),
        (finish(changes=(Change.min_rv("pods", "7"),)), False, 0, "done", 0),
        (finish(Verdict.RETRY), False, 1, "again", 1),
        (finish(Verdict.RETRY), True, 3, "failed", 1),
        (finish(Verdict.GONE), False, 0, "gone", 0),
        (finish(Verdict.RETRY), True, -1, "lost", 0),
    ],
)
def test_outcomes(turn: Finish, failed: bool, in_a_row: int, outcome: str, again: int) -> None:
    row = own_row()
    TurnCounts(row).finished(turn, failed, in_a_row)
    assert outcomes(row) == {outcome: 1}
    assert row.ints[LAYOUT.queues[QUEUE].retries] == again


@pytest.mark.parametrize(
    ("queue", "needs", "counted"),
    [
        pytest.param("replicaset", "pods=7", {"pods": 2}, id="behind the pods"),
        pytest.param("replicaset", "replicasets=7 pods=8", {"replicasets": 2}, id="a turn counts once"),
        pytest.param("replicaset", "", {}, id="not behind"),
        pytest.param("replicaset", "widgets=7", {}, id="behind what is not known"),
        pytest.param("daemonset", "controllerrevisions=7", {"controllerrevisions": 2}, id="behind the revisions"),
        pytest.param("replicationmanager", "pods=7", {}, id="a kind that has no such metric"),
    ],
)
def test_turns_that_found_the_cache_behind(queue: str, needs: str, counted: dict[str, int]) -> None:
    """Each of the two keys of a batch, under what it waits for."""
    row = own_row()
    TurnCounts(row).claimed(batch(1, 1, queue=queue, needs=needs))
    found = {(each, what): row.ints[at] for each, skips in LAYOUT.skips.items() for what, at in skips.items()}
    assert {key: count for key, count in found.items() if count} == {(queue, what): n for what, n in counted.items()}


def test_ages_of_chosen_pods() -> None:
    """The bound belongs to its bucket; 0 is below the first, as ratios are whole."""
    row = own_row()
    counts = TurnCounts(row)
    counts.ranked("replicaset", [0, 1, 1, 2, 5, 9])
    counts.ranked("replicationmanager", [1])
    assert [row.ints[at] for at in LAYOUT.age_ratio.cells] == [1, 0, 2, 1, 0, 1, 1]
    assert row.sums[LAYOUT.age_ratio.sum] == 18


def test_a_lost_claim_is_counted_where_it_was_noticed() -> None:
    row = own_row()
    TurnCounts(row).lost("daemonset")
    assert outcomes(row, "daemonset") == {"lost": 1}


def test_what_runs_now_is_seen_from_outside() -> None:
    row = own_row()
    counts = TurnCounts(row)
    counts.claimed(batch(1, queue="daemonset"))
    begun_ns = counts.begun()
    assert row.ints[LAYOUT.turn_since_ns] > 0
    assert list(LAYOUT.queues)[row.ints[LAYOUT.turn_queue]] == "daemonset"
    counts.worked("daemonset", begun_ns, 0)
    assert row.ints[LAYOUT.turn_since_ns] == 0
    counts.begun()
    TurnCounts(row)  # the next worker of the position
    assert row.ints[LAYOUT.turn_since_ns] == 0


def test_turns_side_by_side_are_counted_together() -> None:
    row = own_row()
    counts = TurnCounts(row)
    counts.claimed(batch(3))
    begun = [counts.begun() for _ in range(3)]
    assert divmod(row.ints[LAYOUT.turns_under_way], 256) == (sum(each // 1_000 for each in begun), 3)
    assert row.ints[LAYOUT.turn_since_ns] == begun[0]
    counts.worked(QUEUE, begun[0], begun[1])
    assert row.ints[LAYOUT.turn_since_ns] == begun[1]
    counts.worked(QUEUE, begun[2], begun[1])
    counts.worked(QUEUE, begun[1], 0)
    assert (row.ints[LAYOUT.turns_under_way], row.ints[LAYOUT.turn_since_ns]) == (0, 0)


def test_a_queue_that_is_not_known_is_not_counted() -> None:
    row = own_row()
    counts = TurnCounts(row)
    counts.claimed(batch(5, queue="planted"))
    begun_ns = counts.begun()
    counts.worked("planted", begun_ns, 0)
    counts.lost("planted")
    counts.finished(Finish("planted", "a/1", "n", Verdict.OK), False, 0)
    assert [at for at in range(LAYOUT.ints) if row.ints[at]] in ([], list(range(LAYOUT.gc, LAYOUT.gc + 9)))
    assert not any(row.sums)


def test_the_collector_of_a_new_process_does_not_set_back_what_was_counted(monkeypatch: pytest.MonkeyPatch) -> None:
    row = own_row()
    told = [[10, 5, 0, 2, 1, 0, 1, 0, 0]]
    monkeypatch.setattr(turn_counts, "_gc_facts", lambda: told[0])
    first = TurnCounts(row)
    told[0] = [13, 9, 0, 2, 1, 0, 1, 0, 0]
    first.claimed(batch(1))
    told[0] = [1, 0, 0, 0, 0, 0, 0, 0, 0]
    second = TurnCounts(row)
    told[0] = [3, 0, 0, 0, 0, 0, 0, 0, 0]
    second.claimed(batch(1))
    assert list(row.ints[LAYOUT.gc : LAYOUT.gc + 3]) == [3 + 2, 4, 0]


@pytest.mark.parametrize(
    ("code", "label"),
    [
        (200, "200"),
        (409, "409"),
        (0, "<error>"),
        (-1, "<error>"),
        (418, "4xx"),
        (599, "5xx"),
        (100, "1xx"),
        (999, "<error>"),
    ],
)
def test_codes_are_few_whatever_a_server_says(code: int, label: str) -> None:
    assert CODES[code_at(code)] == label


def test_requests() -> None:
    row = own_row()
    counts = RequestCounts(row)
    counts.answered("GET", 200, 0.003)
    counts.answered("GET", 200, None)  # a watch
    counts.answered("POST", 0, 4.0)
    counts.answered("BREW", 418, 1.0)
    counts.limited("PATCH", 0.0)
    counts.limited("BREW", 0.0)
    assert row.ints[LAYOUT.codes["GET"] + code_at(200)] == 2
    assert row.ints[LAYOUT.codes["POST"] + code_at(0)] == 1
    assert sum(row.ints[at] for at in LAYOUT.requests["GET"].cells) == 1
    assert row.sums[LAYOUT.requests["POST"].sum] == 4.0
    assert sum(row.ints[at] for at in LAYOUT.limits["PATCH"].cells) == 1
    assert sum(row.ints) == 2 + 1 + 1 + 1 + 1


def test_both_families_read_from_one_histogram_are_exact() -> None:
    """Against counting straight into the bounds of each."""
    chance = random.Random(11)
    values = [chance.choice((0.0, *WAIT_S, *(chance.expovariate(0.2) for _ in range(20)))) for _ in range(2_000)]
    counts = [0] * (len(WAIT_S) + 1)
    for value in values:
        counts[bisect_left(WAIT_S, value)] += 1
    for bounds in (WORK_S, CLAIM_WAIT_S, WAIT_S):
        straight = [0] * (len(bounds) + 1)
        for value in values:
            straight[bisect_left(bounds, value)] += 1
        assert rebucket(bounds, Histogram(WAIT_S, 0, 0), counts) == straight


def test_a_supervisor_notes_who_comes_and_goes() -> None:
    table = Table(2)
    position, own = table.rows[0], table.rows[-1]
    supervision = Supervision(table)
    for code, killed in ((0, False), (-9, True), (-9, False), (ExitCode.EPOCH_OVER, False), (ExitCode.FAILED, False)):
        supervision.started(position, 4711)
        assert position.ints[LAYOUT.pid] == 4711
        supervision.ended(position, death_of(code, killed))
        assert position.ints[LAYOUT.pid] == 0
    found = dict(zip(layout.DEATHS, own.ints[LAYOUT.deaths : LAYOUT.deaths + 4], strict=True))
    assert found == {"left": 1, "epoch_over": 1, "killed": 1, "crashed": 2}
    assert own.ints[LAYOUT.starts] == 5


@pytest.mark.parametrize(
    ("why", "seconds"),
    [
        ("8000 1 lost w-1 6500", [2.5]),
        ("7000 3 set pods/a/p, lost w-1 6500", [2.5]),
        ("7000 3 lost w-1 6500, set pods/a/p", [2.5]),
        ("7000 1 lost w-1 9500", [0.0]),
        ("7000 2 set pods/a/lost, set pods/a/p", []),
        ("", []),
    ],
)
def test_how_long_nobody_worked_on_a_key_whose_worker_died(why: str, seconds: list[float]) -> None:
    row = own_row()
    claims = [claim("a/1")._replace(now_ms=9_000, why=why)]
    TurnCounts(row).claimed(Batch(QUEUE, claims, {}, {}, [7]))
    cells = row.layout.queues[QUEUE].failover
    assert (sum(row.ints[at] for at in cells.cells), row.sums[cells.sum]) == (len(seconds), sum(seconds))
