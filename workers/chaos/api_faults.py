"""A struggling API server: phases of a few seconds, each with another mix of what it does to the workers' requests."""

from __future__ import annotations

import asyncio
import random
from collections import Counter
from typing import Any

import aiohttp

WORKERS, INGESTORS = "(worker)", "(ingestor)"
PHASES = ("usual", "slow", "lossy", "broken", "throttled", "stalled")


def faults_of(phase: str, request_timeout_s: float) -> list[dict[str, Any]]:
    """What the server is told for a phase, in the form its endpoint takes."""
    limit_ms = request_timeout_s * 1000
    rates = {
        "before": 0.12,
        "after": 0.05,
        "overtime": 0.004,
        "drop": 0.03,
        "429": 0.01,
        "500": 0.005,
        "500 after": 0.01,
    }
    match phase:
        case "slow":
            rates |= {"before": 0.35, "after": 0.15, "overtime": 0.01}
        case "lossy":
            rates |= {"drop": 0.12, "500 after": 0.04}
        case "broken":
            rates |= {"500": 0.10, "500 after": 0.08}
        case "throttled":
            rates |= {"429": 0.12}
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
    if phase == "stalled":
        stall = {"action": "stallWatch", "durationS": 1.5, "verbs": ["watch"], "userAgent": INGESTORS}
        found.append({**stall, "resources": ["pods"]})
    return found


class ApiFaults:
    """``run`` until cancelled; ``clear`` ends all faults. ``applied``: how many requests each action befell."""

    def __init__(self, url: str, seed: int, request_timeout_s: float) -> None:
        self._url, self._seed, self._timeout_s = f"{url}/_oarlock/faults", seed, request_timeout_s
        self.applied: Counter[str] = Counter()
        self.phases: Counter[str] = Counter()

    async def run(self) -> None:
        chance = random.Random(f"api {self._seed}")
        async with aiohttp.ClientSession() as session:
            phase = "usual"
            while True:
                await self._count(session)
                self.phases[phase] += 1
                body = {"seed": chance.randrange(1 << 30), "faults": faults_of(phase, self._timeout_s)}
                async with session.put(self._url, json=body) as response:
                    response.raise_for_status()
                await asyncio.sleep(chance.uniform(2.0, 5.0))
                phase = chance.choice(PHASES)

    async def clear(self) -> None:
        """From now on the server is well."""
        async with aiohttp.ClientSession() as session:
            await self._count(session)
            async with session.delete(self._url) as response:
                response.raise_for_status()

    async def _count(self, session: aiohttp.ClientSession) -> None:
        async with session.get(self._url) as response:
            for each in (await response.json())["faults"]:
                if each["action"] != "stallWatch":
                    self.applied[each["action"]] += each["applied"]
