"""Which cases of upstream's suite are ours, and which of these simulated nodes cannot play. Pure.

A case is called by its text without tags such as [Conformance]: `ReplicaSet should adopt ...`.
"""

from __future__ import annotations

import re
from collections.abc import Iterable

SIG = "[sig-apps] "
LEAST = {"ReplicaSet": 4, "ReplicationController": 6, "Daemon set": 7, "Deployment": 10}
"""Kind, as the suite calls it -> how many cases it has in 1.20; later suites have more."""

_HTTP = "asks each pod over HTTP for its name; simulated nodes run no containers"
_PRIVATE = f"{_HTTP}; and wants a private registry, without which the suite itself leaves it out"
NOT_PLAYED = {
    "ReplicaSet should serve a basic image on each replica with a public image": _HTTP,
    "ReplicaSet should serve a basic image on each replica with a private image": _PRIVATE,
    "ReplicationController should serve a basic image on each replica with a public image": _HTTP,
    "ReplicationController should serve a basic image on each replica with a private image": _PRIVATE,
    "Deployment should not disrupt a cloud load-balancer's connectivity during rollout": (
        "asks pods over HTTP through the load balancer of a cloud"
    ),
}
"""Case -> why it is not run. Each has to be in the suite."""

_TAG = re.compile(r"\[[^\]]*\]")


def called(text: str) -> str:
    """What a case is called, from its full text."""
    return " ".join(_TAG.sub(" ", text).split())


def of_kinds(texts: Iterable[str], kinds: Iterable[str]) -> list[str]:
    """The full texts of the cases of these kinds, kind by kind and sorted: the suite's own order is drawn by lot."""
    texts = sorted(texts)
    return [text for kind in kinds for text in texts if text.startswith(f"{SIG}{kind} ")]


def absent(texts: Iterable[str], kinds: Iterable[str]) -> list[str]:
    """A line for each kind with fewer cases than it has to have, and for each case of NOT_PLAYED that is not there."""
    texts, kinds = list(texts), list(kinds)
    problems = []
    for kind in kinds:
        if (count := len(of_kinds(texts, [kind]))) < LEAST[kind]:
            problems.append(f"{kind}: {count} cases in the suite, not the {LEAST[kind]} or more it has to have")
    there = {called(text) for text in texts}
    problems += [
        f"{case}: listed as not played, and not in the suite"
        for case in NOT_PLAYED
        if case.startswith(tuple(f"{kind} " for kind in kinds)) and case not in there
    ]
    return problems
