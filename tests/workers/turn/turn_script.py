"""Turns driven by hand. A transcript has a line a step, ``step -> answer``, and as its last line how the turn ends.

    reserve 1            -> all
    announce create 0    -> recorded
    send create 0        -> 201@20
    ok: drop create 0; need pods 20

Steps name pods by their slot (others by name) and resourceVersions after an @. Everything a step carries is looked at:
bodies, UIDs, whether tokens were reserved. The words of the answers are in ``turn_answers``.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import orjson

from oarlock.broker.expectations import Expectations
from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Change, Finish, Verdict
from oarlock.controllers.flavour import REPLICASET
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.model import Pod, ReplicaSet
from oarlock.controllers.ownership import claim as claims
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.turn.status import LateStatus, StatusWriter
from oarlock.workers.turn.steps import (
    Announce,
    ListLive,
    Look,
    Read,
    Reserve,
    Send,
    Step,
    TurnFailed,
    Write,
)
from oarlock.workers.turn.turn import TurnContext, View, turn
from oarlock.workers.turn.turn_outcome import REFUSED_MS, TurnOutcome
from tests.controllers.builders import NOW_MS, UID, WEB_SLOTS
from tests.workers.turn.turn_answers import answer_to

POD_RV, OWNER_RV, READ_RV = "7", "5", "10"
DRAIN_MS, CLAIMED_MS = 14_000, 1_000_000
CONTROLLER = CONTROLLERS["replicaset"]


def claimed(
    owner: ReplicaSet | None,
    pods: Sequence[Pod] = (),
    *record_lines: str,
    record_owner: str = UID,
    needs: str = "",
    unsettled: bool = False,
) -> Claim:
    """A claim of default/web. Lines of the record: see ``record_of``."""
    return Claim(
        "replicaset",
        "default/web",
        "nonce",
        None if owner is None else Cached(OWNER_RV, owner.uid, codec.encode(owner)),
        [Cached(POD_RV, pod.uid, codec.encode(pod)) for pod in pods],
        record_of(record_lines, record_owner),
        needs,
        unsettled,
        0,
        now_ms=CLAIMED_MS,
    )


def record_of(lines: Sequence[str], owner_uid: str) -> Expectations | None:
    """Lines: "create 0", "delete 1@7", "answered 1@7" (uid: that of the slot), "reserved 2", "blocked 3=uid",
    "passed 4", "said why". After a comma: how often it was sent, or "over": "create 0, 6, over". All was sent 3 s
    before the claim.
    """
    fields = ["owner", owner_uid] if lines else []
    for line in lines:
        verb, _, rest = line.partition(" ")
        if verb == "said":
            fields += ["said", rest]
            continue
        rest, *facts = rest.split(", ")
        time = "over" if "over" in facts else f"until_ms={CLAIMED_MS + DRAIN_MS}"
        tries = next((fact for fact in facts if fact.isdigit()), "1")
        pending = f"pending since_ms=1 sent_ms={CLAIMED_MS - 3_000} tries={tries}"
        slot, _, rv = rest.partition("@")
        slot, _, uid = slot.partition("=")
        name = WEB_SLOTS.name(int(slot))
        match verb:
            case "create":
                fields += [f"create pods/{name}", f"{pending} {time}"]
            case "delete":
                fields += [f"delete pods/{name}", f"{pending} uid=uid-{name} rv={rv} {time}"]
            case "answered":
                fields += [f"delete pods/{name}", f"answered uid=uid-{name} rv={rv}"]
            case "reserved":
                fields += [f"reserved pods/{name}", time]
            case "passed":
                fields += [f"passed pods/{name}", f"until_ms={CLAIMED_MS + 60_000}"]
            case "blocked":
                fields += [f"blocked pods/{name}", f"uid={uid}"]
            case _:
                raise AssertionError(line)
    return Expectations.parse(fields)


def plays(
    claim: Claim,
    transcript: str,
    *,
    answers: Sequence[Any] = (),
    now_ms: int = NOW_MS,
    view_age_ms: int = 0,
    reports_terminating: bool = False,
    late: LateStatus | None = None,
    waited_ms: int = 0,
) -> TurnOutcome:
    """Run the turn and hold it against the transcript. An answer ``$`` stands for the next one of ``answers``."""
    lines = [line.strip() for line in transcript.strip().splitlines()]
    owner: ReplicaSet | None = None if claim.owner is None else codec.decode_replicaset(claim.owner.blob)
    outcome, given = TurnOutcome(claim), iter(answers)
    status = StatusWriter(reports_terminating, lambda: now_ms, late or LateStatus())
    context = TurnContext(120_000, lambda: now_ms, status)
    view = View(READ_RV, view_age_ms, waited_ms=waited_ms)
    running = turn(claim._replace(children=[*claim.children]), view, CONTROLLER, context, outcome)
    said: list[str] = []
    result: Any = None
    for line in lines:
        expected, _, answer = (part.strip() for part in line.partition("->"))
        try:
            step = running.send(result)
        except StopIteration as end:
            said.append(ending(end.value))
        except TurnFailed as failure:
            said.append(f"fails ({failure}), {ending(failure.finish)}")
        else:
            said.append(say(step, owner))
        assert said[-1] == expected, "so far:\n" + "\n".join(said)
        if answer:
            result = next(given) if answer == "$" else answer_to(step, answer)
    assert "->" not in lines[-1], "a transcript ends with the end of the turn"
    return outcome


def say(step: Step, owner: ReplicaSet | None) -> str:
    """The left half of a line."""
    match step:
        case Reserve():
            return f"reserve {step.wanted}"
        case Announce():
            assert owner is not None
            assert step.owner_uid == owner.uid
            words = [_verbs(entry.verb, entry.target.partition("/")[2], entry.uid, entry.rv) for entry in step.entries]
            return "announce " + _join(words)
        case Send():
            return "send " + _join([_say_write(write, step.prepaid, owner) for write in step.writes])
        case Read():
            assert step.namespace == "default"
            return " ".join([f"read {step.resource}", *(slot(name) for name in step.names)])
        case ListLive():
            assert step.namespace == "default"
            return f"list {'selected ' if step.selector is not None else ''}{step.resource}"
        case Look():
            slots = [slot(each.removeprefix("default/")) for each in step.ids]
            return " ".join([f"look {step.resource}", *slots, *step.entries])


def ending(finish: Finish) -> str:
    """The last line: verdict, when again, changes of the record."""
    assert (finish.queue, finish.key, finish.nonce) == ("replicaset", "default/web", "nonce")
    text = {Verdict.OK: "ok", Verdict.RETRY: "retry", Verdict.GONE: "gone"}[finish.verdict]
    if finish.delay_ms is not None:
        text += f" in {finish.delay_ms} ms"
    return ": ".join([text, "; ".join(map(_say_change, finish.changes))]) if finish.changes else text


def slot(name: str) -> str:
    """A pod's name by its slot, where it has one of the first hundred."""
    index = WEB_SLOTS.index_of(name)
    return name if index is None or index >= 100 else str(index)


def _verbs(verb: str, name: str, uid: str, rv: str) -> tuple[str, str]:
    if verb == "create":
        assert (uid, rv) == ("", "")
        return verb, slot(name)
    assert uid == f"uid-{name}", "deletes say which pod they mean"
    return verb, f"{slot(name)}@{rv}"


def _join(words: Sequence[tuple[str, str]]) -> str:
    """("create", "0"), ("create", "1") -> create 0 1."""
    text: list[str] = []
    for at, (verb, what) in enumerate(words):
        text += [what] if at and words[at - 1][0] == verb else [verb, what]
    return " ".join(text)


def _say_write(write: Write, prepaid: bool, owner: ReplicaSet | None) -> tuple[str, str]:
    assert owner is not None
    assert write.namespace == owner.namespace
    assert prepaid == (write.verb in ("create", "delete")), "what is announced has its token, the rest waits for one"
    match write.verb:
        case "create":
            assert write.body == CONTROLLER.pod_bodies(owner).body(write.name)
            return _verbs("create", write.name, write.uid, write.rv)
        case "delete":
            return _verbs("delete", write.name, write.uid, write.rv)
        case "patch":
            adoption = claims.adopt_patch(owner, REPLICASET, write.uid)
            if write.body == adoption:
                return "adopt", slot(write.name)
            assert write.body == claims.release_patch(write.uid, [owner.uid])
            return "release", slot(write.name)
        case "status":
            assert write.name == owner.name
            return "status", _say_status(orjson.loads(write.body), owner)
    raise AssertionError(write)


_SHORT = {"replicas": "", "fullyLabeledReplicas": "full ", "readyReplicas": "ready ", "availableReplicas": "available "}


def _say_status(body: dict[str, Any], owner: ReplicaSet) -> str:
    """ "1, full 1, ready 1, FailedCreate: why" and the resourceVersion it was computed from."""
    assert body["metadata"]["uid"] == owner.uid
    status = body["status"]
    words = [f"{short}{status[name]}" for name, short in _SHORT.items() if status[name] is not None]
    if "terminatingReplicas" in status:
        words.append(f"terminating {status['terminatingReplicas']}")
    if status["observedGeneration"] != 1:
        words.append(f"observed {status['observedGeneration']}")
    if "conditions" in status:
        conditions = status["conditions"] or []
        words += [f"{each.get('reason', '')} ({each['message']})".lstrip() for each in conditions] or ["no conditions"]
    return ", ".join(words) + f" @{body['metadata']['resourceVersion']}"


def target_of(said: str) -> str:
    """The name in the last answer that a record keeps."""
    return said.split(": ", maxsplit=1)[0].rpartition("/")[2]


def _say_change(change: Change) -> str:
    verb, _, target = change.name.partition(" ")
    name = target.partition("/")[2]
    match change.op:
        case "need":
            return f"need {change.name} {change.value}"
        case "settled":
            return "settled"
        case "again":
            return f"again in {change.value} ms"
        case "drop":
            return f"drop {verb} {slot(name)}".rstrip()
        case "set" if change.name == "said":
            return f"said {change.value}".replace(target_of(change.value), slot(target_of(change.value)))
    facts = dict(word.split("=") for word in change.value.split() if "=" in word)
    if verb == "passed":
        over_ms = int(facts["until_ms"]) - CLAIMED_MS
        return f"passed {slot(name)}" if over_ms == REFUSED_MS else f"passed {slot(name)} for {over_ms} ms"
    if verb == "blocked":
        return f"blocked {slot(name)}={facts['uid']}"
    assert change.value.startswith("answered ")
    assert facts["uid"] == f"uid-{name}"
    return f"answered {slot(name)}@{facts['rv']}"
