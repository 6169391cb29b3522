"""Limits hold and every rollout ends, whatever is late, lost or done twice: seeded runs of a played cluster."""

from random import Random

import pytest

from oarlock.controllers.deployment.model import RECREATE, ROLLING_UPDATE
from oarlock.controllers.deployment.sizing import recreate, rolling, scaling, sizes
from oarlock.controllers.deployment.sizing.sizes import Counted, count
from tests.controllers.builders import with_fields
from tests.controllers.deployment.rollout_world import BOUND, Live, Violation, World
from tests.controllers.deployment.sizes_builders import dep

STEPS = 400
LIMITS = [(0, 0), (1, 0), (0, 1), (2, 1), (3, 2), ("25%", "25%"), (0, "40%"), ("100%", 0)]


class Run:
    """A world, and what happens in it by chance. `edits`: which fields the user changes, besides the template."""

    def __init__(self, seed: int, strategy: str, edits: tuple[str, ...], losses: bool) -> None:
        self.random = Random(seed)
        surge, unavailable = self.random.choice(LIMITS)
        first = dep(
            self.random.randint(1, 10),
            strategy=strategy,
            max_surge=surge,
            max_unavailable=unavailable,
            template_digest="t1",
        )
        self.world, self.edits, self.losses = World(self.random, first), edits, losses
        self.pace = {
            Run.turn: 16,
            Run.replicaset_turn: self.random.choice((20, 40)),
            Run.land_late: self.random.choice((10, 30)),
            Run.cache: 14,
            Run.pods_change: self.random.choice((5, 15, 33)),
            Run.user: self.random.choice((1, 4)),
            Run.lose: 2 if losses else 0,
            Run.forget: 0.5,
        }
        self.settle()

    def play(self) -> None:
        """Steps by chance, then nobody interferes any more."""
        random, world = self.random, self.world
        for _ in range(STEPS):
            world.now += 1
            self.step()
            self.overdue()
            world.check()
        if world.deployment.paused or world.deployment.template_digest in world.broken:
            self.settle(to_rest=False)
            self.edit(paused=False, template_digest=random.choice(("t1", "t5")))
        self.settle()

    def step(self) -> None:
        """Something happens: each in its own pace, which differs from run to run."""
        live = self.random.choice(list(self.world.live.values()))
        (happens,) = self.random.choices(list(self.pace), list(self.pace.values()))
        happens(self, live)

    def turn(self, _: Live) -> None:
        self.world.turn()

    def replicaset_turn(self, live: Live) -> None:
        if self.random.random() < 0.6:
            live.look()
        if self.random.random() < 0.7:
            live.look_at_pods()
        self.world.turn_of(live)

    def land_late(self, live: Live) -> None:
        """A request lands or is lost; so may its answer be."""
        random, world = self.random, self.world
        lost = random.random() < 0.25
        if world.puts and random.random() < 0.6:
            put = random.choice(world.puts)
            if random.random() < 0.15:
                world.puts.remove(put)
            else:
                world.land_put(put, lost)
        elif live.statuses:
            world.land_status(live)

    def pods_change(self, live: Live) -> None:
        """Requests for pods land; pods become available, or go as they were told."""
        random, world = self.random, self.world
        lands = [each for each in live.requests if each.lands]
        if lands and random.random() < 0.6:
            request = random.choice(lands)
            if random.random() < 0.1:
                request.lands = False
            else:
                world.land_request(live, request, lost=random.random() < 0.2)
            return
        numbers = list(live.pods)
        if not numbers:
            return
        number = random.choice(numbers)
        pod = live.pods[number]
        if pod.ending:
            del live.pods[number]
        elif not pod.available and live.template not in world.broken:
            pod.available, pod.version = True, pod.version + 1
            world.lost.discard((live.template, number))

    def cache(self, live: Live) -> None:
        """A cache follows, of the ReplicaSet or of the Deployment."""
        world = self.world
        if self.random.random() < 0.3:
            world.seen = world.deployment
        else:
            world.cached[live.object.uid] = live.rv, live.object

    def overdue(self) -> None:
        """No request is under way for longer than BOUND."""
        world = self.world
        for put in [each for each in world.puts if world.now - each.sent >= BOUND]:
            world.land_put(put, lost=True)
        for live in world.live.values():
            for request in [each for each in live.requests if each.lands and world.now - each.sent >= BOUND]:
                world.land_request(live, request, lost=True)

    def user(self, _: Live) -> None:
        """Another template, or another field that this run changes."""
        random = self.random
        field = random.choice(("template", *self.edits))
        if field == "template":
            template = f"t{random.randint(1, 4)}"
            if self.losses and random.random() < 0.3:
                template = random.choice(("broken1", "broken2", "refused"))
                self.world.broken.add(template)
                self.world.refused |= {template} & {"refused"}
            self.edit(template_digest=template)
        elif field == "replicas":
            self.edit(replicas=random.randint(0, 10))
        elif field == "limits":
            surge, unavailable = random.choice(LIMITS)
            self.edit(max_surge=surge, max_unavailable=unavailable)
        elif field == "paused":
            self.edit(paused=not self.world.deployment.paused)
        elif field == "strategy":
            self.edit(strategy=random.choice((ROLLING_UPDATE, RECREATE)))

    def edit(self, **fields: object) -> None:
        world = self.world
        world.deployment = with_fields(world.deployment, **fields)
        world.specs.append(world.deployment)

    def lose(self, live: Live) -> None:
        """A pod is no longer available, or is gone, by itself."""
        random, world = self.random, self.world
        for number, pod in list(live.pods.items()):
            if pod.ending or random.random() < 0.7:
                continue
            if pod.available:
                world.lost.add((live.template, number))
            pod.available, pod.version = False, pod.version + 1
            if random.random() < 0.5:
                del live.pods[number]

    def forget(self, _: Live) -> None:
        """Redis is lost. Before anything is written again, every request has ended, and the cache is a list."""
        world = self.world
        for put in list(world.puts):
            world.land_put(put, lost=True)
        world.memory.clear()
        world.min_rv.clear()
        self.all_cached()

    def all_cached(self) -> None:
        world = self.world
        world.seen = world.deployment
        for uid, live in world.live.items():
            world.cached[uid] = live.rv, live.object

    def settle(self, to_rest: bool = True) -> None:
        """Left alone, it comes to rest at what is wanted; where it cannot, nothing is written any more."""
        world = self.world
        for _ in range(400):
            world.now += BOUND
            before = world.numbers
            self.overdue()
            self.all_cached()
            world.turn()
            for put in list(world.puts):
                world.land_put(put)
            for live in world.live.values():
                live.look()
                live.look_at_pods()
                world.turn_of(live)
                while live.statuses:
                    world.land_status(live)
                for request in list(live.requests):
                    world.land_request(live, request)
                    world.check()
                for number, pod in list(live.pods.items()):
                    if pod.ending:
                        del live.pods[number]
                    elif live.template not in world.broken and not pod.available:
                        pod.available, pod.version = True, pod.version + 1
            self.all_cached()
            world.check()
            if world.at_rest() or (not to_rest and world.numbers == before):
                return
        raise Violation(f"it does not come to rest: {self.shown()}")

    def shown(self) -> str:
        world = self.world
        wanted = world.deployment
        fields = (wanted.template_digest, wanted.replicas, wanted.strategy, wanted.max_surge, wanted.max_unavailable)
        found = [
            f"{live.template} size {live.object.replicas} generation {live.object.generation} "
            f"pods {live.object.status.replicas} available {live.object.status.available} "
            f"observed {live.object.status.observed_generation} {world.memory.get(uid)} {live.requests}"
            for uid, live in world.live.items()
        ]
        return "\n".join([str(fields), *found, str(world.puts)])


PROFILES = [
    pytest.param(ROLLING_UPDATE, (), False, id="templates"),
    pytest.param(ROLLING_UPDATE, (), True, id="templates, and pods that are lost"),
    pytest.param(ROLLING_UPDATE, ("replicas", "limits"), False, id="sizes and limits"),
    pytest.param(ROLLING_UPDATE, ("replicas", "paused"), True, id="sizes and pauses"),
    pytest.param(RECREATE, (), False, id="Recreate"),
    pytest.param(RECREATE, ("replicas", "paused"), True, id="Recreate, sizes and pauses"),
    pytest.param(ROLLING_UPDATE, ("replicas", "limits", "paused", "strategy"), True, id="everything"),
]


def played(seeds: range, strategy: str, edits: tuple[str, ...], losses: bool) -> None:
    for seed in seeds:
        run = Run(seed, strategy, edits, losses)
        try:
            run.play()
        except Violation as violation:
            raise Violation(f"seed {seed}: {violation}") from violation


@pytest.mark.parametrize(("strategy", "edits", "losses"), PROFILES)
def test_limits_are_kept(strategy: str, edits: tuple[str, ...], losses: bool) -> None:
    """Pods, available pods, templates at once; and an end."""
    played(range(60), strategy, edits, losses)


def sizes_alone(replicaset, size_writes):
    """Upstream's reckoning: the size that is seen, and the available pods that the status says."""
    size = replicaset.replicas
    return Counted(size, size, replicaset.status.available)


def without_what_is_remembered(replicaset, size_writes):
    """What is seen is taken for observed."""
    size, status = replicaset.replicas, replicaset.status
    return Counted(max(size, status.replicas), size, min(status.available, size))


def most_by_size(replicaset, size_writes):
    """The most pods by the size that is seen."""
    return with_fields(count(replicaset, size_writes), high=replicaset.replicas)


def available_by_status(replicaset, size_writes):
    """The available pods by the status."""
    return with_fields(count(replicaset, size_writes), available=replicaset.status.available)


def lost_is_settled(replicaset, size_writes):
    """What is not remembered did not happen."""
    if replicaset.uid in size_writes:
        return count(replicaset, size_writes)
    return without_what_is_remembered(replicaset, size_writes)


@pytest.mark.parametrize(
    ("reckoning", "complaint"),
    [
        pytest.param(sizes_alone, "are allowed|have to be", id="upstream's"),
        pytest.param(without_what_is_remembered, "are allowed|have to be", id="what is remembered is ignored"),
        pytest.param(most_by_size, "are allowed", id="the most pods by size"),
        pytest.param(available_by_status, "have to be", id="available pods by status"),
        pytest.param(lost_is_settled, "are allowed|have to be", id="what is not remembered did not happen"),
    ],
)
def test_a_wrong_reckoning_is_found(monkeypatch, reckoning, complaint):
    """The runs are hard enough to tell."""
    for module in (sizes, rolling, scaling):
        monkeypatch.setattr(module, "count", reckoning)
    with pytest.raises(Violation, match=complaint):
        played(range(400), ROLLING_UPDATE, (), False)


def test_old_pods_that_may_come_are_found(monkeypatch):
    """Recreate by the cached sizes and pods alone, as upstream."""
    monkeypatch.setattr(recreate, "awaited", lambda *_: "")
    with pytest.raises(Violation, match=r"at once|are allowed"):
        played(range(400), RECREATE, (), False)


def test_a_status_that_observes_too_soon_is_found(monkeypatch):
    """It has to wait until no create and no delete is without an answer."""
    monkeypatch.setattr(World, "observes", lambda *_: True)
    with pytest.raises(Violation, match=r"are allowed|have to be"):
        played(range(400), ROLLING_UPDATE, (), False)


def test_a_status_that_never_observes_is_found(monkeypatch):
    """To wait for every answer stops a rollout for ever, beside a template whose creates never get one."""

    def observes(_: World, live: Live, satisfied: bool) -> bool:
        return satisfied and not live.requests

    monkeypatch.setattr(World, "observes", observes)
    with pytest.raises(Violation, match="does not come to rest"):
        played(range(400), ROLLING_UPDATE, ("replicas", "paused"), True)
