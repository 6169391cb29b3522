"""The words for answers in the transcripts of ``turn_script``.

reserve:   all, 3, or "3 wait 250"
announce:  recorded, or what bears a name: 0=ours 1=orphan 2=foreign
send:      201@20 200@20 exists exists? conflict 404 403 quota 422 terminating 429 429/7 500 lost late unsent
read:      of pods ours@20 orphan@20 foreign@20 another@20 404 500 lost junk, of owners alive deleting recreated
list:      resourceVersion and pods by letter (see tests.decide.builders), "50 RRn"
look:      none, or pods as for read
"""

from __future__ import annotations

from typing import Any

import orjson

from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import NameTaken
from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, PAST_DEADLINE, Answer
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.model import Pod
from oarlock.workers.turn.steps import Announce, Grant, Listed, ListLive, Look, Read, Reserve, Send, Step
from tests.controllers.builders import OTHER_UID, OURS, THEIRS, UID, WEB_SLOTS, pod, pods

LIST_POD_RV = "40"


def answer_to(step: Step, text: str) -> Any:
    """What the engine would send into the turn."""
    words = text.split()
    match step:
        case Reserve():
            if text == "all":
                return Grant(step.wanted, 0)
            return Grant(int(words[0]), int(words[2]) if len(words) > 1 else 0)
        case Announce():
            return [] if text == "recorded" else [_borne(word) for word in words]
        case Send():
            assert len(words) == len(step.writes), f"{len(step.writes)} writes, {len(words)} answers"
            return [written(word) for word in words]
        case Read() if step.resource == "replicasets":
            return [_owner(text, step.names[0])]
        case Read():
            assert len(words) == len(step.names), f"{len(step.names)} names, {len(words)} answers"
            return [_read(word, name) for word, name in zip(words, step.names, strict=True)]
        case ListLive():
            return Listed(words[0], [_json(each, LIST_POD_RV) for each in pods("".join(words[1:]))])
        case Look():
            names = [each.partition("/")[2] for each in step.ids]
            found = zip(words, names, strict=True) if text != "none" else ()
            return [_cached(word, name) for word, name in found if word != "none"]


def written(word: str) -> Answer:
    """An answer to a write."""
    code, _, rest = word.replace("/", "@").partition("@")
    match code:
        case "200" | "201":
            return Answer(int(code), orjson.dumps({"metadata": {"uid": "new", "resourceVersion": rest}}))
        case "exists":
            return refused(409, "AlreadyExists")
        case "exists?":  # a generateName beside it: 1.20 and older
            return refused(500, "ServerTimeout", details={"name": "POST", "kind": "Pod"})
        case "conflict":
            return refused(409, "Conflict")
        case "quota":
            return refused(403, "Forbidden", "exceeded quota: pods=2")
        case "terminating":
            return refused(403, "Forbidden", details={"causes": [{"reason": "NamespaceTerminating"}]})
        case "429":
            return Answer(429, b"too many requests", retry_after_s=float(rest) if rest else None)
        case "500":
            return Answer(500)
        case "lost":
            return Answer(NO_ANSWER, error="no answer within 4 s")
        case "late":
            return PAST_DEADLINE
        case "unsent":
            return Answer(NOT_SENT, error="cannot connect")
    return refused(int(code), {"403": "Forbidden", "404": "NotFound", "422": "Invalid"}[code])


def refused(code: int, reason: str, message: str = "", **fields: Any) -> Answer:
    status = {"kind": "Status", "status": "Failure", "code": code, "reason": reason, "message": message or reason}
    return Answer(code, orjson.dumps(status | fields))


def _bearer(word: str, name: str) -> Pod:
    match word:
        case "ours":
            return pod(name, owner_refs=(OURS,))
        case "another":
            return pod(name, owner_refs=(OURS,), uid="another")
        case "orphan":
            return pod(name, owner_refs=(), labels={"app": "else"})
        case "foreign":
            return pod(name, owner_refs=(THEIRS,), uid="stranger")
    raise AssertionError(word)


def _borne(word: str) -> NameTaken:
    index, _, whose = word.partition("=")
    name = WEB_SLOTS.name(int(index))
    return NameTaken(f"pods/{name}", _cached(whose, name))


def _cached(word: str, name: str) -> Cached:
    bearer = _bearer(word, name)
    return Cached("9", bearer.uid, codec.encode(bearer))


def _read(word: str, name: str) -> Answer:
    whose, _, rv = word.partition("@")
    if rv:
        return Answer(200, _json(_bearer(whose, name), rv))
    return Answer(200, b"<html>") if word == "junk" else written(word)


def _owner(word: str, name: str) -> Answer:
    meta = {"namespace": "default", "name": name, "uid": UID, "resourceVersion": "30"}
    match word:
        case "alive":
            pass
        case "deleting":
            meta["deletionTimestamp"] = "2025-06-15T15:06:40Z"
        case "recreated":
            meta["uid"] = OTHER_UID
        case "junk":
            return Answer(200, b"<html>")
        case _:
            return written(word)
    return Answer(200, orjson.dumps({"metadata": meta, "spec": {"template": {}}}))


def _json(each: Pod, rv: str) -> bytes:
    refs = [
        {"apiVersion": r.api_version, "kind": r.kind, "name": r.name, "uid": r.uid, "controller": r.controller}
        for r in each.owner_refs
    ]
    meta: dict[str, Any] = {"namespace": each.namespace, "name": each.name, "uid": each.uid, "resourceVersion": rv}
    meta |= {"labels": each.labels, "ownerReferences": refs}
    if each.deleting_ms:
        meta["deletionTimestamp"] = "2025-06-15T15:06:40Z"
    conditions = [{"type": "Ready", "status": "True", "lastTransitionTime": "2025-06-15T14:06:40Z"}]
    status = {"phase": each.phase, "conditions": conditions if each.ready else []}
    return orjson.dumps({"metadata": meta, "spec": {"nodeName": each.node_name}, "status": status})
