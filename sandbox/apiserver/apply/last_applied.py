"""From client-side apply to server-side apply: the annotation in which kubectl keeps what it applied.

Upstream: managedfields/internal/lastappliedmanager.go and lastappliedupdater.go. Both act for the manager `kubectl` on
objects that carry the annotation.
"""

from __future__ import annotations

from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.apply.field_sets import FieldSet, difference, union
from oarlock.sandbox.apiserver.apply.field_types import FieldType
from oarlock.sandbox.apiserver.apply.typed import compare, fields_of

Obj = dict[str, Any]

KUBECTL: Final = "kubectl"
LAST_APPLIED: Final = "kubectl.kubernetes.io/last-applied-configuration"
ANNOTATION_BYTES_MAX: Final = 256 * 1024


def annotation_of(obj: Obj | None) -> str:
    """What kubectl last applied to the object, as JSON; "" if it never did so."""
    return str(((obj or {}).get("metadata", {}).get("annotations") or {}).get(LAST_APPLIED, ""))


def free_to_take(live: Obj | None, type_: FieldType) -> FieldSet:
    """The fields that kubectl applied and that still have the values it gave them: it may take them over.

    Raises NotTyped.
    """
    try:
        config = orjson.loads(annotation_of(live) or b"{}")
    except orjson.JSONDecodeError:
        return {}  # as upstream: an annotation that cannot be read allows nothing
    if live is None or not isinstance(config, dict):
        return {}
    found = compare(config, live, type_)
    return difference(fields_of(config, type_), union(union(found.removed, found.modified), found.added))


def kept_up(obj: Obj, config: Obj) -> Obj:
    """`obj` with its annotation as a client-side apply of `config` would have left it; one too long is emptied."""
    if not annotation_of(obj):
        return obj
    meta = {key: value for key, value in config["metadata"].items() if key != "managedFields"}
    if LAST_APPLIED in (annotations := meta.get("annotations") or {}):
        meta["annotations"] = {key: value for key, value in annotations.items() if key != LAST_APPLIED}
    text = orjson.dumps({**config, "metadata": meta}).decode() + "\n"
    merged = obj["metadata"]
    others = sum(len(key) + len(value) for key, value in merged["annotations"].items() if key != LAST_APPLIED)
    if others + len(text) > ANNOTATION_BYTES_MAX:
        text = ""
    return {**obj, "metadata": {**merged, "annotations": {**merged["annotations"], LAST_APPLIED: text}}}
