"""Kinds as a user names them: ``Website`` (a class), ``"apps/v1 Deployment"``, or ``Kind(...)`` in full."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from oarlock.sdk.objects import Object

CLUSTER_SCOPED = frozenset(
    """Namespace Node PersistentVolume ClusterRole ClusterRoleBinding StorageClass IngressClass PriorityClass
    CustomResourceDefinition MutatingWebhookConfiguration ValidatingWebhookConfiguration APIService RuntimeClass
    ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding CSIDriver CSINode VolumeAttachment""".split()  # noqa: SIM905
)
"""Kubernetes's own kinds without a namespace."""
PLURALS = {"Endpoints": "endpoints"}
"""Of Kubernetes's own kinds, those that the rule gets wrong."""


class BadDefinition(ValueError):
    """A controller or a type that cannot work; one line that names it and the mend."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of object. `api_version`: `v1` or `<group>/<version>`. `plural`: empty for what English says."""

    api_version: str
    kind: str
    plural: str = ""
    namespaced: bool = True

    def __post_init__(self) -> None:
        if not self.plural:
            msgspec.structs.force_setattr(self, "plural", plural_of(self.kind))

    @property
    def group(self) -> str:
        """Empty for the core API."""
        return self.api_version.rpartition("/")[0]

    @property
    def version(self) -> str:
        return self.api_version.rpartition("/")[2]

    @property
    def resource(self) -> str:
        """What the cache calls its objects: `websites.example.com`, `services.v1`."""
        return f"{self.plural}.{self.group or self.version}"

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


def kind_of(what: Kind | str | type[Object]) -> Kind:
    """The kind that is meant. Raises BadDefinition."""
    if isinstance(what, Kind):
        return what
    if isinstance(what, str):
        api_version, blank, kind = what.partition(" ")
        if (
            not blank
            or not re.fullmatch(r"[A-Z][A-Za-z0-9]*", kind)
            or not re.fullmatch(r"([a-z0-9.-]+/)?v[a-z0-9]+", api_version)
        ):
            raise BadDefinition(f'{what!r} is no kind: write it as "apps/v1 Deployment", or give an oarlock.Kind')
        return Kind(api_version, kind, namespaced=kind not in CLUSTER_SCOPED)
    found = getattr(what, "kind", None)
    if not isinstance(found, Kind):
        raise BadDefinition(f'{what!r} is no kind: put @oarlock.resource("<group>/<version>") above the class')
    return found


def among(what: Kind | str | type[Object], known: Iterable[Kind]) -> Kind | None:
    """The one of these kinds that is meant: by its name alone, or in full and of any version. None: none, or several.

    Raises BadDefinition for what is no kind.
    """
    if isinstance(what, str) and " " not in what:
        found = {each.resource: each for each in known if each.kind == what}
    else:
        asked = kind_of(what)
        found = {each.resource: each for each in known if (each.group, each.kind) == (asked.group, asked.kind)}
    return next(iter(found.values())) if len(found) == 1 else None


def told(*kinds: Kind | str | type[Object]) -> str:
    """For messages: `"v1 Secret", "Website"`; `none` for no kinds."""
    names = (each if isinstance(each, str | Kind) else getattr(each, "__name__", each) for each in kinds)
    return ", ".join(f'"{each}"' for each in names) or "none"


def plural_of(kind: str) -> str:
    """The plural in lower case, by the rule of apimachinery (meta.UnsafeGuessKindToResource)."""
    word = kind.lower()
    if kind in PLURALS:
        return PLURALS[kind]
    if word.endswith("s"):
        return word + "es"
    return word[:-1] + "ies" if word.endswith("y") else word + "s"
