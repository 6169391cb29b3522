"""Many scenarios at once on one pair of servers, and what is told of them."""

from __future__ import annotations

import asyncio
import json
import math
import sys
import tempfile
import time
from collections import Counter
from collections.abc import Mapping
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import uvloop

from oarlock.cluster.access import config
from oarlock.cluster.client import Client
from tests.differential import report
from tests.differential.generate import scenario
from tests.differential.hands import Hands
from tests.differential.play import Outcome, Patience, Table
from tests.differential.rules import Rules
from tests.differential.scene import Scenes
from tests.differential.sides import SIDES, Side, SideName
from tests.differential.step import Step
from tests.realserver.programs import version_of

TELL_EVERY_S = 10.0
REQUEST_TIMEOUT_S = 60.0


@dataclass(frozen=True)
class Plan:
    """`numbers`: the scenarios. `withheld`: index of a step that the fleet's side is not given; -1: none. `within_s`:
    after that no more scenarios are begun."""

    seed: int
    numbers: tuple[int, ...]
    steps: int
    concurrency: int
    evidence: Path
    withheld: int = -1
    within_s: float | None = None

    def steps_of(self, number: int, rules: Rules) -> list[Step]:
        return scenario(self.seed, number, self.steps, surge=rules.surge)

    def show(self) -> None:
        """Raises CannotObtain."""
        rules = upstream_rules()
        for number in self.numbers:
            for index, step in enumerate(self.steps_of(number, rules)):
                print(f"{number}/{index}: {step}")


def upstream_rules() -> Rules:
    """Of the programs that are given or built. Raises CannotObtain."""
    return Rules(version_of("kube-controller-manager"), version_of("kube-apiserver"))


def run(plan: Plan) -> int:
    """Exit code. Raises Broken, NotStarted, CannotObtain."""
    began_s = time.monotonic()
    rules = upstream_rules()
    with ExitStack() as ending:
        folder = Path(ending.enter_context(tempfile.TemporaryDirectory(prefix="oarlock-sides-")))
        say(
            f"seed {plan.seed}: {len(plan.numbers)} scenarios of {plan.steps} steps beside kube-controller-manager "
            f"{rules.manager} on kube-apiserver {rules.server}; starting both sides ..."
        )
        sides = {name: ending.enter_context(Side(name, folder / name)) for name in SIDES}
        say(f"both are up after {time.monotonic() - began_s:.1f} s")
        outcomes = uvloop.run(_play_all(plan, sides, rules))
        report.keep_logs(folder, plan.evidence, outcomes)
    asked = {"seed": plan.seed, "upstream": str(rules.manager), "asked": len(plan.numbers), "steps_each": plan.steps}
    return report.conclude(asked, outcomes, plan.evidence, time.monotonic() - began_s)


async def _play_all(plan: Plan, sides: Mapping[SideName, Side], rules: Rules) -> list[Outcome]:
    outcomes: list[Outcome] = []
    ends_s = math.inf if plan.within_s is None else time.monotonic() + plan.within_s
    places = asyncio.Semaphore(plan.concurrency)
    async with AsyncExitStack() as stack:
        clients, scenes = {}, {}
        for name, side in sides.items():
            loaded = config.load(side.kubeconfig)
            client = Client(loaded, role="differential", request_timeout_s=REQUEST_TIMEOUT_S)
            clients[name] = await stack.enter_async_context(client)
            scenes[name] = await stack.enter_async_context(Scenes(clients[name]))

        async def play(number: int) -> None:
            async with places:
                if time.monotonic() > ends_s:
                    return
                called = f"diff-{number}"
                seats = [(Hands(clients[name], scenes[name], called), scenes[name][called]) for name in SIDES]
                table = Table(seats[0], seats[1], Patience(), rules)
                steps = plan.steps_of(number, rules)
                outcome = await table.play(number, steps, withheld=plan.withheld)
                outcomes.append(outcome)
                if not outcome.good:
                    report.write_evidence(plan.evidence, plan.seed, outcome)

        playing = [asyncio.create_task(play(number)) for number in plan.numbers]
        watching = asyncio.create_task(_watch(sides, outcomes, len(plan.numbers)))
        all_played = asyncio.gather(*playing)
        both: tuple[asyncio.Future[Any], ...] = (all_played, watching)
        await asyncio.wait(both, return_when=asyncio.FIRST_COMPLETED)
        for task in both:
            if task.done():
                task.result()
            task.cancel()
    return sorted(outcomes, key=lambda each: each.number)


async def _watch(sides: Mapping[SideName, Side], outcomes: list[Outcome], count: int) -> None:
    """Says how far it is, until it is cancelled. Raises Broken."""
    began_s = told_s = time.monotonic()
    while True:
        await asyncio.sleep(0.2)
        for side in sides.values():
            side.check()
        now_s = time.monotonic()
        if now_s - told_s >= TELL_EVERY_S:
            told_s = now_s
            good = sum(each.good for each in outcomes)
            explained = sum((each.explained for each in outcomes), Counter[str]())
            say(
                f"{now_s - began_s:6.0f} s  {len(outcomes)}/{count} scenarios ended, {len(outcomes) - good} of them "
                f"with differences; explained {json.dumps(dict(explained), sort_keys=True)}"
            )


def say(text: str) -> None:
    print(text, file=sys.stderr, flush=True)
