"""A controller of a user's own with a bug that no Python catches: a library that reads where nothing is."""

from __future__ import annotations

import ctypes

import oarlock


class Spec(oarlock.Struct):
    codec: str


@oarlock.resource("example.com/v1")
class Clip(oarlock.Object):
    """A film to be made smaller."""

    spec: Spec


@oarlock.desired(Clip, children=["v1 ConfigMap"], name="clip")
def clip(film: Clip, children: oarlock.Children) -> oarlock.Result:
    """One codec is what its library cannot read."""
    if film.spec.codec == "broken":
        ctypes.string_at(0)
    return oarlock.Result(
        [{"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": film.name}, "data": {"codec": film.spec.codec}}]
    )
