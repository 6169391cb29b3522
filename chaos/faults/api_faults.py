"""A struggling API server: phases of a few seconds, each with its own mix of faults for the workers' requests."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from collections.abc import Sequence
from typing import Any

import aiohttp

WORKERS, INGESTORS = "(worker)", "(ingestor)"
PHASES = ("usual", "slow", "lossy", "broken", "throttled", "stalled", "refusing")

RATES = {"before": 0.12, "after": 0.05, "overtime": 0.004, "drop": 0.03, "429": 0.01, "500": 0.005, "500 after": 0.01}
"""The share of requests that each fault befalls, in a usual phase."""
OTHER_RATES = {
    "calm": {"overtime": 0.0, "drop": 0.0, "429": 0.0, "500": 0.0, "500 after": 0.0},
    "slow": {"before": 0.35, "after": 0.15, "overtime": 0.01},
    "lossy": {"drop": 0.12, "500 after": 0.04},
    "broken": {"500": 0.10, "500 after": 0.08},
    "throttled": {"429": 0.12},
}
"""Phase -> what is otherwise in it."""


def faults_of(phase: str, request_timeout_s: float) -> list[dict[str, Any]]:
    """What the server is told for a phase, in the form its endpoint takes."""
    limit_ms = request_timeout_s * 1000
    rates = RATES | OTHER_RATES.get(phase, {})
    pods: dict[str, Any] = {"userAgent": WORKERS, "verbs": ["create", "delete", "patch"]}
    found = [
        {"action": "delayBeforeCommit", "rate": rates["before"], "delayMs": [30, 0.6 * limit_ms], **pods},
        {"action": "delayAfterCommit", "rate": rates["after"], "delayMs": [30, 0.5 * limit_ms], **pods},
        {"action": "delayAfterCommit", "rate": rates["overtime"], "delayMs": [limit_ms, 1.2 * limit_ms], **pods},
        {"action": "dropAnswer", "rate": rates["drop"], **pods},
        {"action": "refuse429", "rate": rates["429"], "retryAfterS": 1, **pods},
        {"action": "fail500BeforeCommit", "rate": rates["500"], **pods},
        {"action": "fail500AfterCommit", "rate": rates["500 after"], **pods},
    ]
    if phase == "refusing":
        found += refused_names()
    if phase == "stalled":
        stall = {"action": "stallWatch", "durationS": 1.5, "verbs": ["watch"], "userAgent": INGESTORS}
        found.append({**stall, "resources": ["pods"]})
    return found


REFUSED_RATE = 0.12
"""The share of names of pods that is refused, to POST and to DELETE. For one in three the write takes effect."""


def refused_names() -> list[dict[str, Any]]:
    """Names that are answered 500 as long as this lasts. The answer does not tell whether the write took effect."""
    return [
        {"action": action, "rate": rate, "sticky": True, "verbs": [verb], "resources": ["pods"], "userAgent": WORKERS}
        for verb in ("create", "delete")
        for action, rate in (
            ("fail500BeforeCommit", REFUSED_RATE * 2 / 3),
            ("fail500AfterCommit", REFUSED_RATE / 3),
        )
    ]


class ApiFaults:
    """``run`` until cancelled; ``clear`` ends all faults. ``applied``: how many requests each action befell.

    ``phases``: to choose from. ``refused``: requests answered 500 for their name.
    """

    def __init__(self, url: str, seed: int, request_timeout_s: float, phases: Sequence[str] = PHASES) -> None:
        self._url, self._seed, self._timeout_s = f"{url}/_oarlock/faults", seed, request_timeout_s
        self._choices = phases
        self._turning = asyncio.Lock()
        self.applied: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()
        self.refused = 0

    async def run(self) -> None:
        chance = random.Random(f"api {self._seed}")
        async with aiohttp.ClientSession() as session:
            phase = "usual"
            while True:
                async with self._turning:
                    self.phases[phase] += 1
                    await self._put(session, chance.randrange(1 << 30), faults_of(phase, self._timeout_s))
                await asyncio.sleep(chance.uniform(2.0, 5.0))
                phase = chance.choice(self._choices)

    async def refuse_names(self, seed: int) -> None:
        """Until ``refuse_no_names`` the same names are refused, and no other phase begins: a new one draws anew."""
        await self._turning.acquire()
        async with aiohttp.ClientSession() as session:
            await self._put(session, seed, [*faults_of("calm", self._timeout_s), *refused_names()])

    async def refuse_no_names(self) -> None:
        """Go on with the phases."""
        async with aiohttp.ClientSession() as session:
            await self._put(session, 0, faults_of("usual", self._timeout_s))
        self._turning.release()

    async def _put(self, session: aiohttp.ClientSession, seed: int, faults: list[dict[str, Any]]) -> None:
        await self._count(session)
        async with session.put(self._url, json={"seed": seed, "faults": faults}) as response:
            response.raise_for_status()

    async def clear(self) -> None:
        """End all faults of the server."""
        async with aiohttp.ClientSession() as session:
            await self._count(session)
            async with session.delete(self._url) as response:
                response.raise_for_status()

    async def _count(self, session: aiohttp.ClientSession) -> None:
        async with session.get(self._url) as response:
            for each in (await response.json())["faults"]:
                if each["sticky"]:
                    self.refused += each["applied"]
                if each["action"] != "stallWatch":
                    self.applied[each["action"]] += each["applied"]
