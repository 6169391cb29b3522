"""What differs between the kinds that share a decision: one engine, a flavour for each kind.

Upstream: `pkg/controller/replication/replication_controller.go` runs the ReplicaSet controller for
ReplicationControllers.
"""

import msgspec

BURST = 500  # creates or deletes of one sync; upstream compiles it in too, and 250 for DaemonSets


class Flavour(msgspec.Struct, frozen=True):
    """One kind of owner as the shared engine sees it.

    `api_version` and `kind` go into owner references, `component` is the source of events. `colocates`: a pod that
    shares its node with pods of related owners is deleted earlier. `has_terminating`: the kind's
    status has a field for terminating pods. `burst` is the most creates or deletes of one sync.
    """

    api_version: str
    kind: str
    component: str
    colocates: bool
    has_terminating: bool
    burst: int = BURST

    def reports_terminating(self, cluster_reports: bool) -> bool:
        """Whether status.terminatingReplicas is written: the kind has the field and the cluster keeps it.

        The server drops a field that the kind lacks, so it would be written again for ever.
        """
        return self.has_terminating and cluster_reports


REPLICASET = Flavour(
    api_version="apps/v1",
    kind="ReplicaSet",
    component="replicaset-controller",
    colocates=True,
    has_terminating=True,
)

REPLICATIONCONTROLLER = Flavour(
    api_version="v1",
    kind="ReplicationController",
    component="replication-controller",
    colocates=False,
    has_terminating=False,
)

DAEMONSET = Flavour(
    api_version="apps/v1",
    kind="DaemonSet",
    component="daemonset-controller",
    colocates=False,
    has_terminating=False,
    burst=250,
)

DEPLOYMENT = Flavour(
    api_version="apps/v1",
    kind="Deployment",
    component="deployment-controller",
    colocates=False,
    has_terminating=True,
)
