"""The command ``oarlock``. Each command is a module, loaded when the command is called.

A new command is a module with a click command and a line in ``COMMANDS``.
"""

from __future__ import annotations

from oarlock.cli.group import LazyGroup

COMMANDS = {
    "run": (
        "oarlock.cli.run.run:run",
        "Start everything, do the main job on examples/, show it surviving a kill, end.",
    ),
    "up": ("oarlock.cli.run.up:up", "Start everything and stay: Redis, API server, nodes, ingestors, workers."),
    "status": ("oarlock.cli.look.status:status", "Which processes of an `oarlock up` are running."),
    "down": ("oarlock.cli.run.down:down", "Stop an `oarlock up` and wait until all its processes are gone."),
    "worker": ("oarlock.cli.run.worker:worker", "Run supervised workers against a Redis and a cluster."),
    "ingest": ("oarlock.cli.run.ingest:ingest", "Run an ingestor: it watches the cluster and fills cache and queues."),
    "config": ("oarlock.cli.run.config:config", "Every setting, its value, and where the value came from."),
    "queue": ("oarlock.cli.look.queue:queue", "Keys queued, in work, delayed and parked, per controller."),
    "locks": ("oarlock.cli.look.locks:locks", "Who works on which key, since when and until when."),
    "expectations": (
        "oarlock.cli.look.expectations:expectations",
        "Writes announced and not yet seen in the cache, per key.",
    ),
    "get": ("oarlock.cli.look.get:get", "Objects of the fleet's cache."),
    "explain": ("oarlock.cli.explain.explain:explain", "Why has nothing happened to default/web?"),
    "nodes": ("oarlock.cli.nodes.nodes:nodes", "Add, remove, label, taint, cordon nodes of the embedded cluster."),
    "requeue": ("oarlock.cli.look.requeue:requeue", "Queue a key again, now."),
    "resume": ("oarlock.cli.look.resume:resume", "Let a paused fleet work again."),
    "epoch": ("oarlock.cli.look.epoch:epoch", "The epoch of the Redis data, its phase, the age of the cache."),
    "acl": ("oarlock.cli.run.acl:acl", "Write the ACL file of the fleet's Redis from its users' passwords."),
    "chaos": ("oarlock.cli.run.chaos:chaos", "A seeded campaign of faults with a verdict."),
}
"""name -> ("module:attribute", its line in the list of commands)"""

HELP = """Kubernetes workload controllers run by a fleet: keys on Redis streams, turns by RQ workers.

\b
On one machine, nothing else needed:
  oarlock run                          the main job, shown working
  oarlock up                           the same, staying until Ctrl-C
  oarlock up -f my-replicasets.yaml    with objects of your own
\b
Looking into a running one (finds an `oarlock up` of yours by itself):
  oarlock queue
  oarlock explain shop/cart
\b
Against your own Redis and cluster:
  oarlock ingest --redis redis://ingestor:secret@redis:6379/0 --kubeconfig ~/.kube/config
  oarlock worker --redis redis://worker:secret@redis:6379/0 --kubeconfig ~/.kube/config --workers 4
"""

cli = LazyGroup("oarlock", COMMANDS, HELP)


def main() -> None:
    """The console script."""
    cli()
