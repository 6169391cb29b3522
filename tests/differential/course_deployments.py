"""A course of events around Deployments.

Upstream cleaned up by age before 1.21, not by revision. The two orders differ where an old template comes back, so a
Deployment either has a short history and only ever new templates, or its whole history until shortly before its end.
"""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator, Mapping

from tests.differential.plot import REST, Rest
from tests.differential.reading import NEVER_READY, NO_IMAGE
from tests.differential.step import Step

HOUR_S = 3600
SOON_S = 2
"""A deadline that passes while one waits."""
NEVER_S = 2**31 - 1
LIMITS = ((1, 0), (0, 1), (2, 1), (0, "50%"), ("25%", "25%"), ("100%", 0), ("0%", "1%"), (0, "100%"))
"""maxSurge and maxUnavailable."""
WHOLE = 50
"""A revisionHistoryLimit that nothing comes up to."""
Steps = Iterator[Step | Rest]


class Deployments:
    """`steps` never ends. One Deployment at a time, and sometimes a second one with the same selector.

    `tag` makes the labels of a scenario its own.
    """

    def __init__(self, dice: random.Random, tag: str) -> None:
        self._dice, self._tag = dice, tag
        self._number = self._image = self._strange = 0
        self._name = self._app = ""
        self._replicas = 0
        self._rolls, self._is_short = True, False

    def steps(self) -> Steps:
        plots: list[tuple[Callable[[], Steps], int]] = [
            (self._roll, 6),
            (self._scale, 3),
            (self._strategy, 4),
            (self._pause, 4),
            (self._stuck, 5),
            (self._deadline, 3),
            (self._slow, 2),
            (self._noted, 2),
            (self._delete_pod, 3),
            (self._flicker, 2),
            (self._old_unready, 2),
            (self._by_hand, 2),
            (self._deleted, 2),
            (self._held, 2),
            (self._quota, 2),
            (self._overlap, 1),
        ]
        with_short: list[tuple[Callable[[], Steps], int]] = [(self._history, 6)]
        with_whole: list[tuple[Callable[[], Steps], int]] = [(self._undo, 5), (self._roll_back, 4), (self._released, 3)]
        while True:
            yield from self._begin(short=self._dice.random() < 0.3)
            yield REST
            for _ in range(self._dice.randint(3, 6)):
                drawn = plots + (with_short if self._is_short else with_whole)
                plot = self._dice.choices([each for each, _ in drawn], [weight for _, weight in drawn])[0]
                yield from plot()
                yield REST
            yield from self._end()
            yield REST

    # -- a Deployment --------------------------------------------------------------------------------

    def _begin(self, app: str = "", *, short: bool = False) -> Steps:
        self._number += 1
        self._is_short = short
        self._name = f"dep{self._number}"
        self._app = app or f"{self._name}-{self._tag}"
        self._replicas = self._dice.randint(1, 5)
        limit = self._dice.randint(0, 2) if short else WHOLE
        spec = {"replicas": self._replicas, "revisionHistoryLimit": limit, **self._drawn_strategy(changed=False)}
        noted = {"kubernetes.io/change-cause": "begun"} if self._dice.random() < 0.5 else {}
        paused = {"paused": True} if self._dice.random() < 0.15 else {}
        yield self._step("create_owner", app=self._app, spec=spec | paused, noted=noted)
        if paused:
            yield self._spec(paused=False)

    def _end(self) -> Steps:
        if not self._is_short and self._dice.random() < 0.4:
            yield self._spec(revisionHistoryLimit=self._dice.randint(0, 3))
            yield self._step("delete_owner", propagation="Background")
            return
        how = self._dice.choice(("Background", "Background", "Foreground", "Orphan"))
        yield self._step("delete_owner", propagation=how)
        if how == "Orphan":
            if self._dice.random() < 0.5:
                yield from self._begin(self._app)
                yield self._step("delete_owner", propagation="Background")
            else:
                yield Step("delete_replicasets", {"app": self._app})

    # -- plots -------------------------------------------------------------------------------------

    def _roll(self) -> Steps:
        for _ in range(self._dice.randint(1, 2)):
            yield self._another_template()
            yield REST

    def _scale(self) -> Steps:
        for _ in range(self._dice.randint(1, 2)):
            yield self._scaled(self._dice.randint(0, 7))
            yield REST

    def _strategy(self) -> Steps:
        yield self._spec(**self._drawn_strategy())
        yield self._another_template()

    def _undo(self) -> Steps:
        yield self._another_template()
        yield self._step("undo_rollout", back=self._dice.randint(0, 3))
        if self._dice.random() < 0.5:
            yield self._another_template()

    def _roll_back(self) -> Steps:
        """To the last revision, to one that may be there, and to none that ever was."""
        yield self._another_template()
        yield self._step("roll_back", revision=self._dice.choice((0, 0, 1, 2, 3, 99)))
        if self._dice.random() < 0.5:
            yield self._step("roll_back", revision=0)

    def _pause(self) -> Steps:
        """Nothing is rolled out meanwhile; sizes follow all the same."""
        yield self._spec(paused=True)
        if self._dice.random() < 0.8:
            yield self._another_template()
        match self._dice.choice(("scale", "template", "", *(() if self._is_short else ("roll back",)))):
            case "scale":
                yield self._scaled(self._dice.randint(0, 6))
            case "roll back":
                yield self._step("roll_back", revision=0)
            case "template":
                yield self._another_template()
        yield self._spec(paused=False)

    def _stuck(self) -> Steps:
        """Pods of a template that are never ready: scaled in the middle, each ReplicaSet gets its share."""
        if not self._rolls:
            yield self._spec(**self._drawn_strategy(rolls=True))
        yield self._another_template(broken=True)
        for _ in range(self._dice.randint(0, 3)):
            yield self._scaled(self._dice.randint(0, 12))
        if self._dice.random() < 0.3:
            yield self._another_template(broken=True)
        if self._dice.random() < 0.3:
            yield self._spec(**self._drawn_strategy(rolls=True))
        if self._dice.random() < 0.5 and not self._is_short:
            yield self._step("undo_rollout", back=1)
        yield self._another_template()

    def _deadline(self) -> Steps:
        """It passes, and a good template completes the rollout; or there is none."""
        yield self._spec(progressDeadlineSeconds=self._dice.choice((SOON_S, SOON_S, SOON_S, NEVER_S)))
        yield self._another_template(broken=True)
        if self._dice.random() < 0.3:
            yield self._spec(paused=True)
            yield self._spec(paused=False)
        if self._dice.random() < 0.3:
            yield self._spec(progressDeadlineSeconds=600)
        yield self._another_template()
        yield self._spec(progressDeadlineSeconds=600)

    def _slow(self) -> Steps:
        """New pods do not become available, until less is asked for."""
        yield self._spec(minReadySeconds=HOUR_S, progressDeadlineSeconds=2 * HOUR_S)
        yield self._another_template()
        if self._dice.random() < 0.5:
            yield self._scaled(self._dice.randint(1, 6))
        yield self._spec(minReadySeconds=self._dice.choice((0, 1)), progressDeadlineSeconds=600)

    def _history(self) -> Steps:
        yield self._another_template()
        yield self._spec(revisionHistoryLimit=self._dice.randint(0, 2))
        yield self._another_template()

    def _noted(self) -> Steps:
        """What is written on a Deployment is copied to its new ReplicaSet, and never taken away there."""
        cause = {"kubernetes.io/change-cause": f"cause {self._dice.randint(1, 9)}"}
        last = {"kubectl.kubernetes.io/last-applied-configuration": "{}"}
        yield self._step("annotate_owner", annotations={**cause, **last})
        yield self._another_template()
        yield self._step("annotate_owner", annotations={"kubernetes.io/change-cause": None})

    def _delete_pod(self) -> Steps:
        yield self._step("delete_pod", index=self._dice.randint(0, 5))

    def _flicker(self) -> Steps:
        """Pods stop being ready, and are ready again."""
        count = self._dice.randint(1, 3)
        yield self._marked([{NEVER_READY: "true"}] * count)
        yield self._marked([{NEVER_READY: None}] * count)

    def _old_unready(self) -> Steps:
        """Unhealthy pods of an old template go first, whatever the limits."""
        yield self._marked([{NEVER_READY: "true"}] * self._dice.randint(1, 4))
        yield self._another_template(broken=self._dice.random() < 0.5)
        yield self._another_template()

    def _released(self) -> Steps:
        """A ReplicaSet is let go by a label: its successor's name is taken. Then it comes back, or goes."""
        self._strange += 1
        away = f"{self._app}-away{self._strange}"
        yield self._step("relabel_replicaset", back=self._dice.choice((0, 0, 1)), labels={"app": away})
        if self._dice.random() < 0.6:
            yield Step("relabel_replicasets", {"app": away, "labels": {"app": self._app}})
        else:
            yield Step("delete_replicasets", {"app": away})

    def _by_hand(self) -> Steps:
        """Somebody scales a ReplicaSet."""
        yield self._step("scale_replicaset", back=self._dice.choice((0, 0, 1)), replicas=self._dice.randint(0, 6))

    def _deleted(self) -> Steps:
        """Somebody deletes a ReplicaSet."""
        yield self._step("delete_replicaset", back=self._dice.choice((0, 1, 2)))

    def _held(self) -> Steps:
        """A pod on its way out that a finalizer keeps. Not under Recreate, where upstream hears of it only once it has
        gone, though it need not wait for one that has ended.
        """
        if not self._rolls:
            yield self._spec(**self._drawn_strategy(rolls=True))
        yield self._step("hold_pod", index=self._dice.randint(0, 5))
        yield self._another_template()
        yield Step("let_pods_go")

    def _quota(self) -> Steps:
        """Fewer pods than asked for; nothing else happens in the namespace meanwhile."""
        room = self._dice.randint(0, 2)
        yield Step("set_quota", {"more": room})
        yield self._scaled(self._replicas + room + self._dice.randint(1, 3))
        yield self._scaled(0)
        yield Step("drop_quota")
        yield self._scaled(self._dice.randint(1, 4))

    def _overlap(self) -> Steps:
        """Two Deployments with one selector keep to their own."""
        about = {"kind": "Deployment", "name": f"{self._name}-too"}
        spec = {"replicas": self._dice.randint(1, 3)}
        yield Step("create_owner", {**about, "app": self._app, "spec": spec, "image": "busybox:1"})
        yield self._scaled(self._dice.randint(1, 4))
        yield Step("change_template", {**about, "image": "busybox:2"})
        yield Step("delete_owner", {**about, "propagation": "Background"})

    # -- parts -------------------------------------------------------------------------------------

    def _another_template(self, *, broken: bool = False) -> Step:
        """A new one, or sometimes one that there was."""
        if broken or self._is_short or self._dice.random() < 0.8 or self._image < 2:
            self._image += 1
            image = self._image
        else:
            image = self._dice.randint(1, self._image)
        if broken and self._dice.random() < 0.5:
            return self._step("change_template", image=f"nginx-{image}{NO_IMAGE}")
        annotations = {NEVER_READY: "true"} if broken else {}
        return self._step("change_template", image=f"nginx:{image}", annotations=annotations)

    def _drawn_strategy(self, *, rolls: bool = False, changed: bool = True) -> dict[str, object]:
        self._rolls = rolls or self._dice.random() < 0.75
        if not self._rolls:
            return {"strategy": {"type": "Recreate", **({"rollingUpdate": None} if changed else {})}}
        surge, unavailable = self._dice.choice(LIMITS)
        limits = {"maxSurge": surge, "maxUnavailable": unavailable}
        return {"strategy": {"type": "RollingUpdate", "rollingUpdate": limits}}

    def _scaled(self, replicas: int) -> Step:
        self._replicas = replicas
        return self._spec(replicas=replicas)

    def _spec(self, **spec: object) -> Step:
        return self._step("change_spec", spec=spec)

    def _marked(
        self, annotations: list[Mapping[str, str | None]] | list[dict[str, str]] | list[dict[str, None]]
    ) -> Step:
        return self._step("annotate_pods", annotations=annotations)

    def _step(self, what: str, **about: object) -> Step:
        return Step(what, {"kind": "Deployment", "name": self._name, **about})
