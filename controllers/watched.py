"""A kind that is watched and cached: the first class of entry in the registry. The others are in `entries.py`."""

from collections.abc import Callable
from typing import Generic, TypeVar

import msgspec

from oarlock.controllers.columns import Columns
from oarlock.controllers.flavour import Flavour
from oarlock.controllers.objects import codec
from oarlock.controllers.ownership.claim import Claimer
from oarlock.controllers.ownership.owner_table import OwnerTable
from oarlock.controllers.pods import slots
from oarlock.controllers.routing import Routes, route_owner

T = TypeVar("T")
OwnerT = TypeVar("OwnerT", bound=Claimer)


class Watched(msgspec.Struct, Generic[T], frozen=True):
    """A kind whose objects are watched and cached.

    `api_version`: `v1` or `<group>/<version>`. `plural`: the last part of its path. `short_name`: kubectl's, or empty.
    `from_json`: an object's resourceVersion and projection. `decode`: the projection in a blob of the cache.
    `route`: gets the projection, whether the object has gone, and the owners known; returns index entries and keys.
    `columns`: of `oarlock get`, beside name, age and resourceVersion: heading -> cell.
    `namespaced`: keys are `<namespace>/<name>`; otherwise they are bare names.
    `owner_queue`: the queue whose keys these objects are; empty if no controller acts on them.
    `adoptable`: an owner may adopt an object of this kind that has no controller.
    `template_apart`: the cache keeps the pod template beside the blob, once for all owners with the same template.
    `cached_as`: what the cache calls its objects, if not by the plural: several groups may have one.
    `whole`: its projections are `controllers.objects.whole.Whole`, for controllers of one's own.
    """

    api_version: str
    plural: str
    kind: str
    short_name: str
    from_json: Callable[[bytes], tuple[str, T]]
    decode: Callable[[bytes], T]
    route: Callable[[T, bool, OwnerTable], Routes]
    columns: Columns = {}
    namespaced: bool = True
    owner_queue: str = ""
    adoptable: bool = False
    template_apart: bool = False
    cached_as: str = ""
    whole: bool = False

    @property
    def resource(self) -> str:
        """What the cache calls its objects."""
        return self.cached_as or self.plural

    @property
    def group(self) -> str:
        """The API group; empty for the core API."""
        return self.api_version.rpartition("/")[0]

    def is_called(self, word: str) -> bool:
        """Whether the word, in lower case, names the kind as kubectl takes it: plural, singular or short."""
        return bool(word) and word in (self.plural, self.kind.lower(), self.short_name, self.cached_as)

    def encode(self, obj: T) -> bytes:
        """The blob of a projection, without a template that is kept beside it."""
        return codec.encode_apart(obj) if self.template_apart else codec.encode(obj)

    def apart(self, obj: T) -> tuple[str, bytes] | None:
        """Name and bytes of the template that is kept beside the blob; None if nothing is."""
        return codec.template_apart(obj) if self.template_apart else None


def owner_kind(
    flavour: Flavour,
    plural: str,
    short_name: str,
    queue: str,
    from_json: Callable[[bytes], tuple[str, OwnerT]],
    decode: Callable[[bytes], OwnerT],
    columns: Columns,
    base_of: Callable[[str], str] = slots.base_of,
) -> Watched[OwnerT]:
    """A kind of owner of pods. Its projection has a `template`. `base_of`: from an owner's name to the beginning of its
    pods' names.
    """
    return Watched(
        api_version=flavour.api_version,
        plural=plural,
        kind=flavour.kind,
        short_name=short_name,
        from_json=from_json,
        decode=decode,
        route=lambda owner, gone, owners: route_owner(owner, gone, queue, base_of),
        columns=columns,
        owner_queue=queue,
        template_apart=True,
    )
