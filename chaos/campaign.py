"""A campaign from its first process to the last, with all recorders. The judge reads what it leaves (``saved``)."""

from __future__ import annotations

import asyncio
import contextlib
import json
import time
from collections import Counter
from collections.abc import AsyncIterator, Callable, Coroutine
from dataclasses import replace
from random import Random
from typing import Any

from redis.exceptions import RedisError

from oarlock.chaos.faults.api_faults import PHASES, ApiFaults
from oarlock.chaos.faults.episode_runner import EpisodeRunner
from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.faults.process_faults import ProcessFaults
from oarlock.chaos.faults.redis_view import RedisView
from oarlock.chaos.judge.evidence.evidence import Blow, Facts
from oarlock.chaos.judge.verdict import Run
from oarlock.chaos.load.live import Live
from oarlock.chaos.load.load import Load
from oarlock.chaos.options import SETTLE_LIMIT_S, Options
from oarlock.chaos.record.journal import Journal
from oarlock.chaos.record.monitor import END, MonitorRecorder, NoRecorder
from oarlock.chaos.record.process_ends import ProcessEnds
from oarlock.chaos.record.saved import JOURNAL, SCHEDULE, write_notes
from oarlock.chaos.rig.redis_pair import PairFailed
from oarlock.chaos.rig.redis_program import NoClock
from oarlock.chaos.rig.rig import Rig, RigFailed
from oarlock.chaos.rig.second_fleet import SecondFleet
from oarlock.chaos.stage import Stage
from oarlock.cluster.access import config
from oarlock.sandbox.redis.redis_binary import NoRedisBinary

QUIET_S = 2.5
"""The campaign ends when nothing has changed for so long."""
QUIET_BEFORE_S = 0.3
FIRST_LIMIT_S = 40.0
PROGRESS_S = 5.0
API_FAULTS_FIRST_S = 0.5
SECOND_AFTER, SECOND_SHARE = 0.35, 0.25
"""When the second fleet comes and for how long it stays, as shares of the duration."""
SECOND_LEAST_S, SECOND_S = 5.0, 10.0
"""How long it stays at least and at most. It needs about two seconds to begin."""
PROGRESS_LIMIT_S = 10.0
"""How long, beside a lease, an owner may wait for what it asked for while faults last."""


class CampaignFailed(Exception):
    """It could not be carried out; one line. Nothing is known about the fleet then."""


class Campaign:
    """``run`` it once. ``say``: progress, a line at a time."""

    def __init__(self, options: Options, say: Callable[[str], None]) -> None:
        self._options, self._say = options, say
        self.plan = options.plan()
        self._began_s = time.monotonic()

    async def run(self) -> None:
        """Carry it out; the evidence is in ``options.root`` then. Raises CampaignFailed."""
        options = self._options
        try:
            stage = Stage(options)
        except (NoClock, NoRedisBinary) as error:
            raise CampaignFailed(str(error)) from None
        (options.root / SCHEDULE).write_text(json.dumps([each._asdict() for each in self.plan], indent=1) + "\n")
        try:
            await stage.rig.start()
            hosts = options.told_settings()["supervisors"]
            self._tell(f"up: {options.workers} workers of {hosts} supervisors, {options.ingestors} ingestors")
            await self._shake(stage)
        except (RigFailed, PairFailed) as error:
            raise CampaignFailed(str(error)) from None
        finally:
            await stage.rig.stop()

    async def _shake(self, stage: Stage) -> None:
        options, root, episode, rig = self._options, self._options.root, self._options.episode, stage.rig
        live = Live()
        monitor = stage.recorder()
        journal = Journal(rig.api_url, root / JOURNAL, live.take)
        process_ends = ProcessEnds(rig)
        redis_view = RedisView(rig.redis_url, Random(f"prey {options.seed}"))
        faults = ProcessFaults(rig, redis_view, options.seed, options.traps, options.mixed.queued_max)
        api_faults = self._api_faults(rig.api_url)
        load = Load(config.load(rig.state.kubeconfig), live, options.seed, episode.pace if episode else 1.0)
        episodes = EpisodeRunner(stage, redis_view, faults, api_faults, options.seed)
        carried_out = episodes if episode else faults
        second = SecondFleet(root, rig.state.kubeconfig, options.settings) if options.second_fleet else None
        await _quiet(redis_view)
        async with contextlib.aclosing(load), _in_background(monitor.run()), contextlib.AsyncExitStack() as ended:
            if second is not None:
                ended.push_async_callback(second.stop)
            await asyncio.wait_for(monitor.attached.wait(), 10)
            await journal.listen()
            async with _in_background(journal.run()), _in_background(process_ends.run()):
                await load.begin()
                if not await self._settled(rig, live, journal, FIRST_LIMIT_S, quiet_s=0.0):
                    raise CampaignFailed(f"before any fault: {'; '.join(live.unsettled())}")
                owners = len(live.owners) + len(live.daemon_sets) + len(live.deployments)
                self._tell(f"{owners} owners, {len(live.pods)} pods at rest; {len(self.plan)} faults to come")
                begin_s = asyncio.get_running_loop().time()
                async with (
                    _in_background(api_faults.run()),
                    _in_background(load.run()),
                    _in_background(self._beside(second, faults)),
                    _in_background(self._progress(begin_s, faults, live, redis_view)),
                ):
                    await asyncio.sleep(API_FAULTS_FIRST_S)
                    await carried_out.run(self.plan, begin_s, begin_s + options.duration_s * options.mixed.overtime)
                    left_s = begin_s + options.duration_s - asyncio.get_running_loop().time()
                    await asyncio.sleep(max(0.0, left_s))
                    await ended.aclose()
                await _mend(faults, api_faults, load)
                faults_ended_s = time.time()
                self._tell(f"the faults are over: {len(faults.blows)} done, {len(faults.missed)} without a victim")
                settled = await self._settled(rig, live, journal, SETTLE_LIMIT_S, quiet_s=QUIET_S)
                settle_s = (journal.last_s if settled else time.time()) - faults_ended_s
                at_rest = f"all at rest after {max(0.0, settle_s):.1f} s"
                self._tell(at_rest if settled else "; ".join(live.unsettled()))
                ended_s = time.time()
                await _see_the_end(redis_view, monitor)
            monitor.flush()
        redis_view.close()
        run = self._run(faults, api_faults, load, max(0.0, settle_s))
        facts = Facts(options.timing.drain_s, faults_ended_s, ended_s, SETTLE_LIMIT_S, api_alone=options.api_alone)
        if episode:
            run = replace(run, only=options.only, struck=dict(episodes.struck), idle=episodes.idle)
            facts = facts._replace(progress_s=PROGRESS_LIMIT_S + options.timing.lease_s)
        if second is not None and second.from_s:
            facts = second.told(facts)
        write_notes(root, run, facts, faults.blows, journal.from_rv, journal.gaps, process_ends.ends)

    def _api_faults(self, url: str) -> ApiFaults:
        options = self._options
        phases = ("usual",) if options.only else PHASES
        return ApiFaults(url, options.seed, options.settings.request_timeout_ms / 1000, phases)

    def _run(self, faults: ProcessFaults, api_faults: ApiFaults, load: Load, settle_s: float) -> Run:
        options = self._options
        kinds = Counter(blow.kind for blow in faults.blows)
        kinds.update(f"pause {blow.why}" for blow in faults.blows if blow.kind == "pause")
        return Run(
            seed=options.seed,
            duration_s=options.duration_s,
            asked=options.faults,
            blows=kinds,
            missed=Counter(faults.missed),
            api=api_faults.applied,
            load=load.done,
            settings=options.told_settings(),
            settle_s=round(settle_s, 2),
            state_dir=str(options.root),
            second_fleet=options.second_fleet,
            api_alone=options.api_alone,
            mix=options.mix,
            points=Counter(blow.why for blow in faults.blows if blow.why in POINTS),
        )

    async def _beside(self, second: SecondFleet | None, faults: ProcessFaults) -> None:
        """Have the second fleet run for a while. Raises CampaignFailed where it does not."""
        if second is None:
            return
        duration_s = self._options.duration_s
        await asyncio.sleep(SECOND_AFTER * duration_s)
        try:
            await second.start()
        except OSError as error:
            raise CampaignFailed(f"the second fleet: {error}") from None
        faults.blows.append(Blow(second.from_s, "second fleet"))
        self._tell("a second fleet has come")
        until_s = time.monotonic() + max(SECOND_LEAST_S, min(SECOND_S, SECOND_SHARE * duration_s))
        while time.monotonic() < until_s:
            await asyncio.sleep(0.1)
            if why := second.ended():
                raise CampaignFailed(f"the second fleet has ended: {why}")
        await second.stop()
        self._tell("the second fleet has gone")

    async def _settled(self, rig: Rig, live: Live, journal: Journal, limit_s: float, quiet_s: float) -> bool:
        """Wait until every owner is as it should be and nothing has changed for a while. False: not in time."""
        loop = asyncio.get_running_loop()
        until_s = loop.time() + limit_s
        while live.unsettled():
            rig.check()
            if loop.time() > until_s:
                return False
            await asyncio.sleep(0.05)
        while time.time() - journal.last_s < quiet_s and loop.time() < until_s + quiet_s:
            await asyncio.sleep(0.05)
        return not live.unsettled()

    async def _progress(self, begin_s: float, faults: ProcessFaults, live: Live, redis_view: RedisView) -> None:
        loop = asyncio.get_running_loop()
        while True:
            await asyncio.sleep(PROGRESS_S)
            done = Counter(blow.kind for blow in faults.blows)
            told = ", ".join(f"{count} {kind}" for kind, count in sorted(done.items())) or "none yet"
            phase = redis_view.phase() or "no epoch"
            self._tell(
                f"{loop.time() - begin_s:4.0f} s of {self._options.duration_s:g}: faults: {told};"
                f" {len(live.pods)} pods, {live.created} made so far; {phase}"
            )

    def _tell(self, text: str) -> None:
        self._say(f"{time.monotonic() - self._began_s:6.1f} s  {text}")


async def _mend(faults: ProcessFaults, api_faults: ApiFaults, load: Load) -> None:
    """End every fault, and let the load end what it has begun."""
    faults.thaw()
    await api_faults.clear()
    await load.finish()
    faults.hear()  # of a trap that was met while it was taken away


async def _see_the_end(redis_view: RedisView, monitor: MonitorRecorder | NoRecorder) -> None:
    """Let the recorder of Redis read to the end."""
    try:
        redis_view.say(END)
        await asyncio.wait_for(monitor.seen_to_the_end.wait(), 20)
    except (RedisError, TimeoutError) as error:
        raise CampaignFailed(f"the trace of Redis was not read to its end: {type(error).__name__} {error}") from None


async def _quiet(redis_view: RedisView) -> None:
    """Wait until no key of the nodes that came first is worked on: of a lock taken before the trace began nobody knows.

    Raises CampaignFailed.
    """
    loop = asyncio.get_running_loop()
    from_s = quiet_s = loop.time()
    while loop.time() - quiet_s < QUIET_BEFORE_S:
        if redis_view.at_work():
            quiet_s = loop.time()
        if loop.time() - from_s > FIRST_LIMIT_S:
            raise CampaignFailed("the first keys of the nodes are still worked on")
        await asyncio.sleep(0.02)


@contextlib.asynccontextmanager
async def _in_background(work: Coroutine[Any, Any, None]) -> AsyncIterator[None]:
    """Run something beside. Should it fail, the body is interrupted and CampaignFailed raised."""
    body = asyncio.current_task()
    assert body is not None
    task = asyncio.create_task(work)

    def ended(done: asyncio.Task[None]) -> None:
        if not done.cancelled() and done.exception() is not None:
            body.cancel()

    task.add_done_callback(ended)
    try:
        yield
    except asyncio.CancelledError:
        if task.done() and not task.cancelled() and (error := task.exception()) is not None:
            body.uncancel()
            raise CampaignFailed(_told(error)) from error
        raise
    finally:
        task.remove_done_callback(ended)
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


def _told(error: BaseException) -> str:
    if isinstance(error, BaseExceptionGroup):
        return _told(error.exceptions[0])
    return f"{type(error).__name__}: {error}"
