"""The steps of a scenario, from a seed.

A scenario is up to four courses of events in one namespace, mixed at random: of ReplicaSets, of
ReplicationControllers, of DaemonSets with the nodes they run on, of Deployments. A course goes from plot to plot; a
plot ends in a state that is the same on both sides whatever the rules leave open.
"""

from __future__ import annotations

import random
from collections.abc import Iterator

from tests.differential.course_daemons import Daemons
from tests.differential.course_deployments import Deployments
from tests.differential.course_replicas import Replicas
from tests.differential.plot import Rest
from tests.differential.step import Step


def scenario(seed: int, number: int, count: int, *, surge: bool = False) -> list[Step]:
    """`count` steps of scenario `number`. The same for the same arguments, everywhere. `surge`: DaemonSets may."""
    dice = random.Random(f"{seed}/{number}")
    tag = str(number)
    courses: list[Iterator[Step | Rest]] = [
        Replicas(random.Random(f"{seed}/{number}/rs"), "ReplicaSet", tag).steps(),
        Replicas(random.Random(f"{seed}/{number}/rc"), "ReplicationController", tag).steps(),
        Daemons(random.Random(f"{seed}/{number}/ds"), tag, surge=surge).steps(),
        Deployments(random.Random(f"{seed}/{number}/deploy"), tag).steps(),
    ]
    weights = dice.choice(((4, 2, 4, 3), (6, 2, 0, 2), (0, 1, 8, 1), (3, 6, 1, 2), (1, 1, 1, 1), (0, 0, 1, 4)))
    steps = [Step("create_node", {"name": "r0", "pool": "replicas", "labels": {}})]
    while len(steps) < count:
        course = dice.choices(courses, weights)[0]
        for step in course:
            if isinstance(step, Rest):
                if step.may_switch:
                    break
            else:
                steps.append(step)
    return steps[:count]
