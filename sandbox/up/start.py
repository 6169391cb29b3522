"""Start everything, in order. When a step fails, everything that was started is ended again."""

from __future__ import annotations

import asyncio
import json
import os
import select
import socket
import subprocess
import sys
import time
from collections.abc import Callable, Sequence
from contextlib import suppress
from dataclasses import dataclass, replace
from functools import partial
from typing import TYPE_CHECKING, Any

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cluster.access import config
from oarlock.sandbox.host import is_free
from oarlock.sandbox.nodes.kubelet.images import UNPULLABLE
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis, RedisNotStarted
from oarlock.sandbox.redis.redis_binary import NoRedisBinary
from oarlock.sandbox.up.program import BEFORE_OTHERS, YIELDS, Program, ProgramChild
from oarlock.sandbox.up.state_dir import StateDir
from oarlock.sandbox.up.tree import Tree
from oarlock.workers.metrics.serving.bind_address import BACKLOG, FD_VARIABLE, url
from oarlock.workers.process.shards import names, share

if TYPE_CHECKING:
    from oarlock.sandbox.manifests.checks import Item

API_LIMIT_S = 20.0
READY_LIMIT_S = 60.0


class NotStarted(Exception):
    """It did not come up; one line naming the cause. Nothing is left running."""


@dataclass(frozen=True, slots=True)
class Options:
    """What to bring up. Ports: 0 is any free one."""

    nodes: int = 5
    workers: int = 2
    ingestors: int = 2
    api_port: int = 0
    redis_port: int = 0
    pods_per_node: int = 1_000
    ready_ms: float = 500.0
    """How long a simulated pod takes to become ready; a random part of as much again comes on top."""
    terminate_ms: float = 300.0
    unpullable: str = UNPULLABLE
    faults: bool = False
    """Open the API server's endpoint for faults on demand."""
    shards: int = 1
    """Each has so many ingestors, and its share of the workers."""
    api_token: bool = True
    """Let the API server ask for a token, which the kubeconfig tells."""
    metrics: bool = False
    """Let ingestors and supervisors serve their metrics and health, each on a port of its own."""


RunHere = Callable[[Sequence[str]], int]
"""Runs the command `oarlock` with these arguments in this process, and returns its exit code."""


class Up:
    """Everything of one `oarlock up`. ``start``, then ``stay``; ``stop`` in any case.

    ``run_here``: what ingestors and supervisors do in forks of this process, which has to have one thread only; they
    share what it has loaded. Without it each is a command of its own.
    """

    def __init__(self, state: StateDir, options: Options, run_here: RunHere | None = None) -> None:
        self._state, self._options, self._run_here = state, options, run_here
        self._redis = EmbeddedRedis(
            state.redis, options.redis_port, log=state.logs / "redis.log", before_others=BEFORE_OTHERS
        )
        self.tree = Tree(state, self._redis)
        self.api_url = ""
        self._metrics: dict[str, socket.socket] = {}
        self._started_ms = time.time_ns() // 1_000_000

    def start(self, items: Sequence[Item], on_api: Callable[[], None] = lambda: None) -> None:
        """Start all and apply ``items``. Raises NotStarted, tree.Stopped, tree.ApiServerEnded.

        ``on_api`` is called once kubectl could connect, before anything is applied.
        """
        for option, port in (("--redis-port", self._options.redis_port), ("--api-port", self._options.api_port)):
            if port and not is_free(port):
                raise NotStarted(_port_taken(option, port))
        self._tell("starting")
        self._start_redis()
        self._start_api()
        on_api()
        programs = [self._serving(program) for program in (*self._ingestors(), *self._supervisors())]
        self.tree.add([self._child(program) for program in programs])
        if items:
            self._apply(items)
        self._await_ready()
        self._tell("ready")

    def _apply(self, items: Sequence[Item]) -> None:
        from oarlock.sandbox.manifests.applying import NotApplied, apply  # noqa: PLC0415  # as in cli.options

        try:
            asyncio.run(apply(config.load(self._state.kubeconfig), items))
        except NotApplied as error:
            raise NotStarted(str(error)) from None

    def stay(self) -> None:
        """Keep it running. Raises tree.Stopped, tree.ApiServerEnded."""
        self.tree.watch()

    def stop(self) -> None:
        """End everything and leave nothing behind."""
        with suppress(OSError):  # the disk may be full
            self._tell("stopping")
        self.tree.stop()
        for listening in self._metrics.values():
            listening.close()
        self._state.clear()

    @property
    def yields(self) -> int:
        """How much nicer than this process the programs are."""
        return 0 if self._redis.goes_before else YIELDS

    @property
    def redis_url(self) -> str:
        """The admin's."""
        return self._redis.url("admin")

    @property
    def metrics_urls(self) -> dict[str, str]:
        """Name of a process -> where it serves its metrics and health."""
        return {name: url(listening) for name, listening in self._metrics.items()}

    def _serving(self, program: Program) -> Program:
        """Give it a socket to serve metrics on. It is ours, so the port stays the same when a process is replaced."""
        if not self._options.metrics:
            return program
        listening = self._metrics[program.name] = socket.create_server(("127.0.0.1", 0), backlog=BACKLOG)
        number = listening.fileno()
        return replace(program, fds=(number,), environment={**program.environment, FD_VARIABLE: str(number)})

    def _ingestors(self) -> list[Program]:
        options = self._options
        return [
            self._oarlock("ingestor", f"ingestor-{number}{mark}", ["ingest"], self._environment("ingestor", shard))
            for number in range(1, options.ingestors + 1)
            for shard, mark in _marks(options.shards)
        ]

    def _supervisors(self) -> list[Program]:
        found = []
        for shard, mark in _marks(self._options.shards):
            if workers := share(self._options.workers, int(shard or 0), self._options.shards):
                command, environment = ["worker", "--workers", str(workers)], self._environment("worker", shard)
                found.append(self._oarlock("supervisor", f"supervisor{mark}", command, environment, report=True))
        return found

    def _oarlock(
        self, role: str, name: str, arguments: Sequence[str], environment: dict[str, str], *, report: bool = False
    ) -> Program:
        life = None if self._run_here is None else partial(self._run_here, arguments)
        command = [sys.executable, "-P", "-m", "oarlock.cli", *arguments]  # -P: no file of this folder hides a library
        return Program(role, name, command, environment, report, life=life)

    def _environment(self, user: str, shard: str) -> dict[str, str]:
        return {
            "OARLOCK_SHARDS": str(self._options.shards),
            "OARLOCK_SHARD": shard,
            "OARLOCK_OPERATOR": "",  # these run the built-in controllers, whatever else is said elsewhere
            "OARLOCK_REDIS_URL": self._redis.url(user),
            "OARLOCK_KUBECONFIG": str(self._state.kubeconfig),
            "OARLOCK_KUBE_API_QPS": os.environ.get(
                "OARLOCK_KUBE_API_QPS", "0"
            ),  # our own API server: as fast as it goes
            "OARLOCK_METRICS_BIND_ADDRESS": "0",
            "OARLOCK_EMBEDDED": "1",
            **{f"OARLOCK_REDIS_TLS_{word}": "" for word in ("CA", "CERT", "KEY")},  # for another Redis than ours
        }

    def _start_redis(self) -> None:
        try:
            self._redis.start()
        except (NoRedisBinary, RedisNotStarted) as error:
            raise NotStarted(str(error)) from None
        self._state.write_redis_url(self.redis_url, self._redis.url("metrics"))

    def _start_api(self) -> None:
        options, state = self._options, self._state
        command = [
            *(sys.executable, "-P", "-m", "oarlock.sandbox.apiserver", "--port", str(options.api_port)),
            *("--nodes", str(options.nodes), "--state-dir", str(state.root), "--audit-log", str(state.audit_log)),
            *("--pods-per-node", str(options.pods_per_node), "--terminate-ms", str(options.terminate_ms)),
            *("--ready-ms", str(options.ready_ms), "--ready-jitter-ms", str(options.ready_ms)),
            *("--unpullable", options.unpullable),
            *(["--admin", "--audit-full"] if options.faults else []),  # a judge reads the bodies of all writes
            *(["--new-token"] if options.api_token else []),
        ]
        child = self._child(Program("api", "api", command))
        ours, theirs = os.pipe()
        try:
            self.tree.add_api(child, theirs)
        finally:
            os.close(theirs)
        try:
            facts = self._first_line(ours, child)
        finally:
            os.close(ours)
        self.api_url = str(facts["url"])

    def _child(self, program: Program) -> ProgramChild:
        return ProgramChild(program, self._state.logs, self.yields)

    def _first_line(self, fd: int, child: ProgramChild) -> dict[str, Any]:
        text, deadline_s = b"", time.monotonic() + API_LIMIT_S
        while b"\n" not in text:
            self.tree.check()
            readable, _, _ = select.select([fd], [], [], 0.1)
            if readable:
                chunk = os.read(fd, 65_536)
                if not chunk:
                    if isinstance(child.process, subprocess.Popen):
                        child.process.wait(5)
                    said = child.last_words().removeprefix("oarlock: ")
                    if "in use" in said:
                        raise NotStarted(_port_taken("--api-port", self._options.api_port))
                    raise NotStarted(f"the API server did not start: {said}")
                text += chunk
            elif time.monotonic() > deadline_s:
                raise NotStarted(f"the API server was not ready within {API_LIMIT_S:.0f} s; see {child.log}")
        facts: dict[str, Any] = json.loads(text.partition(b"\n")[0])
        return facts

    def _await_ready(self) -> None:
        """Wait until turns may begin and all workers are there."""
        client, deadline_s = connect(self.redis_url), time.monotonic() + READY_LIMIT_S

        def is_ready() -> bool:
            if time.monotonic() > deadline_s:
                words = {child.program.name: child.last_words() for child in self.tree.children}
                last = "; ".join(f"{name}: {said}" for name, said in words.items() if said)
                raise NotStarted(f"ingestors and workers were not ready within {READY_LIMIT_S:.0f} s ({last})")
            try:
                shards = [epoch.current(client, shard) for shard in names(self._options.shards)]
            except BrokerUnreachable:
                return False
            workers = sum(each.role == "worker" for each in self.tree.processes())
            opened = all(seen.intact and seen.phase == "OPEN" for seen in shards)
            return opened and workers >= self._options.workers

        try:
            self.tree.watch(is_ready, tick_s=0.02)
        finally:
            client.close()

    def _tell(self, word: str) -> None:
        options = self._options
        self._state.write_up(
            {
                "pid": os.getpid(),
                "state": word,
                "api_url": self.api_url,
                "redis_port": self._redis.port,
                "metrics": self.metrics_urls,
                "kubeconfig": str(self._state.kubeconfig),
                "started_ms": self._started_ms,
                "nodes": options.nodes,
                "workers": options.workers,
                "ingestors": options.ingestors,
                **({"shards": options.shards} if options.shards > 1 else {}),
            }
        )


def _marks(shards: int) -> list[tuple[str, str]]:
    """Each shard's name for a process's environment, and the suffix of its processes' names."""
    return [(shard, f"-s{shard}") for shard in names(shards)] if shards > 1 else [("", "")]


def _port_taken(option: str, port: int) -> str:
    return f"{option} {port}: the port is in use; choose another, or 0 for a free one"
