"""What R3 takes for a loss: an available pod that a size or a delete of ours takes, and nobody has asked for."""

from __future__ import annotations

from collections import Counter
from typing import Any

import pytest

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Entry
from oarlock.controllers.deployment.annotations import DESIRED_REPLICAS
from oarlock.controllers.objects.codec import encode
from oarlock.controllers.objects.model import OwnerRef, Pod, ReplicaSet, ReplicaSetStatus
from oarlock.workers.turn.steps import Write
from tests.simulation.checker import Violation
from tests.simulation.rollout_checker import Bounds, RolloutChecker

DEPLOYMENT, NONCE = "deployment-1", "nonce"


def replicaset(size: int, asked_for: int = 3) -> ReplicaSet:
    """Of a Deployment of three; its status counts three available pods."""
    ref = OwnerRef("apps/v1", "Deployment", "web", DEPLOYMENT, True)
    annotations = {DESIRED_REPLICAS: str(asked_for)}
    counted = ReplicaSetStatus(3, 3, 3, 3)
    return ReplicaSet(
        "default", "web-1", "rs-1", 1, size, None, b"", {}, owner_refs=(ref,), status=counted, annotations=annotations
    )


def pod(number: int) -> Pod:
    ref = OwnerRef("apps/v1", "ReplicaSet", "web-1", "rs-1", True)
    return Pod("default", f"web-1-{number}", owner_refs=(ref,), uid=f"{number}")


class World:
    """One ReplicaSet with three available pods."""

    def __init__(self, owner: ReplicaSet) -> None:
        self.owner, self.pods, self.counts = owner, [pod(number) for number in range(3)], Counter[str]()

    def wall_ms(self) -> int:
        return 1_000

    def count(self, what: str) -> None:
        self.counts[what] += 1

    def deployment_of(self, pod: Pod) -> str:
        return DEPLOYMENT

    def replicasets_of(self, uid: str) -> list[ReplicaSet]:
        return [self.owner]

    def pods_of(self, uid: str) -> list[Pod]:
        return self.pods

    def is_available(self, pod: Pod, min_ready_s: int) -> bool:
        return True

    def was_ready(self, pod: Pod, min_ready_s: int, at_ms: int) -> bool:
        return True


def checker_of(world: Any) -> RolloutChecker:
    """All three pods have to be available."""
    checker = RolloutChecker(world)
    checker.bounds[DEPLOYMENT] = Bounds(most=5, fewest=3, recreates=False, ready_s=(0, 0))
    return checker


def take(size_then: int, size_now: int) -> None:
    """A turn decides on a delete when its ReplicaSet is to have so many pods; it lands when that has another size."""
    checker = checker_of(World(replicaset(size_now)))
    owner = replicaset(size_then)
    claim = Claim("replicaset", "default/web-1", NONCE, Cached("1", owner.uid, encode(owner)), [], None, "", False, 0)
    checker.claimed(claim.key, NONCE)
    checker.announced(claim, [Entry("delete", "pods/web-1-0", "0", "1")])
    checker.deleted(pod(0), Write("delete", "pods", "default", "web-1-0", uid="0"))


@pytest.mark.parametrize(
    ("size_then", "size_now"),
    [
        pytest.param(2, 2, id="one too many"),
        pytest.param(1, 3, id="two too many then, and none when the first delete lands"),
    ],
)
def test_a_delete_that_its_size_asked_for_is_no_loss(size_then: int, size_now: int) -> None:
    take(size_then, size_now)


def test_a_delete_that_no_size_asked_for_is_one() -> None:
    with pytest.raises(Violation, match="R3: delete of web-1-0 left 2"):
        take(3, 3)


def size(checker: RolloutChecker, world: World, to: int, asked_for: int = 3) -> None:
    before, world.owner = world.owner, replicaset(to, asked_for)
    checker.sized(before)


def test_a_size_that_takes_too_many_is_a_loss() -> None:
    world = World(replicaset(3))
    with pytest.raises(Violation, match="R3: size 2 of web-1 left 2"):
        size(checker_of(world), world, 2)


def test_the_share_of_another_size_is_none_and_what_goes_beyond_it_is() -> None:
    world = World(replicaset(3, asked_for=5))
    checker = checker_of(world)
    size(checker, world, 2)
    with pytest.raises(Violation, match="R3: size 1 of web-1 left 1"):
        size(checker, world, 1)
