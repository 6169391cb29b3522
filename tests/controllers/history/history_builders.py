"""Small builders of owners of templates and of their revisions."""

from collections.abc import Mapping
from typing import Any

from oarlock.controllers.daemonset.model import DaemonSet, DaemonSetStatus
from oarlock.controllers.history.digest import template_digest
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision, revision_hash, revision_name
from oarlock.controllers.objects.model import OwnerRef, label_selector
from oarlock.controllers.scheduling.model import Placement
from tests.controllers.builders import OTHER_UID, UID, WEB, pod

OUR_DAEMONS = OwnerRef("apps/v1", "DaemonSet", "web", UID, True, True)
THEIR_DAEMONS = OwnerRef("apps/v1", "DaemonSet", "api", OTHER_UID, True, True)


def template(image: str) -> bytes:
    """A pod template with labels app=web."""
    return b'{"metadata":{"labels":{"app":"web"}},"spec":{"containers":[{"name":"c","image":"%s"}]}}' % image.encode()


def hash_for(image: str, collision_count: int | None = None) -> str:
    """The hash a revision of that template gets."""
    return revision_hash(template_digest(template(image)), collision_count)


def daemons(image: str = "v1", collision_count: int | None = None, **fields: Any) -> DaemonSet:
    """A DaemonSet default/web that selects app=web."""
    base: dict[str, Any] = {
        "namespace": "default",
        "name": "web",
        "uid": UID,
        "generation": 1,
        "selector": label_selector(WEB),
        "template": template(image),
        "template_digest": template_digest(template(image)),
        "placement": Placement(),
        "status": DaemonSetStatus(observed_generation=1, collision_count=collision_count),
    }
    return DaemonSet(**(base | fields))


def revision(
    number: int, image: str, name: str = "", labels: Mapping[str, str] | None = None, **fields: Any
) -> ControllerRevision:
    """One of default/web, as the controller makes it; its UID is `uid-<name>`. `name`: the part after `web-`."""
    name = revision_name("web", name or hash_for(image))
    base: dict[str, Any] = {
        "namespace": "default",
        "name": name,
        "uid": f"uid-{name}",
        "labels": dict(WEB) | {HASH_LABEL: hash_for(image)} if labels is None else dict(labels),
        "owner_refs": (OUR_DAEMONS,),
        "revision": number,
        "digest": template_digest(template(image)),
    }
    return ControllerRevision(**(base | fields))


def daemon_pod(name: str, pod_hash: str, **fields: Any) -> Any:
    """A pod of default/web that bears a hash label."""
    return pod(name, **({"owner_refs": (OUR_DAEMONS,), "labels": dict(WEB) | {HASH_LABEL: pod_hash}} | fields))
