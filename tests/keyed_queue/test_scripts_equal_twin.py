"""Every script against its twin: the same steps under the same clock, the whole state compared after each of them."""

from __future__ import annotations

from typing import Any

import pytest
from hypothesis import HealthCheck, settings
from hypothesis import strategies as st
from hypothesis.stateful import RuleBasedStateMachine, invariant, rule, run_state_machine_as_test

from oarlock.queue.values import Claim, Empty, Policy, Verdict
from tests.keyed_queue.queue_cases import MemoryCase, RedisCase

KEYS = ("a", "b", "g/a", "g/b", "h/c")
keys = st.sampled_from(KEYS)
groups = st.sampled_from(("", "g", "h"))
holders = st.sampled_from(("h1", "h2"))
delays = st.sampled_from((-1, 0, 1, 400, 70_000))
leases = st.sampled_from((1_000, 30_000))
policies = st.sampled_from((Policy(0, 1, 1), Policy(2, 1_000, 1_500), Policy(2**31, 1, 600_000)))
times = st.sampled_from((0, 1, 399, 1_000, 4_999, 5_000, 5_001, 31_000, 3_600_000, -1, -3_600_000))


def machine_of(case: RedisCase) -> type[RuleBasedStateMachine]:
    class Machine(RuleBasedStateMachine):
        def __init__(self) -> None:
            super().__init__()
            self.twin = MemoryCase()
            case.__init__(case.name, case.client)  # type: ignore[misc]
            self.claims: list[Claim] = []

        def both(self, step: str, *args: Any, **named: Any) -> Any:
            ours, twins = (getattr(each.steps, step)(*args, **named) for each in (case, self.twin))
            if isinstance(ours, list) and ours and isinstance(ours[0], Claim):  # Redis dates entries by its own clock
                assert [each[:3] for each in ours] == [each[:3] for each in twins]
            else:
                assert ours == twins
            return ours

        @rule(pairs=st.lists(st.tuples(keys, groups), max_size=4), delay_ms=delays)
        def add(self, pairs: list[tuple[str, str]], delay_ms: int) -> None:
            self.both("add", pairs, delay_ms)

        @rule(holder=holders, lease_ms=leases, policy=policies, most=st.integers(0, 4))
        def claim(self, holder: str, lease_ms: int, policy: Policy, most: int) -> None:
            found = self.both("claim", holder, lease_ms, policy, most)
            if not isinstance(found, Empty):
                self.claims += found

        @rule(
            at=st.integers(0, 30),
            verdict=st.sampled_from(Verdict),
            policy=policies,
            again_ms=st.none() | delays,
        )
        def finish(self, at: int, verdict: Verdict, policy: Policy, again_ms: int | None) -> None:
            if self.claims:  # also one that has ended
                claim = self.claims[-1 - at % len(self.claims)]
                self.both("finish", claim, verdict, policy, again_ms=again_ms, error=f"error {at}")

        @rule(holder=holders, lease_ms=leases, some=st.sets(st.integers(0, 30), max_size=4))
        def renew(self, holder: str, lease_ms: int, some: set[int]) -> None:
            self.both(
                "renew", holder, lease_ms, [self.claims[-1 - at % len(self.claims)] for at in some if self.claims]
            )

        @rule(some=st.lists(keys, max_size=3))
        def requeue(self, some: list[str]) -> None:
            self.both("requeue", some)

        @rule(ms=times)
        def time_passes(self, ms: int) -> None:
            case.jump(ms)
            self.twin.jump(ms)

        @rule(key=keys)
        def read(self, key: str) -> None:
            self.both("look", key)
            self.both("parked", 3)

        @invariant()
        def equal(self) -> None:
            state = case.state()
            assert state == self.twin.state()
            stats, twins = case.steps.stats(), self.twin.steps.stats()
            assert stats.__class__ is twins.__class__
            for name in ("queued", "running", "delayed", "parked", "failing", "groups", "consumers"):
                assert getattr(stats, name) == getattr(twins, name), name

        @invariant()
        def sound(self) -> None:
            """What holds of any state, whatever the twin says."""
            state = case.state()
            queued = [key for _, stream in state["streams"] for key in stream]
            assert len(queued) == len(set(queued))
            assert set(queued) == {key for key, each in state["state"].items() if each == "queued"}
            running = {key for key, each in state["state"].items() if each.startswith("running")}
            assert running == set(state["locks"]) == set(state["leases"])
            assert {key for key, each in state["state"].items() if each == "parked"} == set(state["parked"])
            assert all(stream for _, stream in state["streams"])
            assert set(state["groups"]) <= set(state["state"]) | set(state["delayed"])

    return Machine


@pytest.mark.slow
def test_every_script_equals_its_twin(real: RedisCase) -> None:
    run_state_machine_as_test(  # type: ignore[no-untyped-call]
        machine_of(real),
        settings=settings(
            max_examples=60,
            stateful_step_count=30,
            deadline=None,
            derandomize=True,
            suppress_health_check=list(HealthCheck),
        ),
    )
