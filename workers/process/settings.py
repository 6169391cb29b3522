"""Every constant of the fleet, with its relation to the others checked wherever one is given.

Values come from the environment where a name is given here, so that a worker started by RQ's own command line finds
them.
"""

from __future__ import annotations

import os
import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field, replace
from typing import Any

from oarlock.broker.budget import BudgetLimits
from oarlock.broker.connection.tls import TlsFiles
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process import shards
from oarlock.workers.process.shards import SHARDS_MAX

FLEET = r"[a-z]([a-z0-9-]{0,38}[a-z0-9])?"
"""Of an operator, or of a dry run. No number, which would be a shard."""
FLEET_ID = "oarlock"
NAMESPACE = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
MOST = 2**31 - 1
"""Of any number. Sums of them have to be whole numbers for Redis's scripts, and spans for the clocks of Python."""


@dataclass(frozen=True, slots=True)
class Settings:
    """Times in ms unless the name says otherwise. Raises BadSetting where two of them do not go together."""

    redis_url: str = "redis://127.0.0.1:6379/0"
    rq_redis_url: str = ""
    """Where RQ keeps its own keys; empty: the same server. Not a cluster: RQ's keys are in many slots."""
    redis_tls_ca: str = ""
    """PEM files for rediss://: authorities (empty: the system's), our certificate and its key. For RQ's too."""
    redis_tls_cert: str = ""
    redis_tls_key: str = ""
    kubeconfig: str = ""
    """Path; empty: in-cluster credentials, else $KUBECONFIG, else ~/.kube/config."""
    controllers: str = "*"
    """Which controllers a process serves, as kube-controller-manager's --controllers (`enabled_queues`)."""
    operator: str = ""
    """File or dotted module of a user's controllers (docs/operators.md); empty: the built-in ones. Its fleet is
    ``fleet_id``, which has a Lease and keys in Redis of its own: a cluster and a Redis have room for several.
    """
    concurrent_syncs: Mapping[str, int] = field(default_factory=dict)
    """By queue: how many objects of its kind one process syncs at once at most; 0 or absent: a batch a worker
    (batch_keys). As a setting each has a name of its own, such as concurrent_replicaset_syncs, from the registry.
    """
    fleet_id: str = FLEET_ID
    signing_key_file: str = ""
    """Path to the keys that sign cached objects; empty: they are neither signed nor checked (docs/signing.md)."""
    lease_namespace: str = "kube-system"
    kube_api_qps: float = 20.0
    """Writes and reads a second of one process against the API; 0: no limit."""
    kube_api_burst: int = 30
    fleet_api_qps: float = 0.0
    """Requests a second of all workers of the cluster together (docs/api-budget.md), in place of kube_api_qps of each;
    0: there is no such budget. Shards have equal parts of it.
    """
    fleet_api_qps_min: float = 0.0
    """Down to which 429s and slow answers may bring it; 0: a tenth of it."""
    fleet_api_in_flight: int = 0
    """Requests that all workers together have under way; 0: writes_in_flight of each worker is the only limit."""
    terminating_replicas: bool = True
    """Whether statuses say it where the API server keeps it, which its answers tell; false: nowhere."""
    dry_run: bool = False
    """Decide and record, and write nothing (docs/shadow.md). Such a fleet has an id of its own, and by it a Lease and
    keys in Redis that no fleet which writes can have.
    """
    alongside_upstream: bool = False
    """Work on although upstream's controllers are seen at work on the same kinds. The log says so either way."""
    lease_ms: int = 5_000
    renew_every_ms: int = 1_000
    request_timeout_ms: int = 4_000
    send_margin_ms: int = 500
    turn_limit_ms: int = 45_000
    stall_ms: int = 60_000
    batch_keys: int = 8
    batch_keys_quick: int = 64
    """After a full batch in which nothing was to be done: most of what such turns cost is the way to Redis."""
    batch_bytes: int = 262_144
    slow_turn_ms: int = 50
    """A turn that computed for longer lets its worker claim one key next. What is over waits no longer to be ended."""
    view_age_max_ms: int = 120_000
    """Deletes on an older view ask for a live list."""
    writes_in_flight: int = 64
    failed_after: int = 5
    """Failed turns in a row before the key enters RQ's failed-job registry."""
    shards: int = 1
    """Into how many fleets the namespaces are divided; the same for every process of the cluster (docs/shards.md)."""
    shard: str = ""
    """The one this process serves, "0" to "N-1"; empty: all of them, where it can."""
    metrics_bind_address: str = "0"
    """Where /metrics and the health endpoints are served: HOST:PORT, a port more for each further shard; 0: nowhere."""

    def __post_init__(self) -> None:
        for name in setting_names():
            value = self.value(name)
            if isinstance(value, str | bool):
                continue
            least = 0 if name in _MAY_BE_ZERO or name in _queue_of_setting() else 1
            if not least <= value <= MOST:
                bound = f"at most {MOST}" if value > MOST else f"at least {least}"
                raise BadSetting(f"OARLOCK_{name.upper()}={value} is out of range: it is {bound}")
        self._least("lease_ms", 3 * self.renew_every_ms, "three renew_every_ms: two lost renewals do not lose it")
        self._least("stall_ms", self.turn_limit_ms, "turn_limit_ms: a turn ends itself before its supervisor does")
        self._least("lease_ms", self.send_margin_ms, "send_margin_ms: what is announced has time to be sent")
        if self.fleet_api_qps_min > self.fleet_api_qps:
            raise BadSetting(
                f"OARLOCK_FLEET_API_QPS_MIN={self.fleet_api_qps_min} is more than OARLOCK_FLEET_API_QPS="
                f"{self.fleet_api_qps}: it is the least that remains of it"
            )
        if self.fleet_api_in_flight and not self.fleet_api_qps:
            raise BadSetting(f"OARLOCK_FLEET_API_IN_FLIGHT={self.fleet_api_in_flight} needs OARLOCK_FLEET_API_QPS, too")
        if self.shards > SHARDS_MAX:
            raise BadSetting(f"OARLOCK_SHARDS={self.shards} is out of range: it is at most {SHARDS_MAX}")
        if self.shard and self.shard not in shards.names(self.shards):
            raise BadSetting(
                f"OARLOCK_SHARD={self.shard!r} is no shard of OARLOCK_SHARDS={self.shards}: give 0 to {self.shards - 1}"
            )
        if not re.fullmatch(NAMESPACE, self.lease_namespace):
            raise BadSetting(
                f"OARLOCK_LEASE_NAMESPACE={self.lease_namespace} cannot be a namespace: give small letters, digits and"
                " dashes, at most 63, such as kube-system"
            )
        if self.operator and not re.fullmatch(FLEET, self.fleet_id):
            raise BadSetting(
                f"OARLOCK_FLEET_ID={self.fleet_id} cannot name the fleet of an operator: small letters, digits and"
                " dashes, a letter first, at most 40"
            )
        if self.dry_run:
            self._check_dry_run()
        if self.operator and self.shards > 1:
            raise BadSetting(f"OARLOCK_SHARDS={self.shards}: the fleet of an operator is not divided; leave it out")
        if not re.fullmatch(r"[!-~]+", self.fleet_id):
            raise BadSetting(
                f"OARLOCK_FLEET_ID={self.fleet_id!r} cannot name a fleet: give ASCII signs without white space, such as"
                f" {FLEET_ID}"
            )

    def _check_dry_run(self) -> None:
        fleet = self.fleet_id
        if fleet == FLEET_ID or not re.fullmatch(FLEET, fleet):
            raise BadSetting(
                f"OARLOCK_FLEET_ID={fleet} cannot name a fleet that runs dry: give one of its own, such as shadow, of"
                " small letters, digits and dashes, a letter first, at most 40"
            )
        if self.operator:
            raise BadSetting(f"OARLOCK_OPERATOR={self.operator}: its functions may write by themselves, so no dry run")
        if self.shards > 1:
            raise BadSetting(f"OARLOCK_SHARDS={self.shards}: a fleet that runs dry is not divided; leave it out")

    def value(self, name: str) -> Any:
        """The value of a setting, by its name."""
        queue = _queue_of_setting().get(name)
        return getattr(self, name) if queue is None else self.concurrent_syncs.get(queue, 0)

    def given(self, values: Mapping[str, Any]) -> Settings:
        """These settings with other values, by name. Raises BadSetting."""
        queue_of, syncs, fields = _queue_of_setting(), dict(self.concurrent_syncs), dict[str, Any]()
        for name, value in values.items():
            if name in queue_of:
                syncs[queue_of[name]] = value
            elif name in Settings.__annotations__:
                fields[name] = value
            else:  # a flag of the built-in controllers, while others are those that there are
                raise BadSetting(f"OARLOCK_{name.upper()}={value}: none of these controllers has this setting")
        return replace(self, concurrent_syncs={queue: bound for queue, bound in syncs.items() if bound}, **fields)

    def _least(self, name: str, bound_ms: int, why: str) -> None:
        value_ms = getattr(self, name)
        if value_ms <= bound_ms:
            raise BadSetting(f"OARLOCK_{name.upper()}={value_ms} must be more than {bound_ms}, {why}")

    @property
    def serves_one(self) -> bool:
        """Whether this process serves one shard; else it serves all of them, in a process each."""
        return self.shards == 1 or bool(self.shard)

    @property
    def serves(self) -> str:
        """The shard this process serves. Raises BadSetting where it could be any of several."""
        if not self.serves_one:
            raise BadSetting(f"OARLOCK_SHARD is not given: this process serves one shard, 0 to {self.shards - 1}")
        return self.shard or "0"

    @property
    def tag(self) -> str:
        """The hash tag of its keys in Redis, and the end of its Lease's name: an operator's fleet, one that runs dry,
        else the shard. No operator's fleet can have the name of one that runs dry: there is no dot in it.
        """
        if self.dry_run:
            return f"{self.fleet_id}.dry-run"
        return self.fleet_id if self.operator else self.serves

    @property
    def tags(self) -> tuple[str, ...]:
        """Those of all shards."""
        return (self.tag,) if self.operator or self.dry_run else shards.names(self.shards)

    @property
    def redis_tls(self) -> TlsFiles:
        """The files of every connection to Redis."""
        return TlsFiles(self.redis_tls_ca, self.redis_tls_cert, self.redis_tls_key)

    @property
    def budget(self) -> BudgetLimits | None:
        """What the workers of one shard may ask of the API together; None: each has a limit of its own."""
        if not self.fleet_api_qps:
            return None
        qps, least = self.fleet_api_qps / self.shards, self.fleet_api_qps_min / self.shards
        flights = max(1, self.fleet_api_in_flight // self.shards) if self.fleet_api_in_flight else 0
        return BudgetLimits(max(1, round(qps * 1_000)), max(1, round((least or qps / 10) * 1_000)), flights)

    @property
    def drain_ms(self) -> int:
        """D: after it no write of an earlier holder or epoch can land any more (lease + two requests + residue)."""
        return self.lease_ms + 2 * self.request_timeout_ms + 1_000

    @classmethod
    def from_env(cls, env: Mapping[str, str] | None = None) -> Settings:
        """OARLOCK_<NAME IN CAPITALS> for every field. Raises BadSetting with one line."""
        env = os.environ if env is None else env
        given: dict[str, object] = {}
        for name in setting_names():
            text = env.get(f"OARLOCK_{name.upper()}")
            if text is None:
                continue
            kind = cls.__annotations__.get(name, "int")
            try:
                given[name] = _PARSERS[str(kind)](text)
            except ValueError:
                raise BadSetting(f"OARLOCK_{name.upper()}={text!r} is not a {kind}") from None
        return cls().given(given)

    def to_env(self) -> dict[str, str]:
        """The environment under which ``from_env`` gives these settings."""
        values = {name: self.value(name) for name in setting_names()}
        return {f"OARLOCK_{name.upper()}": str(value) for name, value in values.items() if value != ""}


def setting_names() -> list[str]:
    """Every setting: the fields of Settings, and one for each controller of the registry that bounds its syncs."""
    return [
        name
        for field_name in Settings.__annotations__
        for name in (_queue_of_setting() if field_name == "concurrent_syncs" else (field_name,))
    ]


def _queue_of_setting() -> dict[str, str]:
    """Name of a setting in concurrent_syncs -> the queue that it bounds."""
    return {controller.concurrent_syncs: queue for queue, controller in CONTROLLERS.items()}


class BadSetting(Exception):
    """The text is one line that names the input and the remedy."""


def _truth(text: str) -> bool:
    if text.lower() not in ("true", "false", "1", "0"):
        raise ValueError(text)
    return text.lower() in ("true", "1")


_MAY_BE_ZERO = (
    *("kube_api_qps", "fleet_api_qps", "fleet_api_qps_min", "fleet_api_in_flight"),
    *("send_margin_ms", "slow_turn_ms", "view_age_max_ms"),
)
_PARSERS: dict[str, Callable[[str], object]] = {"str": str, "int": int, "float": float, "bool": _truth}
