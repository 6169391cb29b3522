"""Adoptions and releases: the first stage of acting. An error here ends the turn before anything is created or deleted.

Upstream: pkg/controller/controller_ref_manager.go.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

import msgspec

from cluster.answer import Answer
from controllers import claim as claims
from controllers import wire
from controllers.plan import Plan, Snapshot
from controllers.registry import RESOURCES, Controller
from workers.ledger import Ledger
from workers.steps import Read, Send, Step, Write


def claim_pods(
    snapshot: Snapshot, plan: Plan, controller: Controller, ledger: Ledger
) -> Generator[Step, Any, Snapshot]:
    """Carry out the plan's claims. Returns the snapshot with what was adopted; raises TurnFailed with every error."""
    owner, flavour = snapshot.owner, controller.flavour
    errors: list[str] = []
    writes = [
        Write("patch", "pods", pod.namespace, pod.name, claims.release_patch(pod.uid, [owner.uid]), pod.uid)
        for pod in plan.release
    ]
    if plan.adopt:
        gate = yield from _gate(snapshot, controller)
        if gate:
            errors += [claims.cannot_adopt("Pod", pod, gate) for pod in plan.adopt]
        else:
            writes += [
                Write("patch", "pods", pod.namespace, pod.name, claims.adopt_patch(owner, flavour, pod.uid), pod.uid)
                for pod in plan.adopt
            ]
    answers: list[Answer] = (yield Send(tuple(writes))) if writes else []
    adopted: set[str] = set()
    for at, (write, answer) in enumerate(zip(writes, answers, strict=True)):
        release = at < len(plan.release)
        done = claims.released(answer.code) if release else claims.adopted(answer.code)
        if done is claims.Done.YES:
            ledger.need("pods", answer.resource_version)
            if not release:
                adopted.add(write.uid)
        elif done is claims.Done.ERROR:
            errors.append(f"{'release' if release else 'adopt'} Pod {write.namespace}/{write.name}: {answer.message}")
            if answer.code == 429:
                ledger.throttled(answer)
    if errors:
        raise ledger.failure("; ".join(errors))
    return msgspec.structs.replace(snapshot, adopted=frozenset(adopted))


def _gate(snapshot: Snapshot, controller: Controller) -> Generator[Step, Any, str]:
    """Why the owner may not adopt, told by a live look at it; empty when it may."""
    owner = snapshot.owner
    answers: list[Answer] = yield Read(controller.resource, owner.namespace, (owner.name,))
    if not answers[0].ok:
        return answers[0].message
    try:
        _, live = RESOURCES[controller.resource].from_json(answers[0].body)
    except wire.WireError as error:
        return str(error)
    return claims.gate_error(owner, controller.flavour.kind, live.uid, live.deleting_ms)
