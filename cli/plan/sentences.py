"""A plan in sentences, for people."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import groupby
from typing import Any

from oarlock.cli.plan.changes import shown
from oarlock.cli.tables import listed, span
from oarlock.workers.process.log_line import printable

Obj = dict[str, Any]
VALUE_CHARS_MAX = 60
_VERBS = {
    "create": "creates",
    "delete": "deletes",
    "adopt": "adopts",
    "release": "releases",
    "scale": "scales",
    "change": "changes",
}


def lines_of(plan: Obj) -> Iterator[str]:
    """All that is told of one object."""
    of = plan["object"]
    name = f"{of['kind']} {of['namespace']}/{of['name']}"
    yield {
        "create": f"{name} is created.",
        "change": f"{name} changes:",
        "none": f"{name} is as the file says.",
    }[plan["action"]]
    for each in plan["changes"]:
        yield f"  {printable(each['field'])}: {_value(each['before'])} -> {_value(each['after'])}"
    yield from _what_it_means(plan)
    for number, step in enumerate(plan["steps"], start=1):
        yield f"Step {number}:"
        yield from (f"  {line}" for line in _acts(step["acts"]))
        if after := _after(step):
            yield f"  then {after}: {_pods(step['pods'])}, {step['available']} available"
    yield from _sum(plan)
    yield from (f"Warning: {printable(each)}" for each in plan["warnings"])


def _value(value: Any) -> str:
    text = printable(shown(value))
    return text if len(text) <= VALUE_CHARS_MAX else f"{text[:VALUE_CHARS_MAX]}..."


def _what_it_means(plan: Obj) -> Iterator[str]:
    kind = plan["object"]["kind"]
    if plan["template_changes"]:
        if kind in ("Deployment", "DaemonSet"):
            yield "The template changes: that means a rollout."
        else:
            yield "The template changes: only pods that are created later have it; pods that exist keep theirs."
    elif plan["action"] == "change" and kind in ("Deployment", "DaemonSet"):
        yield "The template stays: no rollout."
    if not plan["steps"]:
        yield "Nothing else would happen." if plan["would_change"] else "Nothing would happen."
    elif plan["action"] == "none":
        yield "It is not at rest. This goes on without the file:"


def _acts(acts: Iterable[Obj]) -> Iterator[str]:
    """Alike acts in one line: pods by reason."""
    for (verb, kind, why), group in groupby(acts, key=lambda act: (act["verb"], act["kind"], act.get("why", ""))):
        alike = list(group)
        if verb == "scale":
            yield from (f"scales {kind} {each['name']} from {each['before']} to {each['after']}" for each in alike)
            continue
        if verb == "change":
            yield from (f"changes {kind} {each['name']}: {', '.join(each.get('fields', ()))}" for each in alike)
            continue
        names = [f"{each['name']} on {each['node']}" if each.get("node") else each["name"] for each in alike]
        count = f"{len(alike)} {kind}s" if len(alike) > 1 else kind
        size = f" of size {alike[0]['after']}" if len(alike) == 1 and "after" in alike[0] else ""
        told = listed(list(dict.fromkeys(names)))
        yield f"{_VERBS[verb]} {count} {told}{size}{f' ({printable(why)})' if why else ''}"


def _after(step: Obj) -> str:
    told = []
    if step["pods_get_ready"]:
        told.append(_counted(step["pods_get_ready"], "new pod gets ready", "new pods get ready"))
    if step["pods_go"]:
        told.append(_counted(step["pods_go"], "deleted pod goes", "deleted pods go"))
    return " and ".join(told)


def _sum(plan: Obj) -> Iterator[str]:
    ends, nodes = plan["ends"], plan["nodes"]
    if plan["steps"]:
        least = f", at least {plan['available_min']} available" if plan["available_before"] else ""
        waits = f"; minReadySeconds take {span(plan['waits_ms'])} of it" if plan["waits_ms"] >= 2_000 else ""
        yield f"At most {_pods(plan['pods_max'])} at once{least}{waits}."
        verb = "Ends with" if plan["rests"] else "After the last step"
        yield f"{verb} {_pods(ends['pods'])}, {ends['available']} available{_replicasets(ends)}."
    if nodes:
        yield _counted(nodes["fit"], "node is fit for a pod.", "nodes are fit for a pod.")
        yield from (f"  skipped, {printable(each['why'])}: {listed(each['nodes'])}" for each in nodes["skipped"])
    admission = plan["pod_admission"]
    if admission["asked"] and admission["admitted"]:
        yield "The API server would admit a pod of it, says its dry run."
    elif admission["asked"]:
        yield f"Warning: the API server would refuse its pods: {printable(admission['why'])}"
    elif plan["steps"] and plan["asked"] and admission["why"] != "no pod is created":
        yield f"Whether its pods would be admitted was not asked: {printable(admission['why'])}."


def _counted(count: int, one: str, many: str) -> str:
    return f"{count} {one if count == 1 else many}"


def _pods(count: int) -> str:
    return _counted(count, "pod", "pods")


def _replicasets(ends: Obj) -> str:
    sized = [each for each in ends.get("replicasets", ()) if each["replicas"]]
    named = [f"{each['name']} {each['replicas']}" for each in sized]
    return f" ({listed(named)})" if named else ""
