"""`python -m oarlock.sandbox.apiserver`: the embedded API server as a process of its own.

Prints one JSON line when it is ready (`url`, `kubeconfig`, `pid`) and runs until SIGTERM or SIGINT.
Exit 2 with one line for an address that cannot be had or an argument that makes no sense.
"""

from __future__ import annotations

import argparse
import asyncio
import gc
import os
import secrets
import signal
import sys
from collections.abc import Sequence
from pathlib import Path

import orjson
import uvloop

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.http.faults import fault_from
from oarlock.sandbox.apiserver.http.watch import Pace
from oarlock.sandbox.apiserver.kubeconfig import write_kubeconfig
from oarlock.sandbox.apiserver.server import CannotListen, EmbeddedCluster, Settings
from oarlock.sandbox.apiserver.store.history import EVENTS_MAX
from oarlock.sandbox.host import write_file
from oarlock.sandbox.nodes.kubelet.images import UNPULLABLE, compiled
from oarlock.sandbox.nodes.settings import NodeSettings


def _parser() -> argparse.ArgumentParser:
    parser = argparse.ArgumentParser(prog="python -m oarlock.sandbox.apiserver", description="The embedded API server.")
    add = parser.add_argument
    add("--host", default="127.0.0.1", help="address to listen on (loopback by default)")
    add("--port", type=int, default=0, help="0: any free port")
    add("--state-dir", type=Path, help="where the kubeconfig is written (DIR/kubeconfig)")
    add("--kubeconfig", type=Path, help="write the kubeconfig here instead")
    add("--ready-file", type=Path, help="write the ready line here as well")
    add("--token", help="the bearer token every request must carry")
    add("--new-token", action="store_true", help="make one up; only the kubeconfig tells it")
    add("--tls-cert-file", type=Path)
    add("--tls-key-file", type=Path)
    add("--client-ca-file", type=Path, help="accept client certificates of this authority as users")
    add("--nodes", type=int, default=0, help="how many nodes to simulate")
    add("--pods-per-node", type=int, default=110)
    add("--ready-ms", type=float, default=0.0, help="how long a simulated pod takes to become ready")
    add("--ready-jitter-ms", type=float, default=0.0, help="up to so much longer")
    add("--terminate-ms", type=float, default=0.0, help="how long a simulated pod takes to end")
    add("--unpullable", default=UNPULLABLE, help="images that cannot be pulled; '': none (default: %(default)s)")
    add("--audit-log", type=Path, help="append an audit event for every write")
    add("--audit-full", action="store_true", help="request and response of every kind, not only of pods")
    add("--audit-reads", action="store_true", help="record reads too")
    add("--admin", action="store_true", help="open /_oarlock/ for faults on demand")
    add("--fault", action="append", default=[], metavar="JSON", help="a fault in force from the start")
    add("--seed", type=int, default=0, help="seed of the faults and of the nodes")
    add("--history-events", type=int, default=EVENTS_MAX, help="the most that a kind's history has")
    add("--bookmark-s", type=float, default=10.0, help="seconds between bookmarks on a quiet watch")
    return parser


def _settings(args: argparse.Namespace) -> Settings:
    """Raises ValueError or ApiError for arguments that make no sense."""
    if args.new_token and (args.token or not (args.kubeconfig or args.state_dir)):
        raise ValueError("--new-token needs --state-dir or --kubeconfig to write it into, and no --token")
    if not 0 <= args.port <= 65535:
        raise ValueError(f"--port {args.port} is not a port")
    if (args.tls_cert_file is None) != (args.tls_key_file is None):
        raise ValueError("--tls-cert-file and --tls-key-file go together")
    for name in ("nodes", "pods_per_node", "ready_ms", "ready_jitter_ms", "terminate_ms"):
        if getattr(args, name) < 0:
            raise ValueError(f"--{name.replace('_', '-')} must not be negative")
    try:
        unpullable = compiled(args.unpullable)
    except ValueError as error:
        raise ValueError(f"--unpullable: {error}") from None
    nodes = NodeSettings(
        nodes=args.nodes,
        pods_per_node=args.pods_per_node,
        ready_ms=args.ready_ms,
        ready_jitter_ms=args.ready_jitter_ms,
        terminate_ms=args.terminate_ms,
        seed=args.seed,
        unpullable=unpullable,
    )
    try:
        faults = tuple(fault_from(orjson.loads(text)) for text in args.fault)
    except orjson.JSONDecodeError as error:
        raise ValueError(f"--fault is not JSON: {error}") from None
    return Settings(
        host=args.host,
        port=args.port,
        token=secrets.token_urlsafe(32) if args.new_token else args.token,
        tls_cert_file=args.tls_cert_file,
        tls_key_file=args.tls_key_file,
        client_ca_file=args.client_ca_file,
        audit_log=args.audit_log,
        audit_full_for_all=args.audit_full,
        audit_reads=args.audit_reads,
        faults_enabled=args.admin or bool(faults),
        faults=faults,
        seed=args.seed,
        history_events_max=args.history_events,
        nodes=nodes if args.nodes else None,
        pace=Pace(quiet_s=args.bookmark_s, progress_s=min(1.0, args.bookmark_s)),
    )


async def serve(settings: Settings, *, kubeconfig: Path | None = None, ready_file: Path | None = None) -> None:
    """Run until SIGTERM or SIGINT. Raises CannotListen."""
    stopping = asyncio.Event()
    loop = asyncio.get_running_loop()
    for number in (signal.SIGTERM, signal.SIGINT):
        loop.add_signal_handler(number, stopping.set)
    async with EmbeddedCluster(settings) as cluster:
        if kubeconfig is not None:
            write_kubeconfig(kubeconfig, cluster.url, token=settings.token, ca_file=settings.tls_cert_file)
        ready = {
            "url": cluster.url,
            "kubeconfig": str(kubeconfig) if kubeconfig is not None else "",
            "pid": os.getpid(),
        }
        line = orjson.dumps(ready).decode()
        if ready_file is not None:
            write_file(ready_file, line + "\n", 0o644)
        print(line, flush=True)
        await stopping.wait()


def main(argv: Sequence[str] | None = None) -> int:
    args = _parser().parse_args(argv)
    kubeconfig = args.kubeconfig or (args.state_dir / "kubeconfig" if args.state_dir is not None else None)
    # Stored objects are trees that live long: hunting for cycles among them costs more than it finds.
    gc.set_threshold(200_000, 50, 100)
    try:
        if args.state_dir is not None:
            args.state_dir.mkdir(parents=True, exist_ok=True)
        uvloop.run(serve(_settings(args), kubeconfig=kubeconfig, ready_file=args.ready_file))
    except (CannotListen, ValueError, ApiError, OSError) as error:
        print(f"oarlock: {error}", file=sys.stderr)
        return 2
    return 0


if __name__ == "__main__":
    sys.exit(main())
