"""At most one pod of a set per node, two while it may surge: whoever writes, and however little they know."""

from collections import Counter

import pytest

from oarlock.controllers.daemonset import decide as deciding
from oarlock.controllers.daemonset import names
from oarlock.controllers.history.model import HASH_LABEL
from oarlock.controllers.plan import Unanswered
from tests.controllers.daemonset.daemon_builders import ds, surging
from tests.controllers.daemonset.daemon_world import World

SEEDS, STEPS = range(60), 300


def violations(owner, limit, *, fleet, finalizers, seeds=SEEDS, steps=STEPS):
    """Seeds in which a node came to have more pods than the limit, and what there was opportunity for."""
    seen = Counter()

    def check(world):
        assert all(len(pods) <= limit for pods in world.on_node().values()), world.on_node()

    found = []
    for seed in seeds:
        world = World(seed, owner, fleet=fleet, finalizers=finalizers)
        try:
            world.run(steps, check)
        except AssertionError:
            found.append(seed)
        seen += world.seen
        if seed not in found:
            settled(world)
    return found, seen


def settled(world):
    """Left alone, every node that fits has one pod of the present revision, and no other has any that may not stay."""
    world.calm()
    untainted = {name for name, node in world.nodes.items() if not node.taints}
    on_node = world.on_node()
    assert untainted <= on_node.keys()
    for name, [pod] in on_node.items():
        assert name not in untainted or world.owner.strategy == "OnDelete" or pod.labels[HASH_LABEL] == world.revision


@pytest.mark.parametrize(
    ("owner", "limit", "fleet", "finalizers"),
    [
        pytest.param(ds(), 1, False, False, id="strangers, no surge"),
        pytest.param(ds(strategy="OnDelete"), 1, False, False, id="strangers, OnDelete"),
        pytest.param(surging(), 2, False, False, id="strangers, surge"),
        pytest.param(ds(), 1, True, True, id="a fleet, no surge, pods hang on finalizers"),
        pytest.param(surging(), 2, True, True, id="a fleet, surge, pods hang on finalizers"),
    ],
)
def test_never_one_too_many(owner, limit, fleet, finalizers):
    """Checked after every step; there was opportunity enough to go wrong."""
    found, seen = violations(owner, limit, fleet=fleet, finalizers=finalizers)
    assert not found
    assert seen["refused create"] > 100
    assert seen["refused delete"] > 100
    assert seen["late"] > 100


def test_strangers_and_finalizers_are_the_condition():
    """A name that was passed over for a pod that had ended is free again once that pod has gone: a request from before
    it was made can then land beside its replacement. Only a record that holds the name prevents that.
    """
    found, _ = violations(ds(), 1, fleet=False, finalizers=True)
    assert found


@pytest.mark.parametrize("fleet", [False, True], ids=["strangers", "a fleet"])
def test_names_of_each_writers_own_would_not_do(monkeypatch, fleet):
    """The check sees it when creates bear names that differ from one decision to the next."""
    counter = iter(range(10**6))
    plain = deciding.choose

    def own_names(*args):
        return {f"{name}-{next(counter)}": node for name, node in plain(*args).items()}

    monkeypatch.setattr(deciding, "choose", own_names)
    found, _ = violations(ds(), 1, fleet=fleet, finalizers=False)
    assert found


def test_a_fleet_that_forgets_what_it_reserved_would_not_do(monkeypatch):
    """The check sees it when a reserved name is passed over like any other."""
    plain = names.Taken.__init__

    def forgetful(self, pods, claimed, unanswered, blocked):
        plain(self, pods, claimed, Unanswered(), blocked)

    monkeypatch.setattr(names.Taken, "__init__", forgetful)
    found, _ = violations(ds(), 1, fleet=True, finalizers=True)
    assert found
