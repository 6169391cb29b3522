"""The command ``oarlock``. Each command is a module, loaded when the command is called.

A new command NAME is a click command NAME in a module NAME of one of the folders here, and a line in ``COMMANDS``.
"""

from __future__ import annotations

from oarlock.cli.group import LazyGroup

COMMANDS = {
    "run": ("run", "Start everything, do the main job on examples/, show it surviving a kill, end."),
    "up": ("run", "Start everything and stay: Redis, API server, nodes, ingestors, workers."),
    "status": ("look", "Which processes of an `oarlock up` are running."),
    "down": ("run", "Stop an `oarlock up` and wait until all its processes are gone."),
    "worker": ("run", "Run supervised workers against a Redis and a cluster."),
    "ingest": ("run", "Run an ingestor: it watches the cluster and fills cache and queues."),
    "operator": ("run", "Run controllers of your own: ingestor and workers in one command."),
    "dev": ("dev", "Try controllers of your own: a cluster, reload on every change, tables of what happens."),
    "config": ("run", "Every setting, its value, and where the value came from."),
    "top": ("top", "A live look: keys, workers, failures, namespaces, Redis; needs oarlock[top]."),
    "board": ("board", "The same as a page in the browser: plots, keys, workers, a key's life, a rollout."),
    "queue": ("look", "Keys queued, in work, delayed and parked, per controller."),
    "locks": ("look", "Who works on which key, since when and until when."),
    "expectations": ("look", "Writes announced and not yet seen in the cache, per key."),
    "get": ("look", "Objects of the fleet's cache."),
    "explain": ("explain", "Why has nothing happened to default/web?"),
    "history": ("explain", "What has been done about default/web: its last turns, and what queued them."),
    "plan": ("plan", "What would happen if this file were applied, step by step; writes nothing."),
    "nodes": ("nodes", "Add, remove, label, taint, cordon nodes of the embedded cluster."),
    "requeue": ("steer", "Queue keys again, now: some, or all of a namespace, with labels, that fail."),
    "park": ("steer", "Put keys aside for a while."),
    "replay": ("steer", "Queue keys again that are parked or keep failing."),
    "drain": ("steer", "Let a worker leave, or all workers of a supervisor."),
    "undrain": ("steer", "Let a supervisor that was drained start workers again."),
    "pause": ("steer", "Let no turn of a key, a namespace, a controller or at all begin."),
    "resume": ("steer", "End a pause; let a fleet work again that has paused itself."),
    "rate": ("steer", "How many turns of a controller or a namespace may begin in a second, from now on."),
    "weight": ("steer", "How large the share of a namespace or a controller is, from now on."),
    "shadow": ("shadow", "A dry run beside kube-controller-manager: was it decided as that did?"),
    "audit": ("steer", "What people did to the fleet: pauses, their ends, requeues, drains."),
    "epoch": ("look", "The epoch of the Redis data, its phase, the age of the cache."),
    "acl": ("run", "Write the ACL file of the fleet's Redis from its users' passwords."),
    "crd": ("operators", "CustomResourceDefinitions of your own controllers' types."),
    "rbac": ("operators", "The rights that your own controllers need, and no more."),
    "chaos": ("run", "A seeded campaign of faults with a verdict."),
}
"""name -> (the folder of its module, its line in the list of commands)"""

HELP = """Kubernetes workload controllers run by a fleet: keys on Redis streams, turns by RQ workers.

\b
On one machine, nothing else needed:
  oarlock run                          the main job, shown working
  oarlock up                           the same, staying until Ctrl-C
  oarlock up -f my-replicasets.yaml    with objects of your own
\b
Controllers of your own (docs/operators.md):
  oarlock dev site.py -f site.yaml     a cluster to try them in
  oarlock operator site.py --workers 8 --redis redis://redis:6379/0
  oarlock explain shop/web --operator site.py
\b
Looking into a running one (finds an `oarlock up` of yours by itself):
  oarlock top
  oarlock board
  oarlock queue
  oarlock explain shop/cart
\b
Against your own Redis and cluster:
  oarlock ingest --redis redis://ingestor:secret@redis:6379/0 --kubeconfig ~/.kube/config
  oarlock worker --redis redis://worker:secret@redis:6379/0 --kubeconfig ~/.kube/config --workers 4
"""

cli = LazyGroup("oarlock", COMMANDS, HELP, without_kinds={"operator"})


def main() -> None:
    """The console script."""
    cli()
