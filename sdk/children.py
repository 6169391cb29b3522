"""What a desired-state function is given beside its object: its children, and what its controller watches for it."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from copy import copy
from typing import Any

from oarlock.sdk.errors import Never
from oarlock.sdk.kinds import Kind, among, kind_of, told
from oarlock.sdk.objects import AnyKind

Json = dict[str, Any]


class Children:
    """The objects of a claim, as a function gets them: those that its object owns, and those that it watches.

    They are plain dicts. Do not change them: other turns read the same. A kind is one that the controller declares:
    "Deployment", "apps/v1 Deployment", a Kind or a class. Any other raises Never, which names those that are declared.
    """

    def __init__(self, owned: Iterable[Json] = (), others: Iterable[Json] = ()) -> None:
        """From the objects themselves; `others`: those watched. A controller that is called with it says its kinds."""
        self._owned, self._others = list(owned), list(others)
        self._by_name = {False: _by_name(self._owned), True: _by_name(self._others)}
        self._controller = self._namespace = ""
        self._declared: dict[bool, Sequence[Kind]] = {}

    def get(self, kind: AnyKind, name: str) -> Json | None:
        """The child of this kind and name, None if there is none yet. An owner without a namespace may have several of
        a name; then `name` is `namespace/name`.
        """
        return self._one(kind, name, watched=False)

    def of(self, kind: AnyKind) -> list[Json]:
        """All children of a kind."""
        asked = self._asked(kind, watched=False)
        return [each for each in self._owned if _is(each, asked)]

    def watched(self, kind: AnyKind, key: str) -> Json | None:
        """The object of a watched kind; `key`: `namespace/name`. A bare name is one in the object's own namespace, or
        of a kind without namespaces.
        """
        return self._one(kind, key, watched=True)

    def all_watched(self, kind: AnyKind) -> list[Json]:
        """All that the watches on a kind have found for this object."""
        asked = self._asked(kind, watched=True)
        return [each for each in self._others if _is(each, asked)]

    def __iter__(self) -> Iterator[Json]:
        return iter(self._owned)

    def __len__(self) -> int:
        return len(self._owned)

    def _asked(self, kind: AnyKind, *, watched: bool) -> Kind | str:
        """The kind that is meant; a bare name where nobody has said which there are. Raises Never."""
        if not self._declared:
            return kind if isinstance(kind, str) and " " not in kind else kind_of(kind)
        found = among(kind, self._declared[watched])
        if found is not None:
            return found
        where, instead = ("watches=", "children.get()") if watched else ("children=", "children.watched()")
        hint = f"; ask {instead} for it" if among(kind, self._declared[not watched]) else ""
        known = told(*self._declared[watched])
        raise Never(f"{self._controller}: {told(kind)} is not one of its {where} ({known}){hint}")

    def _one(self, kind: AnyKind, name: str, *, watched: bool) -> Json | None:
        asked = self._asked(kind, watched=watched)
        namespace, _, bare = name.rpartition("/")
        places = (namespace,) if namespace else ("", self._namespace) if self._namespace else None
        named = self._by_name[watched].get((asked if isinstance(asked, str) else asked.kind, bare), ())
        found = [each for each in named if _is(each, asked) and (places is None or _namespace(each) in places)]
        if len(found) > 1:
            raise Never(f"{self._controller}: it has several {told(asked)} of the name {bare}: ask for namespace/name")
        return found[0] if found else None


def given_to(
    children: Children, controller: str, namespace: str, kinds: Sequence[Kind], watches: Sequence[Kind]
) -> Children:
    """The same objects, for a function over an object of this namespace, whose controller declares these kinds."""
    same = copy(children)
    same._controller, same._namespace = controller, namespace
    same._declared = {False: kinds, True: watches}
    return same


def _by_name(objects: Iterable[Json]) -> dict[tuple[str, str], list[Json]]:
    found: dict[tuple[str, str], list[Json]] = {}
    for each in objects:
        found.setdefault((each["kind"], each["metadata"]["name"]), []).append(each)
    return found


def _is(obj: Json, asked: Kind | str) -> bool:
    """Of any version. An object that does not say its group, as one of a test may, is of any."""
    if isinstance(asked, str):
        return bool(obj["kind"] == asked)
    group = str(obj.get("apiVersion", asked.api_version)).rpartition("/")[0]
    return (obj["kind"], group) == (asked.kind, asked.group)


def _namespace(obj: Json) -> str:
    return str(obj["metadata"].get("namespace") or "")
