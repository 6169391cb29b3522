"""Kinds as a user names them: ``Website`` (a class), ``"apps/v1 Deployment"``, or ``Kind(...)`` in full."""

from __future__ import annotations

import re
from collections.abc import Iterable
from typing import TYPE_CHECKING

import msgspec

if TYPE_CHECKING:
    from oarlock.sdk.objects import Object

CLUSTER_SCOPED = {
    "": "ComponentStatus Namespace Node PersistentVolume",
    "admissionregistration.k8s.io": "MutatingAdmissionPolicy MutatingAdmissionPolicyBinding"
    " MutatingWebhookConfiguration ValidatingAdmissionPolicy ValidatingAdmissionPolicyBinding"
    " ValidatingWebhookConfiguration",
    "apiextensions.k8s.io": "CustomResourceDefinition",
    "apiregistration.k8s.io": "APIService",
    "authentication.k8s.io": "SelfSubjectReview TokenReview",
    "authorization.k8s.io": "SelfSubjectAccessReview SelfSubjectRulesReview SubjectAccessReview",
    "certificates.k8s.io": "CertificateSigningRequest ClusterTrustBundle",
    "flowcontrol.apiserver.k8s.io": "FlowSchema PriorityLevelConfiguration",
    "internal.apiserver.k8s.io": "StorageVersion",
    "networking.k8s.io": "IngressClass IPAddress ServiceCIDR",
    "node.k8s.io": "RuntimeClass",
    "rbac.authorization.k8s.io": "ClusterRole ClusterRoleBinding",
    "resource.k8s.io": "DeviceClass DeviceTaintRule ResourcePoolStatusRequest ResourceSlice",
    "scheduling.k8s.io": "PriorityClass",
    "storage.k8s.io": "CSIDriver CSINode StorageClass VolumeAttachment VolumeAttributesClass",
    "storagemigration.k8s.io": "StorageVersionMigration",
}
"""Group -> its kinds without a namespace, of the groups that Kubernetes itself serves (upstream: api/discovery). In
another group a kind of the same name may have namespaces, as longhorn.io Node has.
"""
PLURALS = {"Endpoints": "endpoints"}
"""Of Kubernetes's own kinds, those that the rule gets wrong."""
LABEL = r"[a-z]([-a-z0-9]{0,61}[a-z0-9])?"
"""What the API server takes for a plural, a short name, and a kind in small letters (RFC 1035)."""
LABEL_TOLD = "small letters, digits and dashes, at most 63, of which the first is a letter"
_API_VERSION = r"([a-z0-9.-]+/)?v[a-z0-9]+"


class BadDefinition(ValueError):
    """A controller or a type that cannot work; one line that names it and the mend."""


class Kind(msgspec.Struct, frozen=True):
    """A kind of object. `api_version`: `v1` or `<group>/<version>`. `plural`: empty for what English says.

    Raises BadDefinition for names that no API server takes: it would say so only when the kind is defined there.
    """

    api_version: str
    kind: str
    plural: str = ""
    namespaced: bool = True

    def __post_init__(self) -> None:
        if not (isinstance(self.api_version, str) and re.fullmatch(_API_VERSION, self.api_version)):
            raise BadDefinition(f"{self.kind}: api_version={self.api_version!r} has to be as v1, or example.com/v1")
        if not (isinstance(self.kind, str) and re.fullmatch(LABEL, self.kind.lower())):
            raise BadDefinition(f"{self.kind!r} cannot name a kind: write letters and digits, as in DatabaseBackup")
        if not isinstance(self.namespaced, bool):
            raise BadDefinition(f"{self.kind}: namespaced={self.namespaced!r} has to be True or False")
        if not self.plural:
            msgspec.structs.force_setattr(self, "plural", plural_of(self.kind))
        if not (isinstance(self.plural, str) and re.fullmatch(LABEL, self.plural)):
            raise BadDefinition(
                f"{self.kind}: plural={self.plural!r} has to be {LABEL_TOLD}; as {plural_of(self.kind)}"
            )

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

    def is_like(self, other: Kind) -> bool:
        """Whether both are one kind, perhaps in another version. A group has each kind under one plural only."""
        return (self.group, self.kind) == (other.group, other.kind)

    def __str__(self) -> str:
        return f"{self.api_version} {self.kind}"


def kind_of(what: Kind | str | type[Object]) -> Kind:
    """The kind that is meant. Raises BadDefinition."""
    if isinstance(what, Kind):
        return what
    if isinstance(what, str):
        api_version, blank, kind = what.partition(" ")
        if not blank or not re.fullmatch(r"[A-Z][A-Za-z0-9]*", kind) or not re.fullmatch(_API_VERSION, api_version):
            raise BadDefinition(f'{what!r} is no kind: write it as "apps/v1 Deployment", or give an oarlock.Kind')
        group = api_version.rpartition("/")[0]
        return Kind(api_version, kind, namespaced=kind not in CLUSTER_SCOPED.get(group, "").split())
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


def scope_hint(kind: Kind) -> str:
    """What to add to a message that misses a namespace; empty for kinds of which it is known that they have one."""
    if kind.group in CLUSTER_SCOPED or kind.group in ("apps", "batch"):
        return ""
    named = f'oarlock.Kind("{kind.api_version}", "{kind.kind}", namespaced=False)'
    return f"; if {kind.kind} is a kind without namespaces, name it as {named}"


def told(*kinds: Kind | str | type[Object]) -> str:
    """For messages: `"v1 Secret", "Website"`; `none` for no kinds."""
    names = (each if isinstance(each, str | Kind) else getattr(each, "__name__", each) for each in kinds)
    return ", ".join(f'"{each}"' for each in names) or "none"


def plural_of(kind: str) -> str:
    """The plural in lower case, as English has it: policies, keys, boxes, classes.

    apimachinery (meta.UnsafeGuessKindToResource) would say keies and boxs; but definitions have the names that their
    authors gave them, and generators of them (kubebuilder) say it as here.
    """
    word = kind.lower()
    if kind in PLURALS:
        return PLURALS[kind]
    if word.endswith(("s", "x", "z", "ch", "sh")):
        return word + "es"
    return word[:-1] + "ies" if re.search("[^aeiou]y$", word) else word + "s"
