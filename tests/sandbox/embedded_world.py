"""A store and small builders for tests of the background parts."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest

from oarlock.sandbox.apiserver.store.store import Store

Obj = dict[str, Any]


def store_with(*namespaces: str) -> Store:
    """A store with a fixed clock and the given namespaces."""
    store = Store(clock=lambda: 1_800_000_000.0, seed=1)
    for name in namespaces or ("default",):
        store.create(
            "Namespace",
            {
                "metadata": {"name": name},
                "spec": {"finalizers": ["kubernetes"]},
                "status": {"phase": "Active"},
            },
        )
    return store


def ref(owner: Obj, kind: str = "ReplicaSet", *, controller: bool = True, block: bool = True) -> Obj:
    """An owner reference to a stored object."""
    meta = owner["metadata"]
    version = "apps/v1" if kind == "ReplicaSet" else "v1"
    reference: Obj = {"apiVersion": version, "kind": kind, "name": meta["name"], "uid": meta["uid"]}
    return {**reference, "controller": controller, "blockOwnerDeletion": block}


def add(store: Store, kind: str, name: str, *refs: Obj, namespace: str = "default", **more: Any) -> Obj:
    """Store an object owned by `refs`; `meta` in `more` adds metadata, the rest are fields."""
    meta: Obj = {"name": name, "namespace": namespace, **more.pop("meta", {})}
    if refs:
        meta["ownerReferences"] = list(refs)
    if kind == "Pod":
        more.setdefault("spec", {"containers": [{"name": "c", "image": "i"}]})
        more.setdefault("status", {"phase": "Pending", "qosClass": "BestEffort"})
    return store.create(kind, {"metadata": meta, **more})


def names(store: Store, kind: str, namespace: str | None = None) -> list[str]:
    return [obj["metadata"]["name"] for obj in store.list(kind, namespace)]


def no_failed_looks(caplog: pytest.LogCaptureFixture) -> Iterator[None]:
    """Body of a fixture: a look that raises is logged and the next one goes on; in a test it is a failure."""
    yield
    assert [record.getMessage() for record in caplog.records if record.levelname == "ERROR"] == []
