"""The example of kopf's documentation, ported: a PersistentVolumeClaim an object, its size and labels kept up.

There (https://docs.kopf.dev/en/stable/walkthrough/) it is a handler for the creation, one for an update and one for
changed labels, and the name of the claim passes between them by the status. Here one function says what the claim has
to be. Creation, update, labels, and a claim that somebody deleted or changed by hand are all the same case.

`ephemeralvolumeclaim_kopf.py` does it with kopf. The tests run both side by side.
"""

from typing import Annotated

from msgspec import Meta

import oarlock


class ClaimSpec(oarlock.Struct):
    size: Annotated[str, Meta(pattern="^[1-9][0-9]*(Ki|Mi|Gi|Ti|k|M|G|T)?$")]


class ClaimStatus(oarlock.Struct):
    pvc_name: str = ""
    phase: str = "Pending"


@oarlock.resource("example.com/v1", short_name="evc", columns={"Size": "spec.size", "Phase": "status.phase"})
class EphemeralVolumeClaim(oarlock.Object):
    """A volume that lives as long as this object."""

    spec: ClaimSpec
    status: ClaimStatus | None = None


@oarlock.desired(EphemeralVolumeClaim, children=["v1 PersistentVolumeClaim"])
def ephemeralvolumeclaim(claim: EphemeralVolumeClaim, children: oarlock.Children) -> oarlock.Result:
    pvc = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": claim.name, "labels": claim.metadata.labels},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": claim.spec.size}}},
    }
    there = children.get("PersistentVolumeClaim", claim.name) or {}
    phase = there.get("status", {}).get("phase", "Pending")
    return oarlock.Result([pvc], status=ClaimStatus(pvc_name=claim.name, phase=phase))
