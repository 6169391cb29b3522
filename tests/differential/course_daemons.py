"""A course of events around DaemonSets and the nodes they run on."""

from __future__ import annotations

import random
from collections.abc import Callable, Iterator

from tests.differential.plot import REST, Rest
from tests.differential.reading import NEVER_READY
from tests.differential.step import Step

Steps = Iterator[Step | Rest]
KIND = "DaemonSet"
HOUR_S = 3600


class Daemons:
    """`steps` never ends. One DaemonSet at a time.

    `tag` makes the labels of a scenario its own: upstream 1.20 adopts revisions of other namespaces. `surge`: whether
    the server keeps maxSurge.
    """

    def __init__(self, dice: random.Random, tag: str, *, surge: bool) -> None:
        self._dice, self._tag, self._may_surge = dice, tag, surge
        self._number = self._image = self._strange = self._next_node = 0
        self._name = self._app = ""
        self._nodes: list[str] = []
        self._about: dict[str, object] = {}

    def steps(self) -> Steps:
        plots: list[tuple[Callable[[], Steps], int]] = [
            (self._roll, 5),
            (self._roll_and_back, 4),
            (self._stuck, 3),
            (self._on_delete, 3),
            (self._limits, 2),
            (self._delete_pod, 4),
            (self._fail_pod, 3),
            (self._add_node, 3),
            (self._remove_node, 2),
            (self._relabel_node, 4),
            (self._taint, 4),
            (self._cordon, 2),
            (self._release, 2),
            (self._min_ready, 2),
            (self._history, 2),
            (self._orphan_revision, 1),
            (self._held, 2),
            (self._succeed, 1),
            (self._quota, 1),
            (self._disowned, 2),
            (self._move, 3),
            (self._flicker, 2),
            (self._duplicate, 1),
        ]
        if self._may_surge:
            plots.append((self._surge, 4))
        for _ in range(self._dice.randint(2, 4)):
            yield self._node_made()
        while True:
            yield from self._begin()
            yield REST
            for _ in range(self._dice.randint(3, 6)):
                plot = self._dice.choices([each for each, _ in plots], [weight for _, weight in plots])[0]
                yield from plot()
                yield REST
            yield from self._end()
            yield REST

    # -- a set -------------------------------------------------------------------------------------

    def _begin(self, name: str = "") -> Steps:
        if not name:
            self._number += 1
            name = f"ds{self._number}"
            self._about = {}
            if self._dice.random() < 0.4:
                self._about["nodes"] = {"role": "a"}
            if self._dice.random() < 0.3:
                self._about["tolerate"] = ["maintenance"]
        self._name, self._app = name, f"{name}-{self._tag}"
        self._image += 1
        spec = {
            "minReadySeconds": self._dice.choice((0, 0, 1)),
            "revisionHistoryLimit": self._dice.choice((0, 1, 2, 10)),
            "updateStrategy": self._rolling(),
        }
        yield self._step("create_owner", app=self._app, spec=spec, image=f"agent:{self._image}", **self._about)

    def _end(self) -> Steps:
        how = self._dice.choice(("Background", "Background", "Foreground", "Orphan"))
        yield self._step("delete_owner", propagation=how)
        if how == "Orphan":
            self._image -= self._dice.randint(0, 1)  # the same template, or another
            yield from self._begin(self._name)
            yield self._step("delete_owner", propagation="Background")

    def _rolling(self) -> dict[str, object]:
        most = self._dice.choice((1, 1, 2, "50%", "100%"))
        return {"type": "RollingUpdate", "rollingUpdate": {"maxUnavailable": most}}

    # -- plots -------------------------------------------------------------------------------------

    def _roll(self) -> Steps:
        yield self._rolled()

    def _roll_and_back(self) -> Steps:
        yield self._rolled()
        yield REST
        yield self._step("undo", back=self._dice.randint(1, 2))

    def _surge(self) -> Steps:
        """On some nodes at a time the new pod comes beside the old one, which goes when the new one is available."""
        rolling = {"maxUnavailable": 0, "maxSurge": self._dice.choice((1, 2, "50%", "100%"))}
        yield self._step("change_spec", spec={"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})
        yield self._rolled()
        if self._dice.random() < 0.5:
            yield self._step("delete_pod", index=self._dice.randint(0, 5))
            yield self._rolled()
        rolling = {"maxUnavailable": self._dice.choice((1, 2, "50%")), "maxSurge": 0}
        yield self._step("change_spec", spec={"updateStrategy": {"type": "RollingUpdate", "rollingUpdate": rolling}})

    def _stuck(self) -> Steps:
        """The new pods do not become ready; then back, or on to better ones."""
        yield self._rolled({NEVER_READY: "true"})
        if self._dice.random() < 0.3:
            yield self._step("change_spec", spec={"updateStrategy": self._rolling()})
        if self._dice.random() < 0.5:
            yield self._step("undo", back=1)
        yield self._rolled()

    def _on_delete(self) -> Steps:
        yield self._step("change_spec", spec={"updateStrategy": {"type": "OnDelete", "rollingUpdate": None}})
        yield self._rolled()
        if self._dice.random() < 0.3:
            yield self._rolled()  # with pods of one revision only: of several old ones chance says which goes first
        else:
            for _ in range(self._dice.randint(0, 3)):
                yield self._step("delete_pod", index=self._dice.randint(0, 5))
        yield self._step("change_spec", spec={"updateStrategy": self._rolling()})

    def _limits(self) -> Steps:
        yield self._step("change_spec", spec={"updateStrategy": self._rolling()})

    def _delete_pod(self) -> Steps:
        yield self._step("delete_pod", index=self._dice.randint(0, 5))

    def _fail_pod(self) -> Steps:
        yield self._step("end_pod", index=self._dice.randint(0, 5), phase="Failed")

    def _add_node(self) -> Steps:
        yield self._node_made()

    def _remove_node(self) -> Steps:
        if len(self._nodes) > 1:
            yield Step("delete_node", {"name": self._nodes.pop(self._dice.randrange(len(self._nodes)))})

    def _relabel_node(self) -> Steps:
        yield Step(
            "relabel_node", {"name": self._dice.choice(self._nodes), "labels": {"role": self._dice.choice("ab")}}
        )

    def _taint(self) -> Steps:
        """A taint comes, something may happen, and it goes."""
        node, key = self._dice.choice(self._nodes), self._dice.choice(("maintenance", "other"))
        effect = self._dice.choice(("NoSchedule", "NoExecute", "PreferNoSchedule"))
        yield Step("taint_node", {"name": node, "key": key, "effect": effect})
        match self._dice.choice(("delete", "roll", "nothing")):
            case "delete":
                yield self._step("delete_pod", index=self._dice.randint(0, 5))
            case "roll":
                yield self._rolled()
        yield Step("taint_node", {"name": node, "key": key, "effect": ""})

    def _cordon(self) -> Steps:
        node = self._dice.choice(self._nodes)
        yield Step("cordon_node", {"name": node, "cordoned": True})
        yield self._step("delete_pod", index=self._dice.randint(0, 5))
        yield Step("cordon_node", {"name": node, "cordoned": False})

    def _release(self) -> Steps:
        """A pod is let go by a label and replaced; it comes back, and the younger of the two goes."""
        self._strange += 1
        away = f"{self._app}-away{self._strange}"
        yield self._step("relabel_pod", index=self._dice.randint(0, 5), labels={"app": away})
        if self._dice.random() < 0.5:
            yield Step("relabel_bare", {"app": away, "labels": {"app": self._app}, "wait_ms": 1_100})
        else:
            yield Step("delete_bare", {"app": away})

    def _min_ready(self) -> Steps:
        yield self._step("change_spec", spec={"minReadySeconds": self._dice.choice((0, 1, 2))})

    def _history(self) -> Steps:
        yield self._step("change_spec", spec={"revisionHistoryLimit": self._dice.choice((0, 1, 2, 10))})

    def _orphan_revision(self) -> Steps:
        yield self._step("orphan_revision", index=self._dice.randint(0, 3))

    def _held(self) -> Steps:
        """A pod that has ended and that a finalizer keeps."""
        yield self._step("hold_pod", index=self._dice.randint(0, 5))
        yield Step("let_pods_go")

    def _succeed(self) -> Steps:
        """A pod ends well, which a daemon does not do; whoever has left it there has it deleted."""
        yield self._step("end_pod", index=self._dice.randint(0, 5), phase="Succeeded")
        yield self._step("delete_ended")

    def _quota(self) -> Steps:
        """There is a node more, and no quota for its pod."""
        yield Step("set_quota", {"more": 0})
        yield self._node_made()
        yield self._step("drop_quota_and_touch")

    def _disowned(self) -> Steps:
        """A pod loses its owner by hand, and is adopted again."""
        yield self._step("disown_pod", index=self._dice.randint(0, 5))

    def _move(self) -> Steps:
        """The template asks for other nodes, or tolerates more or less."""
        if self._dice.random() < 0.7:
            self._about["nodes"] = {"role": self._dice.choice("ab")}
        else:
            self._about["tolerate"] = self._dice.choice((["maintenance"], ["other"], ["maintenance", "other"]))
        yield self._rolled()

    def _flicker(self) -> Steps:
        """Pods stop being ready, and are ready again."""
        count = self._dice.randint(1, 3)
        yield self._step("annotate_pods", annotations=[{NEVER_READY: "true"}] * count)
        yield self._step("annotate_pods", annotations=[{NEVER_READY: None}] * count)

    def _duplicate(self) -> Steps:
        """Somebody writes the newest revision a second time, under another name and a higher number."""
        self._strange += 1
        yield self._step("duplicate_revision", suffix=f"dup{self._strange}")

    # -- parts -------------------------------------------------------------------------------------

    def _rolled(self, annotations: dict[str, str] | None = None) -> Step:
        self._image += 1
        about = {**self._about, "image": f"agent:{self._image}"}
        if annotations:
            about["annotations"] = annotations
        return self._step("change_template", **about)

    def _node_made(self) -> Step:
        self._nodes.append(f"d{self._next_node}")
        self._next_node += 1
        labels = {"role": self._dice.choice("aab")}
        return Step("create_node", {"name": self._nodes[-1], "pool": "daemons", "labels": labels})

    def _step(self, what: str, **about: object) -> Step:
        return Step(what, {"kind": KIND, "name": self._name, **about})
