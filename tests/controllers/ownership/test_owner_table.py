"""Who waits for the end of a pod: found by a label, so that many who wait for others cost nothing."""

from __future__ import annotations

import random
from typing import Any

import pytest

from oarlock.controllers.deployment.model import RECREATE, ROLLING_UPDATE
from oarlock.controllers.objects.model import label_selector
from oarlock.controllers.objects.selector import LabelSelector, Requirement
from oarlock.controllers.ownership.owner_table import OwnerTable
from tests.controllers.deployment.sizes_builders import dep, pod_of

EXISTS = (Requirement("app", "Exists"),)


def waiting(name: str, selector: LabelSelector, **fields: Any) -> Any:
    return dep(1, name=name, selector=selector, **({"strategy": RECREATE} | fields))


@pytest.mark.parametrize(
    ("selector", "found"),
    [
        pytest.param(label_selector({"app": "web"}), True, id="a label"),
        pytest.param(label_selector({"app": "web", "tier": "x"}), True, id="two"),
        pytest.param(label_selector({"app": "web", "tier": "y"}), False, id="one of two"),
        pytest.param(label_selector({}, EXISTS), True, id="no label, but an expression"),
        pytest.param(label_selector({"app": "api"}), False, id="another"),
        pytest.param(label_selector({}), False, id="an empty one: it adopts nothing"),
    ],
)
def test_waiting_for(selector: LabelSelector, found: bool) -> None:
    table = OwnerTable()
    table.note("deployment", waiting("web", selector))
    pod = pod_of("x", labels={"app": "web", "tier": "x"})
    assert table.waiting_for(pod) == ([("deployment", "default/web")] if found else [])
    table.note("deployment", waiting("web", selector, strategy=ROLLING_UPDATE))
    assert table.waiting_for(pod) == []


def test_changes_leave_nothing_behind() -> None:
    """Against the plain rule, over random changes; at the end all are forgotten."""
    rng, table, known, adopters = random.Random(1), OwnerTable(), dict[str, Any](), dict[str, Any]()
    for _ in range(2_000):
        name = f"d{rng.randrange(6)}"
        labels = {key: rng.choice("xy") for key in ("app", "tier") if rng.random() < 0.6}
        owner = waiting(name, label_selector(labels), strategy=rng.choice((RECREATE, ROLLING_UPDATE)))
        gone = rng.random() < 0.2
        table.note("deployment", owner, gone)
        known.pop(owner.key, None)
        adopters.pop(owner.key, None)
        if not gone and labels:
            adopters[owner.key] = owner.selector
        if not gone and labels and owner.waits_for_pods:
            known[owner.key] = owner.selector
        assert table.has("deployment", "default") == bool(adopters)
        pod = pod_of("x", labels={key: rng.choice("xy") for key in ("app", "tier", "more")})
        assert sorted(key for _, key in table.waiting_for(pod)) == sorted(
            key for key, selector in known.items() if selector.matches(pod.labels)
        )
        assert sorted(table.selecting("deployment", pod)) == sorted(
            key for key, selector in adopters.items() if selector.matches(pod.labels)
        )
    for number in range(6):
        table.forget("deployment", f"default/d{number}")
    for each in (table._waiting, table._adopters):
        assert (each._places, each._place_of) == ({}, {})


def test_an_orphan_is_held_against_few_of_many_owners(monkeypatch: pytest.MonkeyPatch) -> None:
    """A thousand Deployments in a namespace that share a label, as those of one application do."""
    table, looked = OwnerTable(), []
    for number in range(1_000):
        labels = {"a-part-of": "shop", "name": f"web-{number}"}
        table.note("deployment", dep(1, name=f"d{number}", selector=label_selector(labels)))
    plain = LabelSelector.matches
    monkeypatch.setattr(LabelSelector, "matches", lambda *given: looked.append(given) or plain(*given))
    orphan = pod_of("x", labels={"a-part-of": "shop", "name": "web-7", "more": "x"})
    assert table.selecting("deployment", orphan) == ["default/d7"]
    assert len(looked) <= 2
