"""A course of events around ReplicaSets, or around ReplicationControllers."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping, Sequence

from tests.differential.manifests import COST
from tests.differential.plot import REST, Rest
from tests.differential.reading import NEVER_READY
from tests.differential.snapshot import MARK
from tests.differential.step import Step

HOUR_S = 3600
Steps = Iterator[Step | Rest]


class Replicas:
    """`steps` never ends. One owner at a time, and sometimes a second one with the same selector.

    `tag` makes the labels of a scenario its own: upstream 1.20 adopts revisions of other namespaces.
    """

    def __init__(self, dice: random.Random, kind: str, tag: str) -> None:
        self._dice, self._kind, self._tag = dice, kind, tag
        self._short = "rs" if kind == "ReplicaSet" else "rc"
        self._number = 0
        self._name = self._app = ""
        self._replicas = 0
        self._strange = 0

    def steps(self) -> Steps:
        plots: list[tuple[Callable[[], Steps], int]] = [
            (self._scale, 6),
            (self._delete_pod, 4),
            (self._fail_pod, 3),
            (self._release, 4),
            (self._orphan, 4),
            (self._not_ready, 3),
            (self._ranked, 3),
            (self._cost, 1),
            (self._near_ages, 1),
            (self._foreign_status, 1),
            (self._disowned, 2),
            (self._unlabelled, 1),
            (self._flicker, 2),
            (self._template, 3),
            (self._min_ready, 2),
            (self._held, 2),
            (self._quota, 3),
            (self._cordon, 2),
            (self._overlap, 1),
        ]
        if self._kind == "ReplicationController":
            plots.append((self._selector, 3))
        while True:
            yield from self._begin()
            yield REST
            for _ in range(self._dice.randint(2, 5)):
                plot = self._dice.choices([each for each, _ in plots], [weight for _, weight in plots])[0]
                yield from plot()
                yield REST
            yield from self._end()
            yield REST

    # -- an owner ----------------------------------------------------------------------------------

    def _begin(self, app: str = "") -> Steps:
        self._number += 1
        self._name = f"{self._short}{self._number}"
        self._app = app or f"{self._name}-{self._tag}"
        self._replicas, self._tier = self._dice.randint(1, 5), "a"
        spec = {"replicas": self._replicas, "minReadySeconds": self._dice.choice((0, 0, 0, 1, HOUR_S))}
        yield self._step("create_owner", app=self._app, spec=spec, labels={"tier": "a"})

    def _end(self) -> Steps:
        how = self._dice.choice(("Background", "Background", "Foreground", "Orphan"))
        yield self._step("delete_owner", propagation=how)
        if how == "Orphan":
            yield from self._begin(self._app)
            if self._dice.random() < 0.5:
                yield self._step("delete_owner", propagation="Background")

    # -- plots -------------------------------------------------------------------------------------

    def _scale(self) -> Steps:
        for _ in range(self._dice.randint(1, 2)):
            yield self._scaled(self._dice.randint(0, 6))
            yield REST

    def _delete_pod(self) -> Steps:
        yield self._step("delete_pod", index=self._dice.randint(0, 5))

    def _fail_pod(self) -> Steps:
        phase = self._dice.choice(("Failed", "Failed", "Succeeded"))
        yield self._step("end_pod", index=self._dice.randint(0, 5), phase=phase)

    def _release(self) -> Steps:
        """A pod is let go by a label; then comes back, goes, or stays."""
        self._strange += 1
        away = f"{self._app}-away{self._strange}"
        yield self._step("relabel_pod", index=self._dice.randint(0, 5), labels={"app": away})
        match self._dice.choice(("back", "back", "deleted", "stays")):
            case "back":
                yield Step("relabel_bare", {"app": away, "labels": {"app": self._app}})
            case "deleted":
                yield Step("delete_bare", {"app": away})

    def _orphan(self) -> Steps:
        """A pod that the owner adopts; one too many, unless the owner is scaled before. It looks like the youngest of
        the others: these may be of nearly its age."""
        self._strange += 1
        about = {"app": self._app, "labels": {"tier": self._tier}}
        if self._dice.random() < 0.5:
            about["annotations"] = {NEVER_READY: "true"}
        yield Step("create_pod", {"name": f"{self._app}-orphan{self._strange}", **about})

    def _not_ready(self) -> Steps:
        """Pods that are not ready go first, whatever their age."""
        count = self._dice.randint(3, 6)
        bad = self._dice.randint(1, count - 1)
        yield from self._fresh(count)
        picked = self._dice.sample(range(count), bad)
        yield self._marked([{MARK: chr(97 + n)} | ({NEVER_READY: "true"} if n in picked else {}) for n in range(count)])
        yield self._scaled(count - bad)
        yield self._scaled(0)

    def _ranked(self) -> Steps:
        """Pods in different orders of magnitude of age, or equally old with different numbers of restarts."""
        count = self._dice.randint(3, 5)
        yield from self._fresh(count)
        yield self._marked([{MARK: chr(97 + n)} for n in range(count)])
        if self._dice.random() < 0.5:
            ages = self._dice.sample([HOUR_S // 60 * 4**n for n in range(count)], count)
            restarts = [self._dice.randint(0, 3) for _ in range(count)]
        else:
            ages = [HOUR_S] * count
            restarts = self._dice.sample(range(1, 9), count)
        yield self._step("rank_pods", ages_s=ages, restarts=restarts)
        yield self._scaled(self._dice.randint(1, count - 1))
        yield self._scaled(0)

    def _cost(self) -> Steps:
        """The cheaper pods go first, where the cost of a deletion counts."""
        count = self._dice.randint(2, 4)
        yield from self._fresh(count)
        costs = self._dice.sample(range(-3, 9), count)
        yield self._marked([{MARK: chr(97 + n), COST: str(cost)} for n, cost in enumerate(costs)])
        yield self._step("rank_pods", ages_s=[HOUR_S] * count, restarts=self._dice.sample(range(1, 9), count))
        yield self._scaled(self._dice.randint(1, count - 1))
        yield self._scaled(0)

    def _near_ages(self) -> Steps:
        """Ages of one order of magnitude: between 2^44 and 2^45 ns, which is 4.9 to 9.8 hours."""
        count = self._dice.randint(2, 4)
        yield from self._fresh(count)
        yield self._marked([{MARK: chr(97 + n)} for n in range(count)])
        ages = self._dice.sample(range(5 * HOUR_S, 9 * HOUR_S, 600), count)
        yield self._step("rank_pods", ages_s=ages, restarts=[0] * count)
        yield self._scaled(self._dice.randint(1, count - 1))
        yield self._scaled(0)

    def _foreign_status(self) -> Steps:
        """Somebody writes wrong numbers and a condition of his own: the first are put right, the other stays."""
        condition = {"type": "Foreign", "status": "True", "reason": "Told"}
        wrong = {"replicas": 9, "readyReplicas": 7, "availableReplicas": 0, "conditions": [condition]}
        yield self._step("write_status", status=wrong)

    def _disowned(self) -> Steps:
        """A pod loses its owner by hand, and is adopted again."""
        yield self._step("disown_pod", index=self._dice.randint(0, 5))

    def _unlabelled(self) -> Steps:
        """A pod loses a label of the template that the selector does not need."""
        yield self._step("relabel_pod", index=self._dice.randint(0, 5), labels={"tier": None})
        yield self._scaled(0)

    def _flicker(self) -> Steps:
        """Pods stop being ready, and are ready again."""
        count = self._dice.randint(1, 3)
        yield self._marked([{NEVER_READY: "true"}] * count)
        yield self._marked([{NEVER_READY: None}] * count)

    def _template(self) -> Steps:
        """Pods of the former template are no longer fully labelled, and stay; they have to go before others do."""
        self._tier = self._dice.choice("bcd")
        yield self._step("change_template", labels={"tier": self._tier}, image=f"nginx:{self._dice.randint(2, 9)}")
        yield self._scaled(self._replicas + self._dice.randint(0, 2))
        yield self._scaled(0)

    def _min_ready(self) -> Steps:
        seconds = self._dice.choice((0, 1, 2, HOUR_S))
        yield self._step("change_spec", spec={"minReadySeconds": seconds})

    def _held(self) -> Steps:
        """A pod on its way out that a finalizer keeps: replaced, and counted no more."""
        yield self._step("hold_pod", index=self._dice.randint(0, 5))
        yield self._scaled(self._dice.randint(0, 4))
        yield Step("let_pods_go")

    def _quota(self) -> Steps:
        """Fewer pods than asked for; nothing else happens in the namespace meanwhile.

        No pod goes while some are missing: the server's own count of what is used lags then, and may let one too many
        in.
        """
        room = self._dice.randint(0, 2)
        yield Step("set_quota", {"more": room})
        yield self._scaled(self._replicas + room + self._dice.randint(1, 3))
        yield self._scaled(0)
        yield Step("drop_quota")
        yield self._scaled(self._dice.randint(1, 4))

    def _cordon(self) -> Steps:
        """Pods without a node are the first to go."""
        yield Step("cordon_node", {"name": "r0", "cordoned": True})
        before = self._replicas
        yield self._scaled(before + self._dice.randint(1, 3))
        yield self._scaled(before)
        if self._dice.random() < 0.5:
            yield self._scaled(before + 1)
        yield Step("cordon_node", {"name": "r0", "cordoned": False})

    def _overlap(self) -> Steps:
        """Two owners with one selector keep to their own."""
        second = f"{self._name}-too"
        about = {"kind": self._kind, "name": second}
        spec = {"replicas": self._dice.randint(1, 3)}
        yield Step("create_owner", {**about, "app": self._app, "spec": spec, "labels": {"tier": "a"}})
        yield self._scaled(self._dice.randint(1, 4))
        yield Step("change_spec", {**about, "spec": {"replicas": self._dice.randint(1, 3)}})
        yield Step("delete_owner", {**about, "propagation": "Background"})

    def _selector(self) -> Steps:
        """A ReplicationController may look for other pods; those it had are let go."""
        self._strange += 1
        former, self._app = self._app, f"{self._name}-as{self._strange}-{self._tag}"
        yield Step("change_selector", {"name": self._name, "app": self._app})
        yield Step("delete_bare", {"app": former})

    # -- parts -------------------------------------------------------------------------------------

    def _fresh(self, count: int) -> Steps:
        """All pods of one make."""
        yield self._scaled(0)
        yield self._scaled(count)

    def _scaled(self, replicas: int) -> Step:
        self._replicas = replicas
        return self._step("change_spec", spec={"replicas": replicas})

    def _marked(self, annotations: Sequence[Mapping[str, str | None]]) -> Step:
        return self._step("annotate_pods", annotations=list(annotations))

    def _step(self, what: str, **about: object) -> Step:
        return Step(what, {"kind": self._kind, "name": self._name, **about})
