"""Faults on demand, for tests: what a bad network or a struggling API server does to its clients.

A fault has a filter (verbs, resources, user agent), a rate and a maximum count; a seed makes the choices
repeatable for a given order of requests. Writes that a fault delays are carried to their end although
the client has gone, as a real server's may be. A sticky fault draws once for each object and keeps to it: one name is
refused for ever, and its neighbours never.
"""

from __future__ import annotations

import random
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any, Final

from oarlock.sandbox.apiserver.errors import bad_request

WRITES: Final = ("create", "update", "patch", "delete", "deletecollection")
WEBHOOK_DOWN: Final = (
    'failed calling webhook "pods.example.com": Post "https://127.0.0.1:1/?timeout=10s": '
    "dial tcp 127.0.0.1:1: connect: connection refused"
)
"""As a real server says it of a webhook whose policy is Fail and whose endpoint is down."""
WEBHOOK_DENIES: Final = 'admission webhook "pods.example.com" denied the request: this namespace takes no pods'
"""As a real server says it of a webhook that does not allow a write and gives this reason."""


class Action(StrEnum):
    DELAY_BEFORE = "delayBeforeCommit"  # wait, then act
    DELAY_AFTER = "delayAfterCommit"  # act, wait, then answer
    DROP_ANSWER = "dropAnswer"  # act, then close the connection without a word
    REFUSE = "refuse429"  # do nothing, answer 429 with Retry-After
    CONFLICT = "conflict409"  # do nothing, answer 409: to a create AlreadyExists, to others that the object was changed
    FORBID = "forbid403"  # do nothing, answer 403 as an authorizer does whose rules lack this verb
    FAIL_BEFORE = "fail500BeforeCommit"  # do nothing, answer 500
    FAIL_AFTER = "fail500AfterCommit"  # act, then answer 500
    FAIL_WEBHOOK = "failWebhook"  # do nothing, answer 500 as where a webhook of admission cannot be called
    DENY_WEBHOOK = "denyWebhook"  # do nothing, answer 403 as where a webhook of admission does not allow it
    STALL_WATCH = "stallWatch"  # at once, for durationS: watches stay open and say nothing
    CUT_HISTORY = "cutHistory"  # at once: watches end, older resourceVersions are 410


@dataclass(slots=True)
class Fault:
    """One fault. Delays in milliseconds, drawn evenly between the two bounds; `until_s` is of the caller's clock."""

    action: Action
    rate: float = 1.0
    verbs: tuple[str, ...] = WRITES
    resources: tuple[str, ...] = ("*",)
    user_agent: str = ""
    spares: tuple[str, ...] = ()
    """It does not befall clients whose user agent has one of these parts."""
    names: tuple[str, ...] = ("*",)
    """The objects it befalls, each as "name" or "namespace/name"."""
    namespaces: tuple[str, ...] = ("*",)
    sticky: bool = False
    """The rate is drawn once for each object: an object that was refused stays refused."""
    count_max: int | None = None
    delay_ms: tuple[float, float] = (0.0, 0.0)
    retry_after_s: int = 1
    duration_s: float = 0.0
    until_s: float = 0.0
    id: int = 0
    applied: int = 0
    drawn: dict[str, bool] = field(default_factory=dict)

    def meets(self, verb: str, resource: str, user_agent: str, subject: str = "", namespace: str = "") -> bool:
        """Whether the filter takes this request. `resource` is `pods` or `pods/status`; `subject`: "namespace/name"."""
        return (
            ("*" in self.verbs or verb in self.verbs)
            and ("*" in self.resources or resource in self.resources)
            and ("*" in self.names or subject in self.names or subject.rpartition("/")[2] in self.names)
            and ("*" in self.namespaces or namespace in self.namespaces)
            and self.user_agent in user_agent
            and not any(part in user_agent for part in self.spares)
        )

    def strikes(self, chance: random.Random, subject: str) -> bool:
        """Draw, or repeat what was drawn for this object. For a request without a name it is drawn anew each time."""
        if not (self.sticky and subject):
            return self.rate >= 1.0 or chance.random() < self.rate
        return self.drawn.setdefault(subject, chance.random() < self.rate)

    def describe(self) -> dict[str, Any]:
        return {
            "id": self.id,
            "action": self.action.value,
            "rate": self.rate,
            "verbs": list(self.verbs),
            "resources": list(self.resources),
            "userAgent": self.user_agent,
            "spares": list(self.spares),
            "names": list(self.names),
            "namespaces": list(self.namespaces),
            "sticky": self.sticky,
            "maxCount": self.count_max,
            "delayMs": list(self.delay_ms),
            "retryAfterS": self.retry_after_s,
            "durationS": self.duration_s,
            "applied": self.applied,
        }


@dataclass(slots=True)
class Chosen:
    """What faults do to one request: the actions, and how long those take that take long."""

    actions: set[Action] = field(default_factory=set)
    before_s: float = 0.0
    after_s: float = 0.0
    retry_after_s: int = 0
    names: list[str] = field(default_factory=list)


_REQUEST_ACTIONS: Final = frozenset(Action) - {Action.STALL_WATCH, Action.CUT_HISTORY}


class Faults:
    """The faults in force."""

    def __init__(self, seed: int = 0) -> None:
        self._faults: list[Fault] = []
        self._last_id = 0
        self.reseed(seed)

    def reseed(self, seed: int) -> None:
        self.seed = seed
        self._random = random.Random(seed)

    def add(self, fault: Fault, now_s: float) -> Fault:
        self._last_id += 1
        fault.id = self._last_id
        fault.until_s = now_s + fault.duration_s
        self._faults.append(fault)
        return fault

    def remove(self, fault: Fault) -> None:
        """End one; nothing if it has ended already."""
        self._faults = [each for each in self._faults if each is not fault]

    def clear(self) -> None:
        self._faults.clear()

    def describe(self) -> dict[str, Any]:
        return {"seed": self.seed, "faults": [fault.describe() for fault in self._faults]}

    @property
    def by_name(self) -> bool:
        """Whether any of them depends on the names of objects."""
        return any(fault.sticky or "*" not in fault.names for fault in self._faults)

    def choose(
        self, verb: str, resource: str, user_agent: str, subject: str = "", namespace: str = ""
    ) -> Chosen | None:
        """Draw for one request; None if nothing befalls it. `subject`: "namespace/name" of the object, if known."""
        chosen: Chosen | None = None
        for fault in self._faults:
            if (
                fault.action not in _REQUEST_ACTIONS
                or (fault.count_max is not None and fault.applied >= fault.count_max)
                or not fault.meets(verb, resource, user_agent, subject, namespace)
                or not fault.strikes(self._random, subject)
            ):
                continue
            fault.applied += 1
            chosen = chosen or Chosen()
            chosen.names.append(f"{fault.action.value} by name" if fault.sticky else fault.action.value)
            self._apply(fault, chosen)
        return chosen

    def _apply(self, fault: Fault, chosen: Chosen) -> None:
        chosen.actions.add(fault.action)
        match fault.action:
            case Action.DELAY_BEFORE:
                chosen.before_s += self._random.uniform(*fault.delay_ms) / 1000
            case Action.DELAY_AFTER:
                chosen.after_s += self._random.uniform(*fault.delay_ms) / 1000
            case Action.REFUSE:
                chosen.retry_after_s = fault.retry_after_s

    def watch_stalled(self, resource: str, user_agent: str, now_s: float) -> bool:
        """Whether watches of `resource` by this client have to be silent now."""
        return any(
            fault.action is Action.STALL_WATCH
            and now_s < fault.until_s
            and fault.meets(fault.verbs[0], resource, user_agent)
            for fault in self._faults
        )


_KEYS: Final = frozenset(Fault(Action.REFUSE).describe())


def fault_from(spec: Any) -> Fault:
    """A fault from its JSON form, the one `Fault.describe` gives. Raises ApiError 400, naming what is wrong."""
    if not isinstance(spec, dict):
        raise bad_request("a fault must be an object")
    if unknown := sorted(set(spec) - _KEYS):
        raise bad_request(f"unknown key in a fault: {', '.join(unknown)}")
    try:
        action = Action(str(spec.get("action")))
    except ValueError:
        known = ", ".join(action.value for action in Action)
        raise bad_request(f"action {spec.get('action')!r} is not one of: {known}") from None
    delay = spec.get("delayMs", 0)
    bounds = delay if isinstance(delay, list) and len(delay) == 2 else [delay, delay]
    count_max = spec.get("maxCount")
    try:
        return Fault(
            action=action,
            rate=float(spec.get("rate", 1.0)),
            verbs=_words(spec, "verbs", WRITES),
            resources=_words(spec, "resources", ("*",)),
            user_agent=str(spec.get("userAgent") or ""),
            spares=_words(spec, "spares", ()),
            names=_words(spec, "names", ("*",)),
            namespaces=_words(spec, "namespaces", ("*",)),
            sticky=_flag(spec, "sticky"),
            count_max=None if count_max is None else int(count_max),
            delay_ms=(float(bounds[0]), float(bounds[1])),
            retry_after_s=int(spec.get("retryAfterS", 1)),
            duration_s=float(spec.get("durationS", 0.0)),
        )
    except (TypeError, ValueError) as error:
        raise bad_request(f"fault {action.value}: {error}") from None


def _flag(spec: dict[str, Any], key: str) -> bool:
    value = spec.get(key, False)
    if not isinstance(value, bool):
        raise ValueError(f"{key} must be true or false")
    return value


def _words(spec: dict[str, Any], key: str, default: tuple[str, ...]) -> tuple[str, ...]:
    words = spec.get(key)
    if words is None:
        return default
    if not isinstance(words, list) or not (words or not default) or not all(isinstance(word, str) for word in words):
        raise ValueError(f"{key} must be a list of words")
    return tuple(words)
