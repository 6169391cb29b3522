"""Scenarios played on upstream's side alone, with a fleet that runs dry beside it.

`make diff-kcm FLAGS=--shadow` is the command. Whenever upstream has come to
rest and the shadow has read all of it, nothing may be wanted that is not explained; and whatever upstream did on the
way has to be what was decided, or explained.
"""

from __future__ import annotations

import asyncio
import json
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import AsyncExitStack, ExitStack
from dataclasses import dataclass, field
from pathlib import Path
from tempfile import TemporaryDirectory

import uvloop

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.keys import Keys
from oarlock.broker.shadow_store import Difference, ShadowStore
from oarlock.broker.versions import newer
from oarlock.cluster.access import config
from oarlock.cluster.client import Client
from oarlock.cluster.resources import CONTROLLERREVISIONS, DAEMONSETS, NODES, PODS, REPLICASETS, REPLICATIONCONTROLLERS
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.settings import Settings
from oarlock.workers.turn.shadow import standing
from oarlock.workers.turn.shadow.course import Course
from oarlock.workers.turn.shadow.judge import UNEXPLAINED
from oarlock.workers.turn.shadow.recorder import decoded
from tests.differential.campaign import REQUEST_TIMEOUT_S, Plan, say, upstream_rules
from tests.differential.hands import Hands
from tests.differential.play import LOOK_S, Patience
from tests.differential.quiet import unsettled
from tests.differential.rules import Rules
from tests.differential.scene import DEPLOYMENTS, REFUSED, Scene, Scenes
from tests.differential.sides import SHADOW, Side
from tests.differential.step import Step, StepRefused

CACHED = (PODS, NODES, DEPLOYMENTS, REPLICASETS, REPLICATIONCONTROLLERS, DAEMONSETS, CONTROLLERREVISIONS)


class ShadowView:
    """What the shadow keeps, as anybody may read it."""

    def __init__(self, url: str) -> None:
        self._client = connect(url)
        tag = Settings(dry_run=True, fleet_id=SHADOW).tag
        self._keys = Keys(epoch.current(self._client, tag).epoch, tag)
        self.store = ShadowStore(self._client, self._keys)

    def lags(self, namespace: str, wanted: Mapping[str, int]) -> str:
        """What it has yet to do about a namespace, "" if nothing. `wanted`: up to where each resource is to be read."""
        raw = self._client.hgetall(self._keys.of("watermark"))
        marks = {name.decode(): mark.decode() for name, mark in raw.items()}
        for resource, version in wanted.items():
            if newer(str(version), marks.get(resource, "0")):
                return f"{resource} are read up to {marks.get(resource)}, not {version}"
        for queue in CONTROLLERS:
            for key, state in self._client.hscan_iter(self._keys.state(queue), match=f"{namespace}/*", count=1000):
                return f"{queue} {key.decode()} is {state.decode()}"
        return ""

    def standing(self, namespace: str) -> list[tuple[str, str, Course]]:
        """Owners for which something is wanted."""
        found = []
        for queue in CONTROLLERS:
            for key, blob in self.store.all_courses(queue):
                course = decoded(blob)
                if not key.startswith(f"{namespace}/") or course is None:
                    continue
                if course.doubts or not course.wanted.nothing:
                    found.append((queue, key, course))
        return found

    def differences(self, namespace: str) -> list[Difference]:
        return [each for each in self.store.differences() if each.key.startswith(f"{namespace}/")]

    def windows(self) -> Counter[str]:
        """By verdict."""
        found: Counter[str] = Counter()
        for (_, verdict), count in self.store.windows().items():
            found[verdict] += count
        return found


@dataclass
class Played:
    """What became of a scenario."""

    number: int
    steps: Sequence[Step]
    done: int = 0
    explained: Counter[str] = field(default_factory=Counter)
    unexplained: list[str] = field(default_factory=list)
    trouble: str = ""

    @property
    def good(self) -> bool:
        return not self.unexplained and not self.trouble


class ShadowTable:
    """Upstream's side of one scenario, and the shadow."""

    def __init__(
        self, namespace: str, hands: Hands, scenes: Scenes, view: ShadowView, patience: Patience, rules: Rules
    ) -> None:
        self._namespace, self._hands, self._scenes = namespace, hands, scenes
        self._view, self._patience, self._rules = view, patience, rules
        self._target: dict[str, int] = {}

    @property
    def _scene(self) -> Scene:
        return self._scenes[self._namespace]

    async def play(self, played: Played) -> None:
        """Ends at the first difference that nothing explains."""
        told: set[tuple[str, str, str]] = set()
        try:
            await self._hands.begin()
            for step in played.steps:
                await self._hands.apply(step)
                for queue, key, reason, text in await self._rest():
                    if not reason:
                        played.unexplained.append(f"{queue} {key}: {text}")
                    elif (queue, key, reason) not in told:
                        told.add((queue, key, reason))
                        played.explained[f"standing: {reason}"] += 1
                found = self._view.differences(self._namespace)
                played.unexplained += [
                    f"{each.queue} {each.key}: {each.text}" for each in found if each.reason == UNEXPLAINED
                ]
                if played.unexplained:
                    break
                played.done += 1
        except StepRefused as error:
            played.trouble = f"step refused: {error}"
        except _Restless as error:
            played.trouble = str(error)
        played.explained += Counter(each.reason for each in self._view.differences(self._namespace))
        del played.explained[UNEXPLAINED]
        await self._hands.clear()

    async def _rest(self) -> list[tuple[str, str, str, str]]:
        """What stands once upstream is at rest and the shadow has seen it: queue, key, why, what."""
        ends_s = time.monotonic() + self._patience.settle
        since_s = 0.0
        while True:
            reason = self._restless()
            now_s = time.monotonic()
            if reason:
                since_s = 0.0
                if now_s > ends_s:
                    raise _Restless(f"not at rest within {self._patience.settle:g} s: {reason}")
            else:
                since_s = since_s or now_s
                found = [
                    (queue, key, self._why(course), _text(course))
                    for queue, key, course in self._view.standing(self._namespace)
                ]
                enough_s = self._patience.meant if all(each[2] for each in found) else self._patience.agree
                if not found or now_s > since_s + enough_s:
                    return found
            await asyncio.sleep(LOOK_S)

    def _why(self, course: Course) -> str:
        if course.doubts:
            return ""
        refused = any(reason == REFUSED for reason, _ in self._scene.told[course.seen.uid])
        return standing.reason_of(course, told_refused=refused)

    def _restless(self) -> str:
        """Others play beside it, so the shadow has to have read what there was when this scenario came to rest."""
        reason = "something has just changed" if self._scene.quiet_s() < self._patience.quiet else ""
        reason = reason or unsettled(self._scene, taints_wake=self._rules.taints_wake)
        if reason:
            self._target = {}
            return reason
        self._target = self._target or {each.plural: self._scenes.version(each) for each in CACHED}
        return self._view.lags(self._namespace, self._target)


def _text(course: Course) -> str:
    return "; ".join([*(each.text for each in course.doubts), f"at rest it wants: {standing.told(course)}"])


class _Restless(Exception):
    pass


def run(plan: Plan) -> int:
    """Exit code. Raises Broken, NotStarted, CannotObtain."""
    began_s = time.monotonic()
    rules = upstream_rules()
    with ExitStack() as ending:
        folder = Path(ending.enter_context(TemporaryDirectory(prefix="oarlock-shadow-")))
        scenarios = f"{len(plan.numbers)} scenarios of {plan.steps} steps"
        say(f"seed {plan.seed}: {scenarios} beside kube-controller-manager {rules.manager} and a shadow")
        side = ending.enter_context(Side("upstream", folder / "upstream", shadow=True))
        view = ShadowView(side.shadow_redis)
        say(f"upstream and its shadow are up after {time.monotonic() - began_s:.1f} s")
        played = uvloop.run(_play_all(plan, side, view, rules))
        windows = view.windows()
    return _conclude(plan, played, windows, time.monotonic() - began_s)


async def _play_all(plan: Plan, side: Side, view: ShadowView, rules: Rules) -> list[Played]:
    played: list[Played] = []
    places = asyncio.Semaphore(plan.concurrency)
    ends_s = time.monotonic() + (plan.within_s or 10**9)
    async with AsyncExitStack() as stack:
        loaded = config.load(side.kubeconfig)
        client = await stack.enter_async_context(
            Client(loaded, role="differential", request_timeout_s=REQUEST_TIMEOUT_S)
        )
        scenes = await stack.enter_async_context(Scenes(client))

        async def play(number: int) -> None:
            async with places:
                if time.monotonic() > ends_s:
                    return
                side.check()
                namespace = f"diff-{number}"
                hands = Hands(client, scenes, namespace)
                each = Played(number, plan.steps_of(number, rules))
                await ShadowTable(namespace, hands, scenes, view, Patience(), rules).play(each)
                played.append(each)
                bad = f"; {(each.unexplained or [each.trouble])[0][:300]}" if not each.good else ""
                say(f"scenario {number}: {each.done} steps{bad}")

        async with asyncio.TaskGroup() as group:
            for number in plan.numbers:
                group.create_task(play(number))
    return sorted(played, key=lambda each: each.number)


def _conclude(plan: Plan, played: Sequence[Played], windows: Mapping[str, int], took_s: float) -> int:
    bad = [each for each in played if not each.good]
    for each in bad:
        print(f"scenario {each.number}, after step {each.done} ({each.steps[min(each.done, len(each.steps) - 1)]}):")
        for text in [*each.unexplained, *([each.trouble] if each.trouble else [])][:5]:
            print(f"    {text[:600]}")
    explained = sum((each.explained for each in played), Counter[str]())
    said = {
        "seed": plan.seed,
        "asked": len(plan.numbers),
        "scenarios": len(played),
        "steps_played": sum(each.done for each in played),
        "windows": dict(sorted(windows.items())),
        "explained": dict(sorted(explained.items())),
        "unexplained": sum(len(each.unexplained) for each in played),
        "restless": sum(bool(each.trouble) for each in played),
        "bad_scenarios": [each.number for each in bad],
        "seconds": round(took_s, 1),
    }
    print(json.dumps(said))
    return 1 if bad or len(played) < len(plan.numbers) else 0
