"""The whole observable state of an epoch as plain values, in the same shape from Redis and from the twin.

Empty parts are left out. Reading Redis fails on any key that is not in ``keys.TABLE`` or is of another type.
"""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Mapping
from functools import lru_cache
from typing import Any

import redis

from oarlock.broker import keys
from oarlock.broker.memory.budget import BudgetState
from oarlock.broker.memory.memory_broker import MemoryStore
from oarlock.broker.memory.state import is_open
from oarlock.broker.values.events import class_name

State = dict[str, Any]
Counts = dict[str, dict[str, int]]
"""Entry -> class -> how many objects."""

_DUMP = """
local found = {}
for _, name in ipairs(redis.call('KEYS', ARGV[1] .. '*')) do
  local type = redis.call('TYPE', name).ok
  local value
  if type == 'string' then value = redis.call('GET', name)
  elseif type == 'hash' then value = redis.call('HGETALL', name)
  elseif type == 'set' then value = redis.call('SMEMBERS', name)
  elseif type == 'zset' then value = redis.call('ZRANGE', name, 0, -1, 'WITHSCORES')
  elseif type == 'list' then value = redis.call('LRANGE', name, 0, -1)
  else
    value = {}
    for _, entry in ipairs(redis.call('XRANGE', name, '-', '+')) do value[#value + 1] = entry[2][2] end
    for _, group in ipairs(redis.call('XINFO', 'GROUPS', name)) do
      if group[6] ~= 0 then value[#value + 1] = 'pending!' end
    end
  end
  found[#found + 1] = {name, type, value, redis.call('PTTL', name)}
end
return found
"""


def _regex(pattern: str) -> re.Pattern[str]:
    parts = re.split(r"<(\w+)>", pattern)
    shapes = {"queue": "[^:]+", "resource": "[^:]+", "generation": "[^:]+", "namespace": ".*"}
    text = "".join(re.escape(part) if i % 2 == 0 else f"({shapes.get(part, '.+')})" for i, part in enumerate(parts))
    return re.compile(text + r"\Z")


_TABLE = [(_regex(spec.pattern), spec) for spec in keys.TABLE]


def _pairs(flat: list[bytes]) -> dict[str, str]:
    return {flat[i].decode(): flat[i + 1].decode("latin-1") for i in range(0, len(flat), 2)}


def _times(flat: list[bytes]) -> dict[str, int]:
    return {name: int(float(at)) for name, at in _pairs(flat).items()}


def of_redis(client: redis.Redis, epoch: int) -> State:
    """``client`` needs all rights."""
    state: State = {}
    base = keys.base(epoch)
    for name, kind, value, ttl in client.eval(_DUMP, 0, base):
        short = name.decode()[len(base) :]
        spec, words = next(
            ((spec, match.groups()) for regex, spec in _TABLE if (match := regex.match(short))), (None, ())
        )
        assert spec is not None, f"{short} is not in the table"
        assert spec.type == kind.decode(), f"{short} is a {kind.decode()}"
        assert (ttl >= 0) == (spec.pattern == "<queue>:expect:<key>"), f"{short} lives {ttl} ms"
        _put(state, spec.pattern, words, value, ttl)
    return _clean(state)


def _put(state: State, pattern: str, words: tuple[str, ...], value: Any, ttl: int) -> None:
    match pattern:
        case "<queue>:stream":
            state.setdefault("stream", {})[words[0]] = [key.decode() for key in value]
        case "<queue>:rounds":
            state.setdefault("rounds", {})[words[0]] = {name: float(at) for name, at in _pairs(value).items()}
        case "<queue>:delayed" | "<queue>:parked" | "<queue>:backlog":
            state.setdefault(pattern.split(":")[1], {})[words[0]] = _times(value)
        case "<queue>:failures" | "<queue>:crashes" | "<queue>:unsettled":
            state.setdefault(pattern.split(":")[1], {})[words[0]] = {k: int(v) for k, v in _pairs(value).items()}
        case "<queue>:passed":
            state.setdefault("passed", {})[words[0]] = int(value)
        case "<queue>:state":
            texts = {key: text.partition(" ") for key, text in _pairs(value).items()}
            state.setdefault("state", {})[words[0]] = {key: text[0] for key, text in texts.items()}
            state.setdefault("why", {})[words[0]] = {key: text[2] for key, text in texts.items() if text[2]}
        case "<queue>:turns" | "<queue>:history" | "<queue>:locks":
            state.setdefault(pattern.split(":")[1], {})[words[0]] = _pairs(value)
        case "<queue>:bucket" | "<queue>:rate" | "<queue>:needs":
            state.setdefault(pattern.split(":")[1], {})[words[0]] = _pairs(value)
        case "<queue>:expect:<key>":
            state.setdefault("records", {}).setdefault(words[0], {})[words[1]] = _pairs(value)
            state.setdefault("record_ttl", {}).setdefault(words[0], {})[words[1]] = ttl
        case "leases" | "waiters" | "seen" | "histories" | "drains":
            state[pattern] = _times(value)
        case "holder:<holder>":
            state.setdefault("held", {})[words[0]] = sorted(task.decode() for task in value)
        case "timer":
            state[pattern] = len(value)
        case "<queue>:wake":
            state.setdefault("wake", {})[words[0]] = len(value)
        case "<queue>:held":
            state.setdefault("held_back", {})[words[0]] = sorted(each.decode() for each in value)
        case "strides":
            state[pattern] = {name: float(at) for name, at in _pairs(value).items()}
        case "limited:<namespace>":
            state.setdefault("lines", {})[words[0]] = _times(value)
        case "resuming":
            state[pattern] = sorted(_pairs(value))
        case "audit":
            state[pattern] = [each.decode() for each in value]
        case "queues" | "abandoned":
            state[pattern] = sorted(each.decode() for each in value)
        case (
            "holders"
            | "watermark"
            | "watermark_at"
            | "generation"
            | "capping"
            | "pauses"
            | "limits"
            | "ingestors"
            | "budget"
            | "shares"
        ):
            state[pattern] = _pairs(value)
        case "cache:<resource>:<generation>":
            state.setdefault("objects", {})["/".join(words)] = _pairs(value)
        case "index:<resource>:<generation>:<entry>":
            state.setdefault("index", {})["/".join(words)] = sorted(_pairs(value))
        case "summary:<resource>:<generation>:<entry>":
            state.setdefault("summary", {})["/".join(words)] = _pairs(value)
        case "apart:<resource>:<generation>":
            state.setdefault("apart", {})["/".join(words)] = _pairs(value)
        case "changes:<resource>:<generation>":
            state.setdefault("changes", {})["/".join(words)] = _times(value)
        case "changes_at:<resource>:<generation>":
            state.setdefault("changes_at", {})["/".join(words)] = {k: int(v) for k, v in _pairs(value).items()}
        case "staging:<resource>":
            state.setdefault("staging", {})[words[0]] = value.decode()
        case "unread:<resource>":
            state.setdefault("unread", {})[words[0]] = list(_pairs(value))
        case "republish":
            state["republish"] = [" ".join(job.decode().split()[:3]) for job in value]
        case "phase" | "hold" | "lone" | "tick" | "no_reclaim_until" | "history_bytes" | "pauses_kept":
            state[pattern] = value.decode()
        case "run" | "fleet" | "audit_told":
            pass
        case _:
            raise AssertionError(pattern)


def of_memory(store: MemoryStore) -> State:
    """The twin's, in the words Redis would use."""
    s, now = store.state, store.clock()
    state: State = {
        "phase": s.phase,
        "hold": s.pause_reason,
        "queues": sorted(s.registered),
        "leases": dict(s.leases),
        "waiters": dict(s.waiters),
        "seen": dict(s.seen),
        "capping": {name: str(at) for name, at in s.capping.items()},
        "holders": {
            holder: f"supervisor={supervisor} since_ms={at} queues=,{','.join(s.serves[holder])},"
            + " drain" * (holder in s.leaving)
            for holder, (supervisor, at) in s.holders.items()
        },
        "drains": dict(s.drains),
        "held": {holder: sorted(tasks) for holder, tasks in s.tasks_of.items()},
        "wake": {name: queue.wake_tokens for name, queue in s.queues.items() if queue.wake_tokens},
        "timer": s.timer_tokens,
        "watermark": dict(s.watermark),
        "watermark_at": {resource: str(at) for resource, at in s.watermark_at.items()},
        "generation": dict(s.generation),
        "objects": {
            f"{resource}/{gen}": {
                object_id: f"{o.head}\n{o.entries}\n{o.wakes}\n" + o.blob.decode("latin-1")
                for object_id, o in objects.items()
            }
            for (resource, gen), objects in s.objects.items()
        },
        "index": {f"{resource}/{gen}/{entry}": sorted(ids) for (resource, gen, entry), ids in s.index.items()},
        "summary": {
            "/".join(of): {class_name(kind): f"{count} {kind.decode('latin-1')}" for kind, count in kinds.items()}
            for of, kinds in s.summary.items()
        },
        "apart": {
            "/".join(of): {name: f"{part.count} {part.content.decode('latin-1')}" for name, part in parts.items()}
            for of, parts in s.apart.items()
        },
        "changes": {"/".join(of): dict(log.changed) for of, log in s.changes.items()},
        "changes_at": {
            "/".join(of): {"seq": log.seq} | ({"floor": log.floor} if log.floor else {})
            for of, log in s.changes.items()
        },
        "staging": {resource: f"generation={gen} until_ms={until}" for resource, (gen, until) in s.staging.items()},
        "unread": {
            resource: [f"{length:02}{rv} {task}" for length, rv, task in sorted(waiting)]
            for resource, waiting in s.unread.items()
        },
        "abandoned": sorted(s.abandoned),
        "pauses": dict(s.pauses),
        "pauses_kept": s.pauses_kept,
        "limits": {namespace: f"{pace[0]:.3f} {pace[1]:.3f}" for namespace, pace in s.limits.items()},
        "strides": dict(s.strides),
        "lines": {namespace: dict(line) for namespace, line in s.lines.items()},
        "resuming": sorted(s.resuming),
        "ingestors": {name: f"at_ms={at} {text}" for name, (at, text) in s.ingestors.items()},
        "shares": {holder: loan.text for holder, loan in s.budget.loans.items()},
        "budget": {} if s.budget.rate is None else _budget(s.budget),
        "audit": list(s.audit),
        "republish": [f"{job.mode} {job.resource} {job.generation}" for job in s.republish],
    }
    if s.tick is not None:
        state["tick"] = str(s.tick)
    if s.lone is not None:
        state["lone"] = " ".join(map(str, s.lone))
    if s.histories:
        state["histories"], state["history_bytes"] = dict(s.histories), str(s.history_bytes)
    if s.no_reclaim_until:
        state["no_reclaim_until"] = str(s.no_reclaim_until)
    for name, q in s.queues.items():
        own = {
            "stream": list(q.stream),
            "backlog": dict(q.backlog),
            "rounds": dict(q.rounds),
            "passed": q.passed or {},
            "state": dict(q.state),
            "delayed": dict(q.delayed),
            "parked": dict(q.parked),
            "held_back": sorted(q.held),
            "locks": {key: lock.text for key, lock in q.locks.items()},
            "failures": dict(q.failures),
            "crashes": dict(q.crashes),
            "unsettled": dict(q.unsettled),
            "why": dict(q.why),
            "turns": dict(q.turns),
            "history": dict(q.history),
            "needs": {
                key: " ".join(f"{resource}={rv}" for resource, rv in sorted(needs.items()))
                for key, needs in q.min_rv.items()
            },
            "bucket": {} if q.bucket is None else {"tokens": f"{q.bucket[0]:.2f}", "at_ms": str(q.bucket[1])},
            "rate": {} if q.rate is None else {"tokens": f"{q.rate[0]:.4f}", "at_ms": str(q.rate[1])},
            "records": {key: dict(record.fields) for key in list(q.expectations) if (record := q.expected(key, now))},
            "record_ttl": {key: record.ends_ms - now for key, record in q.expectations.items()},
        }
        for part, value in own.items():
            state.setdefault(part, {})[name] = value
    return _clean(state)


def _budget(budget: BudgetState) -> dict[str, str]:
    assert budget.limits is not None
    numbers = {
        "rate": budget.rate,
        "raised_ms": budget.raised_ms,
        "cut_ms": budget.cut_ms,
        "wait_until_ms": budget.wait_until_ms,
        "most": budget.limits.most,
        "flights": budget.limits.flights,
    }
    return {name: str(number) for name, number in numbers.items()} | ({"why": budget.why} if budget.why else {})


def _clean(state: State) -> State:
    cleaned = {}
    for name, value in state.items():
        kept = {k: v for k, v in value.items() if v or v == 0} if isinstance(value, dict) else value
        if kept or kept == 0:
            cleaned[name] = kept
    cleaned.setdefault("timer", 0)
    return cleaned


def counted(lines: Iterable[str]) -> Counts:
    """Entry -> class -> how many of these lines of index entries begin with that entry and end with that class."""
    counts: Counts = {}
    for line in lines:
        if found := _counted_as(line):
            entry, name = found
            classes = counts.setdefault(entry, {})
            classes[name] = classes.get(name, 0) + 1
    return counts


@lru_cache(4_096)
def _counted_as(line: str) -> tuple[str, str] | None:
    match = re.fullmatch(r"(\S+) (?:.* )?#(\S+)", line)
    return (match[1], match[2]) if match else None


def counts_of(texts: Mapping[str, str]) -> dict[str, int]:
    """Class -> how many, from what is stored. Each text is that of its class."""
    assert all(class_name(text.partition(" ")[2].encode("latin-1")) == name for name, text in texts.items()), texts
    return {name: int(text.partition(" ")[0]) for name, text in texts.items()}


def queued(state: State, queue: str) -> list[str]:
    """The queued keys in their order: the front, and those that wait behind it."""
    backlog: dict[str, int] = state.get("backlog", {}).get(queue, {})
    return [*state.get("stream", {}).get(queue, []), *sorted(backlog, key=lambda key: (backlog[key], key))]


def problems(state: State, *, whole_leases: bool = True) -> list[str]:
    """What must hold after every step, whatever happened; [] when it does."""
    found = []
    queues = set(state.get("state", {})) | set(state.get("stream", {}))
    for queue in sorted(queues):
        front, backlog = state.get("stream", {}).get(queue, []), state.get("backlog", {}).get(queue, {})
        stream, states = [*front, *backlog], state.get("state", {}).get(queue, {})
        locks, parked = state.get("locks", {}).get(queue, {}), state.get("parked", {}).get(queue, {})
        delayed = state.get("delayed", {}).get(queue, {})
        of = {
            name: {key for key, s in states.items() if s == name}
            for name in ("queued", "running", "running+", "parked", "held")
        }
        if len(stream) != len(set(stream)):
            found.append(f"{queue}: two entries of a key in {stream}")
        if set(stream) != of["queued"]:
            found.append(f"{queue}: stream {sorted(stream)} but queued {sorted(of['queued'])}")
        running = of["running"] | of["running+"]
        if set(locks) != running:
            found.append(f"{queue}: locks {sorted(locks)} but running {sorted(running)}")
        if set(state.get("held_back", {}).get(queue, ())) != of["held"]:
            found.append(f"{queue}: held back {state.get('held_back', {}).get(queue)} but state {sorted(of['held'])}")
        line = {key: at for places in state.get("lines", {}).values() for key, at in places.items()}
        if ahead := sorted(key for key in of["queued"] if line.get(f"{queue}:{key}", 0) > 0):
            found.append(f"{queue}: {ahead} are queued and wait in line")
        if left := {task for task in line if task.startswith(f"{queue}:")} - {
            f"{queue}:{key}" for key in of["queued"] | of["held"]
        }:
            found.append(f"{queue}: in line are {sorted(left)}, which need no turn")
        if of["held"] and not state.get("pauses") and queue not in state.get("resuming", ()):
            found.append(f"{queue}: nothing brings back {sorted(of['held'])}")
        if set(parked) != of["parked"]:
            found.append(f"{queue}: parked {sorted(parked)} but state {sorted(of['parked'])}")
        if set(states) != set().union(*of.values()):
            found.append(f"{queue}: unknown state in {states}")
        if forgotten := set(state.get("why", {}).get(queue, {})) - set(states):
            found.append(f"{queue}: why {sorted(forgotten)} are queued is said, but they are not")
        if said := set(states) - running - set(state.get("why", {}).get(queue, {})):
            found.append(f"{queue}: nothing says why {sorted(said)} are queued")
        for key, lock in locks.items():
            task, holder = f"{queue}:{key}", lock.split()[0].removeprefix("holder=")
            if whole_leases and task not in state.get("leases", {}):
                found.append(f"{task} is locked without a lease")
            if [h for h, tasks in state.get("held", {}).items() if task in tasks] != [holder]:
                found.append(f"{task} is not in exactly its holder's set")
        for key, fields in state.get("records", {}).get(queue, {}).items():
            if any(is_open(*field) for field in fields.items()) and key not in states and key not in delayed:
                found.append(f"{queue}:{key} has a write open and is forgotten")
    swept = {"/".join(job.split()[1:3]) for job in state.get("republish", ()) if job.startswith("sweep ")}
    summaries: dict[str, dict[str, Any]] = {place: {} for place in state.get("objects", {})}
    for name, classes in state.get("summary", {}).items():
        resource, generation, entry = name.split("/", 2)
        summaries.setdefault(f"{resource}/{generation}", {})[entry] = counts_of(classes)
    for place in summaries.keys() - swept:
        kept, objects = summaries[place], state.get("objects", {}).get(place, {})
        words = [value.split("\n")[1] for value in objects.values()]
        if kept != counted(words):
            found.append(f"{kept} is counted, but the objects are of {words}")
    for name, log in state.get("changes", {}).items():
        at = state.get("changes_at", {}).get(name, {})
        if not all(at.get("floor", 0) < number <= at.get("seq", 0) for number in log.values()):
            found.append(f"changes of {name} {log} are not between floor and last of {at}")
    locked = {f"{queue}:{key}" for queue, locks in state.get("locks", {}).items() for key in locks}
    if set(state.get("leases", {})) != locked:
        found.append(f"leases {sorted(state.get('leases', {}))} but locks {sorted(locked)}")
    if {task for tasks in state.get("held", {}).values() for task in tasks} != locked:
        found.append(f"holders' sets {state.get('held')} but locks {sorted(locked)}")
    for holder in state.get("held", {}):
        if holder not in state.get("holders", {}):
            found.append(f"{holder} holds keys and is not registered")
    return found


def text(state: State) -> str:
    """For a difference to be read."""
    return json.dumps(state, indent=1, sort_keys=True)
