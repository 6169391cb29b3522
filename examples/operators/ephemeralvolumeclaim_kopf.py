"""What `ephemeralvolumeclaim.py` does, written for kopf after the walkthrough in its documentation, for comparison.

    pip install kopf kubernetes
    kopf run examples/operators/ephemeralvolumeclaim_kopf.py --all-namespaces

A handler for each thing that happens: the claim is created, its size changes, its labels change. None for a
PersistentVolumeClaim that somebody deletes or changes by hand: kopf tells of the objects that it handles.
"""

import kopf
from kubernetes.client import CoreV1Api

KIND = ("kopf.example.com", "ephemeralvolumeclaims")


@kopf.on.create(*KIND)
def create(name, namespace, spec, labels, **_):
    if not spec.get("size"):
        raise kopf.PermanentError("spec.size is missing")
    pvc = {
        "apiVersion": "v1",
        "kind": "PersistentVolumeClaim",
        "metadata": {"name": name, "labels": dict(labels)},
        "spec": {"accessModes": ["ReadWriteOnce"], "resources": {"requests": {"storage": spec["size"]}}},
    }
    kopf.adopt(pvc)
    CoreV1Api().create_namespaced_persistent_volume_claim(namespace, pvc)
    return {"pvcName": name}  # kopf keeps it in the status, under the name of the handler


@kopf.on.update(*KIND, field="spec.size")
def resize(namespace, status, new, **_):
    change(namespace, status, {"spec": {"resources": {"requests": {"storage": new}}}})


@kopf.on.update(*KIND, field="metadata.labels")
def relabel(namespace, status, old, new, **_):
    removed = dict.fromkeys(old or {})
    change(namespace, status, {"metadata": {"labels": {**removed, **(new or {})}}})


def change(namespace, status, patch):
    CoreV1Api().patch_namespaced_persistent_volume_claim(status["create"]["pvcName"], namespace, patch)
