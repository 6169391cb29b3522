"""The URL paths under which a server keeps the objects of a kind."""

from dataclasses import dataclass
from functools import lru_cache
from urllib.parse import quote


@dataclass(frozen=True, slots=True)
class Resource:
    """One kind as a server spells it: `api_version` is `apps/v1`, or `v1` for the core group."""

    api_version: str
    plural: str
    kind: str
    namespaced: bool = True

    def collection(self, namespace: str = "") -> str:
        """Path of the collection; an empty namespace means all namespaces.

        Raises ValueError for a namespace on a kind that has none.
        """
        if namespace and not self.namespaced:
            raise ValueError(f"{self.kind} has no namespace, {namespace!r} given")
        return _collection(self.api_version, namespace, self.plural)

    def item(self, namespace: str, name: str, subresource: str = "") -> str:
        """Path of one object or of its subresource. Raises ValueError if a part is missing or too much.

        An empty name must never get through: DELETE would then address the whole collection.
        """
        if not name or (self.namespaced and not namespace):
            hint = "; if the kind has no namespaces, declare it with namespaced=False" if name else ""
            raise ValueError(f"{self.kind} needs a name and its namespace: {namespace!r}/{name!r}{hint}")
        path = f"{self.collection(namespace)}/{quote(name, safe='')}"
        return f"{path}/{subresource}" if subresource else path


@lru_cache(1_024)
def _collection(api_version: str, namespace: str, plural: str) -> str:
    root = f"/apis/{api_version}" if "/" in api_version else f"/api/{api_version}"
    return f"{root}/namespaces/{quote(namespace, safe='')}/{plural}" if namespace else f"{root}/{plural}"


PODS = Resource("v1", "pods", "Pod")
NODES = Resource("v1", "nodes", "Node", namespaced=False)
NAMESPACES = Resource("v1", "namespaces", "Namespace", namespaced=False)
EVENTS = Resource("v1", "events", "Event")
REPLICATIONCONTROLLERS = Resource("v1", "replicationcontrollers", "ReplicationController")
REPLICASETS = Resource("apps/v1", "replicasets", "ReplicaSet")
DAEMONSETS = Resource("apps/v1", "daemonsets", "DaemonSet")
DEPLOYMENTS = Resource("apps/v1", "deployments", "Deployment")
CONTROLLERREVISIONS = Resource("apps/v1", "controllerrevisions", "ControllerRevision")
LEASES = Resource("coordination.k8s.io/v1", "leases", "Lease")
