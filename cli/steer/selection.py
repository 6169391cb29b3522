"""Keys by what they have in common: a namespace, a controller, labels, that they fail, that they are parked."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import wraps
from pathlib import Path
from typing import Any, NamedTuple

import click

from oarlock.broker.looks.inspect import raw_answers
from oarlock.cli.look.view import View, Views
from oarlock.cli.options.options import together
from oarlock.cli.steer.labels import labelled
from oarlock.controllers.registry import CONTROLLERS, WATCHED, entry_of, resource_of

PAGE = 500
"""Keys that one call reads, or queues."""

selector_options = together(
    click.option(
        "--selector", "-l", default="", metavar="SELECTOR", help="Objects with these labels, asked of the API server."
    ),
    click.option(
        "--kubeconfig",
        metavar="FILE",
        envvar="OARLOCK_KUBECONFIG",
        help="With -l: the cluster to ask. Default: that of the `oarlock up` that runs.",
    ),
)


class Picked(NamedTuple):
    """The keys that are picked of a queue in a shard."""

    view: View
    queue: str
    keys: list[str]


@dataclass(frozen=True, slots=True)
class Selection:
    """What is picked. Without ``failing`` and ``parked``: every object in the cache; with both, keys that are either.
    ``by_hand``: with ``parked``, also what people have parked.
    """

    namespace: str | None = None
    controller: str | None = None
    labels: str = ""
    failing: bool = False
    parked: bool = False
    by_hand: bool = False
    kubeconfig: str | None = None

    def __str__(self) -> str:
        """As the options say it, for the audit stream."""
        words = [f"-l {self.labels}"] * bool(self.labels) + [f"-n {self.namespace}"] * bool(self.namespace)
        words += [f"-c {self.controller}"] * bool(self.controller)
        return " ".join(words + ["--failing"] * self.failing + ["--parked"] * self.parked) or "--all"

    def pick(self, views: Views, state_dir: Path | None) -> list[Picked]:
        """The keys now, by shard and queue; each list is sorted. Raises InputProblem."""
        queues = [self.controller] if self.controller else list(CONTROLLERS)
        queues = [each for each in queues if not self.namespace or entry_of(each).resource in _namespaced()]
        with_labels: Mapping[str, set[str]] | None = None
        if self.labels:
            asked = [WATCHED[each] for each in dict.fromkeys(map(resource_of, queues))]
            with_labels = labelled(asked, self.labels, self.namespace, self.kubeconfig, state_dir)
        found = []
        for view in views:
            for queue in queues:
                keys = {key for key in self._keys(view, queue) if self._fits(key)}
                if with_labels is not None:
                    keys &= with_labels[resource_of(queue)]
                if keys:
                    found.append(Picked(view, queue, sorted(keys)))
        return found

    def _fits(self, key: str) -> bool:
        return not self.namespace or key.startswith(f"{self.namespace}/")

    def _keys(self, view: View, queue: str) -> Iterator[str]:
        k = view.inspector.keys
        if self.failing:
            yield from _walk(view, "HSCAN", k.failures(queue))
        if self.parked:
            yield from _walk(view, "ZSCAN", k.parked(queue))
        if self.by_hand:
            tasks = [pause.parked.partition(":") for pause in view.inspector.pauses()]
            yield from (key for of, _, key in tasks if of == queue)
        if not (self.failing or self.parked or self.by_hand):
            yield from (key for key, _ in view.inspector.objects(resource_of(queue)))


def selecting(command: Callable[..., Any]) -> Any:
    """-l and --kubeconfig, of which the command is given the values as ``labels`` and ``kubeconfig``."""

    @wraps(command)
    def with_selector(selector: str, **given: Any) -> Any:
        return command(labels=selector, **given)

    return selector_options(with_selector)


def _namespaced() -> set[str]:
    return {each.resource for each in WATCHED.values() if each.namespaced}


def _walk(view: View, command: str, name: str) -> Iterator[str]:
    """The names in a hash or a sorted set, a page at a time; one that changes meanwhile may come twice."""
    cursor = b"0"
    while True:
        ((cursor, page),) = raw_answers(view.client, [(command, name, cursor, "COUNT", PAGE)])
        yield from (each.decode(errors="replace") for each in page[::2])
        if int(cursor) == 0:
            return
