"""Every metric there is: its name, type, labels, whose figure it is, and what it says.

What is served and docs/metrics.md are both made from this table, so neither can name what the other does not.
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from enum import StrEnum


class Scope(StrEnum):
    """Whose figure it is, and so how figures of several processes are put together."""

    FLEET = "fleet"  # read from Redis by every process: max, never sum
    PROCESS = "process"  # sum


SAID = {
    Scope.FLEET: "Fleet-wide: read from Redis, the same from every process (take max, do not sum).",
    Scope.PROCESS: "Of this process (sum).",
}
WORKER, INGESTOR = "worker", "ingestor"
BOTH = (WORKER, INGESTOR)


@dataclass(frozen=True, slots=True)
class Family:
    """``kind``: counter, gauge or histogram. ``roles``: the commands whose processes serve it."""

    name: str
    kind: str
    labels: tuple[str, ...]
    scope: Scope
    roles: tuple[str, ...]
    meaning: str

    @property
    def help(self) -> str:
        """The help text as it is served."""
        return f"{self.meaning} {SAID[self.scope]}"


def _fleet(name: str, kind: str, labels: str, meaning: str) -> Family:
    return Family(name, kind, (*labels.split(), "shard"), Scope.FLEET, BOTH, meaning)


def _process(*roles: str) -> Callable[[str, str, str, str], Family]:
    return lambda name, kind, labels, meaning: Family(name, kind, tuple(labels.split()), Scope.PROCESS, roles, meaning)


_worker, _ingestor, _both = _process(WORKER), _process(INGESTOR), _process(*BOTH)

UPSTREAM = (
    _fleet("workqueue_depth", "gauge", "name", "Keys queued."),
    _fleet(
        "workqueue_adds_total",
        "counter",
        "name",
        "Keys that entered the queue since the epoch began. Absent with Redis before 7, which does not count them.",
    ),
    _worker(
        "workqueue_queue_duration_seconds",
        "histogram",
        "name",
        "How long keys were queued before a worker took them, in whole milliseconds of Redis's clock.",
    ),
    _worker(
        "workqueue_work_duration_seconds",
        "histogram",
        "name",
        "How long turns took, without the call that ends them, which the turns of a batch share.",
    ),
    _worker(
        "workqueue_unfinished_work_seconds", "gauge", "name", "How long the turns that run now have run, in total."
    ),
    _worker(
        "workqueue_longest_running_processor_seconds", "gauge", "name", "How long the longest of these turns has run."
    ),
    _worker(
        "workqueue_retries_total",
        "counter",
        "name",
        "Turns whose key is queued again later: rate limited after a failure, or at a known time.",
    ),
    _worker(
        "replicaset_controller_sorting_deletion_age_ratio",
        "histogram",
        "",
        "The ratio of chosen deleted pod's ages to the current youngest pod's age (at the time). Should be <2. "
        "The intent of this metric is to measure the rough efficacy of the LogarithmicScaleDown feature gate's effect "
        "on the sorting (and deletion) of pods when a replicaset scales down. "
        "This only considers Ready pods when calculating and reporting.",
    ),
    _worker(
        "replicaset_controller_stale_sync_skips_total",
        "counter",
        "group resource",
        "Total number of ReplicaSet syncs skipped due to a stale watch cache.",
    ),
    _worker(
        "daemonset_controller_stale_sync_skips_total",
        "counter",
        "group resource",
        "Total number of DaemonSet syncs skipped due to a stale watch cache.",
    ),
    _both(
        "rest_client_requests_total",
        "counter",
        "code host method",
        'Requests to the API server by the code of their answer; "<error>": none came.',
    ),
    _both(
        "rest_client_request_duration_seconds",
        "histogram",
        "host verb",
        "How long requests took, to the last byte of the answer, without watches.",
    ),
    _both(
        "rest_client_rate_limiter_duration_seconds",
        "histogram",
        "host verb",
        "How long requests waited for the rate limit, without writes whose tokens were reserved.",
    ),
)

PROCESS = (
    _both("process_cpu_seconds_total", "counter", "", "CPU time used, including that of workers that have ended."),
    _both("process_resident_memory_bytes", "gauge", "", "Memory in use; shared pages count in parts (PSS)."),
    _both("process_virtual_memory_bytes", "gauge", "", "Address space of all processes."),
    _both("process_open_fds", "gauge", "", "Open file descriptors of all processes."),
    _both("process_max_fds", "gauge", "", "How many one process may have open."),
    _both("process_start_time_seconds", "gauge", "", "When it started, in unix seconds."),
    _both(
        "python_gc_collections_total",
        "counter",
        "generation",
        "Runs of the garbage collector; of a supervisor: in its workers.",
    ),
    _both("python_gc_objects_collected_total", "counter", "generation", "Objects it collected."),
    _both("python_gc_objects_uncollectable_total", "counter", "generation", "Objects it could not collect."),
    _both("python_info", "gauge", "implementation version", "1; which Python runs it."),
    _both("oarlock_build_info", "gauge", "version role", "1; which oarlock it is, and in which role."),
)

OURS = (
    _fleet("oarlock_epoch", "gauge", "", "Number of the current epoch; 0: there is none."),
    _fleet("oarlock_epoch_phase", "gauge", "phase", "1 for the phase of the epoch (OPEN, DRAIN, HELD, NONE), else 0."),
    _fleet("oarlock_epoch_intact", "gauge", "", "1 if the data are of the Redis server that runs now."),
    _fleet("oarlock_held", "gauge", "", "1 while the fleet is paused: other controllers work on its kinds."),
    _fleet("oarlock_watermark_age_seconds", "gauge", "resource", "Time since the cache was last confirmed."),
    _fleet("oarlock_cached_objects", "gauge", "resource", "Objects in the cache."),
    _fleet("oarlock_oldest_queued_seconds", "gauge", "queue", "How long the first queued key has waited."),
    _fleet("oarlock_keys_in_work", "gauge", "queue", "Keys that a worker holds."),
    _fleet("oarlock_keys_delayed", "gauge", "queue", "Keys to be queued at a later time."),
    _fleet("oarlock_keys_parked", "gauge", "queue", "Poison keys: they kill their workers and are tried again alone."),
    _fleet("oarlock_keys_held", "gauge", "queue", "Keys that a pause, or a limit, has taken out of the queue."),
    _fleet("oarlock_pauses", "gauge", "", "Pauses, rates, weights that people set: `oarlock pause` lists them."),
    _fleet(
        "oarlock_api_budget_qps",
        "gauge",
        "",
        "Requests a second that all workers together may make now; 0 without --fleet-api-qps.",
    ),
    _fleet("oarlock_api_budget_max_qps", "gauge", "", "The most that it may be: --fleet-api-qps, of this shard."),
    _fleet(
        "oarlock_rate_limit_turns",
        "gauge",
        "queue",
        "Turns a second that people let a controller begin; absent where they set no rate.",
    ),
    _fleet("oarlock_controller_weight", "gauge", "queue", "The weight that people gave a controller; absent: 1."),
    _fleet(
        "oarlock_keys_crashing",
        "gauge",
        "queue",
        "Keys that killed a worker, or are suspected of it, and have ended no turn since.",
    ),
    _fleet("oarlock_keys_failing", "gauge", "queue", "Keys whose last turn failed."),
    _fleet("oarlock_records_unanswered", "gauge", "queue", "Keys with writes without an answer, or reserved names."),
    _fleet(
        "oarlock_record_age_seconds",
        "gauge",
        "queue",
        "For how long the first of these keys has had them; of more than 128 keys, the first of 128 picked at random.",
    ),
    _fleet("oarlock_workers_registered", "gauge", "", "Workers that may claim keys."),
    _fleet("oarlock_workers_idle", "gauge", "", "Workers that wait for a key."),
    _fleet("oarlock_redis_memory_bytes", "gauge", "", "Memory that Redis uses."),
    _fleet("oarlock_history_bytes", "gauge", "", "Memory of all histories of keys, about; 64 MiB at most."),
    _fleet("oarlock_redis_memory_max_bytes", "gauge", "", "Its maxmemory; 0: no limit."),
    _both("oarlock_redis_up", "gauge", "", "1 if Redis answered when the fleet-wide figures were last read."),
    _both("oarlock_redis_read_seconds", "gauge", "", "How long that reading took."),
    _worker(
        "oarlock_claim_wait_seconds",
        "histogram",
        "queue",
        "As workqueue_queue_duration_seconds, with bounds from 1 ms to 5 minutes.",
    ),
    _worker(
        "oarlock_failover_seconds",
        "histogram",
        "queue",
        "How long nobody finished a key whose worker died or was cut off: from its claim to the next one's.",
    ),
    _worker(
        "oarlock_turns_total",
        "counter",
        "queue outcome",
        "Turns that ended: done, again (to be tried again), failed, gone (no owner), lost (another worker claimed it).",
    ),
    _worker("oarlock_lease_losses_total", "counter", "", "Claims lost to another worker before their turn had ended."),
    _worker("oarlock_reclaims_total", "counter", "", "Keys taken back because their lease had expired."),
    _worker("oarlock_releases_total", "counter", "", "Keys given back when a worker of this supervisor ended."),
    _worker("oarlock_epochs_lost_total", "counter", "", "Epochs that ended while this supervisor worked in them."),
    _worker("oarlock_workers_running", "gauge", "", "Worker processes of this supervisor."),
    _worker("oarlock_worker_starts_total", "counter", "", "Worker processes started."),
    _worker(
        "oarlock_worker_deaths_total",
        "counter",
        "how",
        "Worker processes ended: left (in order), epoch_over, killed (by the supervisor), crashed.",
    ),
    _both("oarlock_tick_age_seconds", "gauge", "", "Time since the last round of its main loop."),
    _ingestor(
        "oarlock_watch_heard_age_seconds", "gauge", "resource", "Time since the watch was last heard; -1: never."
    ),
    _ingestor("oarlock_watch_events_total", "counter", "resource result", "Events: applied, skipped, unreadable."),
    _ingestor("oarlock_lists_total", "counter", "resource", "Lists committed."),
    _ingestor("oarlock_reflector_watching", "gauge", "resource", "1 while it is watched or stood by for, else 0."),
    _ingestor("oarlock_feed_watching", "gauge", "resource", "Old name of oarlock_reflector_watching."),
    _ingestor(
        "oarlock_ingestor_standing", "gauge", "standing", "1 for what it is: bootstrapper (old: minter), member, away."
    ),
)

FAMILIES: dict[str, Family] = {family.name: family for family in (*UPSTREAM, *PROCESS, *OURS)}
