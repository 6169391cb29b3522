"""`oarlock chaos`: a seeded campaign of faults against a fleet under load, with a verdict."""

from __future__ import annotations

import asyncio
import os
import signal
import tempfile
from pathlib import Path
from typing import Any

import click

from oarlock.chaos.campaign import Campaign, CampaignFailed
from oarlock.chaos.faults.episodes import EPISODES, fitting
from oarlock.chaos.faults.mixes import MIXES, USUAL
from oarlock.chaos.faults.points import POINTS
from oarlock.chaos.faults.schedule import WARM_UP_S, Timing
from oarlock.chaos.options import SHORTER, Options
from oarlock.cli.options.options import output_option
from oarlock.cli.problems import InputProblem, NotDone
from oarlock.cli.run.chaos_report import judge
from oarlock.workers.process.settings import BadSetting, Settings

DURATION_S, DURATION_LEAST_S = 120.0, 20.0
ONLY_S = 60.0


@click.command(
    epilog="\b\nExamples:\n  oarlock chaos\n  oarlock chaos --faults 300 --seed 11\n"
    "  oarlock chaos -o json | jq .verdict\n"
    "  oarlock chaos --mix points --workers 8        workers kill themselves at named points\n"
    "  oarlock chaos --only redis-cut                host 2 loses its Redis, again and again\n"
    "  oarlock chaos --only refused-names --duration 90\n"
    "  oarlock chaos --list                          the faults that can be played alone\n"
    "\b\nEvery setting of the fleet can be given as OARLOCK_<NAME>, such as OARLOCK_LEASE_MS=5000."
)
@click.option(
    "--duration",
    "duration_s",
    type=click.FloatRange(10, 86_400),
    help="Seconds of load and faults. Default: 120, or what so many --faults of the mix take (0.8 s each).",
)
@click.option(
    "--seed", type=int, default=7, show_default=True, help="Determines the schedule of the faults, and the load."
)
@click.option(
    "--faults",
    type=click.IntRange(0, 100_000),
    help="How many faults. Default: 5 in 4 seconds. Of 300, about 240 kill workers, 30 ingestors, 15 supervisors;"
    " 10 are pauses, 5 lose Redis.",
)
@click.option(
    "--mix",
    type=click.Choice(list(MIXES)),
    default=USUAL,
    show_default=True,
    help="Which faults are mixed; --list describes the mixtures, and the named points.",
)
@click.option(
    "--only",
    type=click.Choice(sorted(EPISODES)),
    metavar="FAULT",
    help="Play only this kind of fault instead of kills; --list describes them. --faults is how often; by default"
    " as often as fits.",
)
@click.option("--list", "listing", is_flag=True, help="Describe mixtures, points and faults, and end.")
@click.option(
    "--nodes",
    type=click.IntRange(1, 5_000),
    default=5,
    show_default=True,
    help="Simulated nodes; the load adds ten of its own.",
)
@click.option(
    "--workers", type=click.IntRange(2, 256), default=6, show_default=True, help="RQ workers of two supervisors."
)
@click.option("--ingestors", type=click.IntRange(1, 16), default=2, show_default=True, help="Ingestors.")
@click.option(
    "--shards",
    type=click.IntRange(1, 16),
    default=1,
    show_default=True,
    help="Divide the fleet. With more than one, only the API is judged: the evidence in Redis is of one fleet.",
)
@click.option(
    "--second-fleet",
    is_flag=True,
    help="For a while, a second fleet with its own Redis and Lease runs the same controllers.",
)
@click.option(
    "--state-dir",
    type=click.Path(path_type=Path),
    help="Keep the evidence here. Default: a temporary directory, kept only if the verdict is not pass.",
)
@click.option(
    "--judge",
    "earlier",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="Judge the evidence of an earlier campaign in this directory again; nothing is started.",
)
@output_option
def chaos(
    duration_s: float | None,
    faults: int | None,
    mix: str,
    only: str | None,
    listing: bool,
    workers: int,
    shards: int,
    second_fleet: bool,
    state_dir: Path | None,
    earlier: Path | None,
    output: str,
    **given: Any,
) -> int:
    """Start an `oarlock up` and a second supervisor; without a pause scale and disturb ReplicaSets and
    ReplicationControllers, roll DaemonSets, roll, undo, scale, pause and resume Deployments, and relabel, taint, remove
    and add nodes; and meanwhile kill workers (where it can be, with writes in flight), ingestors and supervisors,
    freeze hosts for longer than the lease, lose Redis, and have the API server delay, drop, refuse and fail requests.
    Then judge from evidence alone: the audit log, a watch of its own, and MONITOR of the Redis.

    Exit 0 only if nothing was violated *and* there was enough opportunity for it; 1 if not. The last line is one JSON
    object; the seed decides the schedule. With --mix other faults are mixed, and come more densely: with `points`
    workers kill themselves at named points of their turns. With --only one sort of fault is played instead, such as a
    host that is cut off from Redis, again and again. `--list` tells of all of them.

    \b
    JSON, all violations 0 in a run that passes:
      verdict               pass, fail, or "no evidence" (too few opportunities, or a recorder missed something)
      over_creations        a create made more active pods than were wanted since the owner was last at rest
      over_deletions        a delete left fewer than the fewest wanted since the owner version that its turn's claim
                            had read, less those lost to others
      overlaps              two locks on a key, or a step of an earlier holder or epoch accepted
      lost_keys             a change no claim had read, or an unlock that did not give the key back
      stuck_keys            not as it should be 30 s after the faults stopped
      stalled_owners        with --only: left alone for 10 s and a lease while faults lasted, and not as it asked to be,
                            but for the names that were refused
      duplicate_daemon_pods a create made a second pod of a DaemonSet on a node (a third while it surges)
      nodes_down_by_us      a delete left more nodes of a DaemonSet down through our deletes than maxUnavailable
      over_surges           a create made more active pods of a Deployment, over all its ReplicaSets, than the loosest
                            replicas and maxSurge allowed since it was last at rest, but for those others added
      unavailable_by_us     a size that takes available pods, or a delete of one that its ReplicaSet's size does not ask
                            for, left fewer available than replicas less maxUnavailable, likewise, less those lost to
                            others; not judged once replicas were lowered since the last rest
      recreate_overlaps     Recreate, and a create beside a pod of another template that had not come to its end
      twin_replicasets      two ReplicaSets of a Deployment with one template
      duplicate_names, unannounced_writes, unguarded_deletes, unguarded_scales, statuses_backwards, early_opens,
      watermarks_backwards
      crashes               a supervisor, ingestor or Redis that ended without being killed
      evidence_gaps         what the recorders missed
      first                 the first violations and gaps, in words
      opportunities         kills_with_write_in_flight, already_exists, late_commits (after the sender's death),
                            stale_nonce_refusals, leases_ended, reissued_writes, live_lists, epochs, creates,
                            deletes, rests, rollouts, rolling_deletes, most_nodes_down, daemon_already_exists,
                            node_moves, deployment_rollouts, templates_come_back (to their ReplicaSet), size_writes,
                            creates_while_rolling, deletes_of_available, recreations, progress_checks,
                            progress_checks_refused (of owners with a refused name), ...
      by_kind               queue -> {creates, deletes, already_exists, claims, rests, changes_followed}
      too_few               opportunity -> {had, needed}
      too_many              what had to be let pass, and more of it than can be -> {had, allowed}; fails the run
      faults                worker_kills, ingestor_kills, supervisor_kills, pauses, redis_losses, lost (of these: how),
                            second_fleets, mix, points (where workers killed themselves), total, asked, missed (no
                            victim), api (requests befallen, by action); with --only: struck (how often it really
                            struck), idle (how many of them never did)
      recovery              worker_kill_to_claim_ms, supervisor_kill_to_claim_ms, change_to_claim_ms
                            {count, p50, p99, max}; settle_s: from the last fault until all was at rest
      answers, load         what the API answered to the workers; what the load did
      not_judged            what is not judged beside a second fleet, with shards, or with several Redis servers
      seed, duration_s, settings, state_dir
    """
    quiet = output == "json"
    if listing:
        return _list()
    if only and second_fleet:
        raise InputProblem("--only and --second-fleet: one at a time; leave one out")
    if shards > 1 and (only or second_fleet):
        raise InputProblem("--shards: only the mixture of kills is played on several; leave out the other option")
    if mix != USUAL and (only or second_fleet or shards > 1):
        raise InputProblem(f"--mix {mix}: it is played alone, on one fleet; leave out --only, --shards, --second-fleet")
    if workers < 2 * shards:
        raise InputProblem(f"--workers {workers}: {shards} shards of two supervisors need {2 * shards}; give as many")
    if earlier is not None:
        return judge(earlier.absolute(), quiet, keep=True)
    try:
        settings = Settings.from_env({**SHORTER.to_env(), **os.environ})
    except (BadSetting, AssertionError) as error:
        raise InputProblem(f"OARLOCK_...: {error}") from None
    duration_s, faults = _size(duration_s, faults, mix, only, settings)
    root, made_here = _root(state_dir)
    options = Options(
        duration_s=duration_s,
        faults=faults,
        mix=mix,
        only=only or "",
        workers=workers,
        shards=shards,
        second_fleet=second_fleet,
        root=root,
        settings=settings,
        **given,
    )
    tell = (lambda _: None) if quiet else click.echo
    campaign = Campaign(options, tell)
    tell(
        f"seed {options.seed}: {len(campaign.plan)} faults in {duration_s:g} s; lease {settings.lease_ms} ms,"
        f" requests {settings.request_timeout_ms} ms, D {settings.drain_ms} ms; evidence in {root}"
    )
    signal.signal(signal.SIGTERM, signal.default_int_handler)
    try:
        asyncio.run(campaign.run())
    except CampaignFailed as error:
        raise NotDone(f"the campaign could not be carried out: {error}; see {root}") from None
    return judge(root, quiet, keep=not made_here)


def _size(
    duration_s: float | None, faults: int | None, mix: str, only: str | None, settings: Settings
) -> tuple[float, int]:
    """Duration and number of faults, if only one or none of them is given."""
    if only:
        timing = Timing(settings.drain_ms / 1000, settings.lease_ms / 1000)
        if duration_s is None:
            duration_s = ONLY_S if faults is None else WARM_UP_S + faults * EPISODES[only].takes_s(timing)
        return duration_s, fitting(only, duration_s, timing) if faults is None else max(1, faults)
    fault_s = MIXES[mix].fault_s
    if duration_s is None:
        duration_s = DURATION_S if faults is None else max(DURATION_LEAST_S, WARM_UP_S + faults * fault_s)
    return duration_s, round(duration_s / fault_s) if faults is None else faults


def _list() -> int:
    width = max(map(len, (*MIXES, *POINTS, *EPISODES)))
    told = {
        "--mix:": {name: each.what for name, each in MIXES.items()},
        "The points of --mix points, at which a worker kills itself:": POINTS,
        "--only:": {name: each.what for name, each in EPISODES.items()},
    }
    for heading, entries in told.items():
        click.echo(heading)
        for name, what in entries.items():
            click.echo(f"  {name:<{width}}  {what}")
    return 0


def _root(state_dir: Path | None) -> tuple[Path, bool]:
    if state_dir is None:
        return Path(tempfile.mkdtemp(prefix="oarlock-chaos-")), True
    try:
        state_dir.mkdir(parents=True, exist_ok=True)
    except OSError as error:
        raise InputProblem(f"--state-dir {state_dir}: {error.strerror}; give a directory you may write to") from None
    return state_dir.absolute(), False
