"""The part of a spec in which the pods of one template differ: where each of them is to run.

A DaemonSet's pods are made from one template and each has a node affinity of its own. Neither defaulting nor
validation has a rule that joins these fields with others, so the rest is worked out once for all of them.
"""

from __future__ import annotations

from typing import Any, Final

Obj = dict[str, Any]

OWN_FIELDS: Final = ("affinity", "nodeName")


def parted(spec: Obj) -> tuple[Obj, Obj]:
    """What pods of one template have in common, and what is this pod's own; `spec` itself if nothing is."""
    own: Obj = {field: spec[field] for field in OWN_FIELDS if field in spec}
    if not own:
        return spec, own
    return {field: value for field, value in spec.items() if field not in own}, own
