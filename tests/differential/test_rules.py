"""What is played and waited for, by the versions of upstream's programs."""

from __future__ import annotations

from pathlib import Path

import pytest

from tests.differential.campaign import Plan, upstream_rules
from tests.differential.rules import Rules
from tests.realserver.versions import Version


@pytest.mark.parametrize(
    ("manager", "server", "surge", "taints_wake"),
    [
        ((1, 20, 2), (1, 20, 2), False, True),
        ((1, 21, 14), (1, 22, 0), False, True),
        ((1, 22, 0), (1, 21, 14), False, True),
        ((1, 22, 0), (1, 22, 0), True, True),
        ((1, 32, 9), (1, 33, 0), True, True),
        ((1, 33, 0), (1, 33, 0), True, False),
        ((1, 36, 2), (1, 36, 2), True, False),
    ],
)
def test_rules(manager: tuple[int, int, int], server: tuple[int, int, int], surge: bool, taints_wake: bool) -> None:
    rules = Rules(Version(*manager), Version(*server))
    assert (rules.surge, rules.taints_wake) == (surge, taints_wake)


def test_they_are_of_the_programs_that_are_given(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    for name, version in (("kube-controller-manager", "1.35.1"), ("kube-apiserver", "1.36.2+k3s1")):
        (tmp_path / name).write_text(f"#!/bin/sh\necho Kubernetes v{version}\n")
        (tmp_path / name).chmod(0o755)
    monkeypatch.setenv("OARLOCK_KUBERNETES_BIN", str(tmp_path))
    monkeypatch.delenv("KUBEBUILDER_ASSETS", raising=False)
    rules = upstream_rules()
    assert rules == Rules(Version(1, 35, 1), Version(1, 36, 2))
    plan = Plan(1, (0,), 200, 1, tmp_path)

    def surges(by: Rules) -> bool:
        steps = [step for number in range(10) for step in plan.steps_of(number, by)]
        return any("maxSurge" in str(step) for step in steps if step.about.get("kind") == "DaemonSet")

    assert surges(rules)
    assert not surges(Rules(Version(1, 20, 2), Version(1, 20, 2)))
