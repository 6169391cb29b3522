"""The history of a template driven by hand. Transcripts as in ``turn_script``, of the history alone.

A revision is named by the image of its template, ``v1~1`` with a collision count of 1; ``create v1#3``: number 3;
``p1=v1``: a pod that gets that label. Answers to a read of the owner: ``alive``, with ``/gen2`` or ``/count1``,
``deleting``, ``recreated``, ``junk``; of a revision: ``v1@20`` the template in it and its version, ``v1?`` the same of
another owner, ``v1!`` without a label. To writes: see ``turn_answers``.
"""

from __future__ import annotations

from collections.abc import Generator, Sequence
from typing import Any

import msgspec
import orjson

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Verdict
from oarlock.cluster.answer import Answer
from oarlock.controllers.daemonset.model import DaemonSet
from oarlock.controllers.history import bodies
from oarlock.controllers.history.digest import revision_data
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.model import Pod
from oarlock.controllers.ownership import claim as claims
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.turn.revisions import RESOURCE, Current, construct
from oarlock.workers.turn.steps import Grant, Read, Reserve, Send, Step, TurnFailed, Write
from oarlock.workers.turn.turn_outcome import TurnOutcome
from tests.controllers.builders import OTHER_UID, UID, WEB
from tests.controllers.history.history_builders import hash_for, template
from tests.workers.turn.turn_answers import written

CONTROLLER = CONTROLLERS["daemonset"]
OWNER_RV, CACHED_RV = "30", "7"
ANNOTATIONS = {"kubernetes.io/change-cause": "why"}
IMAGES, COUNTS = ("v1", "v2", "v3", "v4"), (None, 1, 2)
SHORT = {f"web-{hash_for(i, n)}": i if n is None else f"{i}~{n}" for i in IMAGES for n in COUNTS}


def claimed(owner: DaemonSet, needs: str = "") -> Claim:
    return Claim(
        "daemonset", owner.key, "nonce", Cached("5", owner.uid, codec.encode(owner)), [], None, needs, False, 0
    )


def history(
    owner: DaemonSet, revisions: Sequence[ControllerRevision], transcript: str, *pods: Pod, needs: str = ""
) -> None:
    """Run ``construct`` and hold it against the transcript."""
    cached = [Cached(CACHED_RV, each.uid, codec.encode(each)) for each in revisions]
    claim = claimed(owner, needs)._replace(others={RESOURCE: cached})
    outcome = TurnOutcome(claim)
    play(construct(owner, pods, CONTROLLER, claim, outcome), owner, revisions, outcome, transcript)


def play(
    running: Generator[Step, Any, Any],
    owner: DaemonSet,
    revisions: Sequence[ControllerRevision],
    outcome: TurnOutcome,
    transcript: str,
) -> None:
    lines = [line.strip() for line in transcript.strip().splitlines()]
    said: list[str] = []
    result: Any = None
    for line in lines:
        expected, _, answer = (part.strip() for part in line.partition("->"))
        try:
            step = running.send(result)
        except StopIteration as end:
            said.append(ending(end.value, outcome))
        except TurnFailed as failure:
            said.append(failed(failure))
        else:
            said.append(say(step, owner, {each.uid: each for each in revisions}))
        assert said[-1] == expected, "so far:\n" + "\n".join(said)
        if answer:
            result = answered(step, answer, owner)
    assert "->" not in lines[-1], "a transcript ends with the end"


def say(step: Step, owner: DaemonSet, known: dict[str, ControllerRevision]) -> str:
    match step:
        case Reserve():
            return f"reserve {step.wanted}"
        case Read():
            assert step.namespace == owner.namespace
            return " ".join([f"read {step.resource}", *(SHORT.get(name, name) for name in step.names)])
        case Send():
            prepaid = " prepaid" if step.prepaid else ""
            return f"send{prepaid} " + " ".join(say_write(write, owner, known) for write in step.writes)
    raise AssertionError(step)


def say_write(write: Write, owner: DaemonSet, known: dict[str, ControllerRevision]) -> str:
    """The verb, the object and the version it is meant for. Every byte of the body is looked at."""
    assert write.namespace == owner.namespace
    short = SHORT.get(write.name, write.name.removeprefix("web-"))
    if write.resource == "pods":
        body = orjson.loads(write.body)
        label = body["metadata"]["labels"][HASH_LABEL]
        assert write.body == bodies.relabel_pod_patch(f"uid-{write.name}", label)
        assert (write.verb, write.uid) == ("patch", f"uid-{write.name}")
        return f"{write.name}={SHORT.get(f'web-{label}', label)}"
    if write.verb == "status":
        count = orjson.loads(write.body)["status"]["collisionCount"]
        assert write.body == bodies.collision_patch(owner.uid, count, OWNER_RV)
        assert (write.resource, write.name) == ("daemonsets", owner.name)
        return f"collisions {count}"
    assert write.resource == RESOURCE
    if write.verb == "create":
        number = orjson.loads(write.body)["revision"]
        bare = write.name.removeprefix("web-")
        made = bodies.revision_body(owner, CONTROLLER.flavour, ANNOTATIONS, write.name, bare, number)
        assert write.body == made
        return f"create {short}#{number}"
    meant = known[write.uid]
    assert write.name == meant.name
    if write.verb == "delete":
        assert write.body == b""
        return f"delete {short}@{write.rv}"
    body = orjson.loads(write.body)
    rv = body["metadata"].get("resourceVersion", "")
    if write.body == claims.adopt_patch(owner, CONTROLLER.flavour, write.uid):
        return f"adopt {short}"
    if write.body == claims.release_patch(write.uid, [owner.uid]):
        return f"release {short}"
    if "revision" in body:
        assert write.body == bodies.renumber_patch(meant, rv, body["revision"])
        return f"number {short}@{rv} {body['revision']}"
    assert write.body == bodies.label_revision_patch(meant, rv)
    return f"label {short}@{rv}"


def answered(step: Step, text: str, owner: DaemonSet) -> Any:
    words = text.split()
    match step:
        case Reserve():
            return Grant(step.wanted, 0) if text == "all" else Grant(int(words[0]), int(words[2]))
        case Send():
            assert len(words) == len(step.writes)
            return [written(word) for word in words]
        case Read() if step.resource == "daemonsets":
            return [live_owner(text, owner)]
        case Read():
            return [live_revision(text, step.names[0])]
    raise AssertionError(step)


def live_owner(word: str, owner: DaemonSet) -> Answer:
    head, _, more = word.partition("/")
    meta: dict[str, Any] = {"namespace": "default", "name": "web", "uid": UID, "resourceVersion": OWNER_RV}
    meta |= {"generation": owner.generation, "annotations": ANNOTATIONS}
    status: dict[str, Any] = {}
    if owner.status.collision_count is not None:
        status["collisionCount"] = owner.status.collision_count
    match head:
        case "alive":
            if more.startswith("gen"):
                meta["generation"] = int(more[3:])
            elif more:
                status["collisionCount"] = int(more.removeprefix("count"))
        case "deleting":
            meta["deletionTimestamp"] = "2025-06-15T15:06:40Z"
        case "recreated":
            meta["uid"] = OTHER_UID
        case "junk":
            return Answer(200, b"<html>")
        case _:
            return written(word)
    spec = {"selector": {"matchLabels": WEB}, "template": orjson.loads(owner.template)}
    return Answer(200, orjson.dumps({"metadata": meta, "spec": spec, "status": status}))


def live_revision(word: str, name: str) -> Answer:
    image, _, rv = word.partition("@")
    if image.rstrip("?!") not in IMAGES:
        return Answer(200, b"<html>") if word == "junk" else written(word)
    uid = OTHER_UID if image.endswith("?") else UID
    meta = {"namespace": "default", "name": name, "uid": "found", "resourceVersion": rv}
    meta["labels"] = dict(WEB) if image.endswith("!") else WEB | {HASH_LABEL: name.removeprefix("web-")}
    meta["ownerReferences"] = [{"uid": uid, "kind": "DaemonSet", "name": "web", "controller": True}]
    data = msgspec.Raw(revision_data(template(image.rstrip("?!"))))
    return Answer(200, msgspec.json.encode({"metadata": meta, "data": data, "revision": 1}))


def shortened(text: str) -> str:
    for name, short in SHORT.items():
        text = text.replace(name, short)
    return text


def failed(failure: TurnFailed) -> str:
    finish = failure.finish
    assert finish.verdict is Verdict.RETRY
    wait = f" in {finish.delay_ms} ms" if finish.delay_ms else ""
    return with_changes(f"fails ({shortened(str(failure))}){wait}", finish.changes)


def ending(current: Current | None, outcome: TurnOutcome) -> str:
    if current is None:
        words = ["done"]
    else:
        named = f"the name of {SHORT[current.hash]}" if current.hash in SHORT else current.hash
        label = SHORT.get(f"web-{current.hash}", named)
        words = [f"current {label}"]
        for each in current.old:
            words.append(f"old {SHORT.get(each.name, each.name)}@{current.versions[each.uid]}")
        words += ["undecided"] * current.undecided
    words += [f"again in {outcome.again_ms} ms"] * (outcome.again_ms is not None)
    words += ["retry"] * outcome.retry + [f"error {shortened(outcome.error)}"] * bool(outcome.error)
    return with_changes(", ".join(words), outcome.changes)


def with_changes(text: str, changes: Sequence[Change]) -> str:
    assert all(each.op == "need" for each in changes), "revisions are not announced"
    needs: dict[str, list[str]] = {}
    for each in changes:
        needs.setdefault(each.name, []).append(each.value)
    words = [f"need {resource} {' '.join(rvs)}" for resource, rvs in needs.items()]
    return f"{text}: {'; '.join(words)}" if words else text
