"""Whether a node is one that a pod template asks for: its nodeSelector and its required node affinity.

Upstream: `staging/src/k8s.io/component-helpers/scheduling/corev1/nodeaffinity/nodeaffinity.go`
(GetRequiredNodeAffinity); the DaemonSet controller goes by the answer alone and drops what was malformed.
"""

from collections.abc import Mapping

from oarlock.controllers.scheduling.model import NodeTerm, Placement
from oarlock.controllers.scheduling.node_term import Check, MalformedTerm, checks_of


class NodeFilter:
    """The nodeSelector and the terms of a placement, made ready once for many nodes."""

    __slots__ = ("_pairs", "_terms", "everything")

    def __init__(self, placement: Placement) -> None:
        self._pairs = tuple(placement.node_selector.items())
        self._terms = None if placement.terms is None else _well_formed(placement.terms)
        self.everything = not self._pairs and self._terms is None
        """Whether it matches every node there may be."""

    def matches(self, labels: Mapping[str, str], name: str) -> bool:
        """Every pair of the nodeSelector is among the labels, and one of the terms holds if there is an affinity."""
        for key, value in self._pairs:
            if labels.get(key) != value:
                return False
        if self._terms is None:
            return True
        for checks in self._terms:
            for check in checks:
                if not check(labels, name):
                    break
            else:
                return True
        return False


def _well_formed(terms: tuple[NodeTerm, ...]) -> tuple[tuple[Check, ...], ...]:
    """Without those that can match nothing: the empty ones, and the malformed, which do not spoil the others."""
    ready = []
    for term in terms:
        try:
            checks = checks_of(term)
        except MalformedTerm:
            continue
        if checks:
            ready.append(checks)
    return tuple(ready)
