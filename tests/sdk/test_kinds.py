"""How a kind is named, and which have namespaces where a user does not say so."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock
from oarlock.cluster.resources import Resource
from oarlock.sdk.kinds import kind_of
from oarlock.testing import FakeContext

SCOPES = [
    ("v1 Node", False),
    ("v1 Namespace", False),
    ("v1 Secret", True),
    ("apps/v1 Deployment", True),
    ("certificates.k8s.io/v1 CertificateSigningRequest", False),
    ("certificates.k8s.io/v1beta1 PodCertificateRequest", True),
    ("storage.k8s.io/v1 VolumeAttributesClass", False),
    ("storage.k8s.io/v1 CSIStorageCapacity", True),
    ("resource.k8s.io/v1 DeviceClass", False),
    ("resource.k8s.io/v1beta2 ResourceSlice", False),
    ("resource.k8s.io/v1 ResourceClaim", True),
    ("networking.k8s.io/v1 ServiceCIDR", False),
    ("networking.k8s.io/v1 IPAddress", False),
    ("networking.k8s.io/v1 Ingress", True),
    ("flowcontrol.apiserver.k8s.io/v1 FlowSchema", False),
    ("flowcontrol.apiserver.k8s.io/v1 PriorityLevelConfiguration", False),
    ("rbac.authorization.k8s.io/v1 ClusterRole", False),
    ("rbac.authorization.k8s.io/v1 Role", True),
    ("longhorn.io/v1beta2 Node", True),
    ("example.com/v1 StorageClass", True),
]


@pytest.mark.parametrize(("what", "namespaced"), SCOPES)
def test_a_kind_is_known_by_its_group_and_name(what: str, namespaced: bool) -> None:
    assert kind_of(what).namespaced is namespaced


ISSUER = "cert-manager.io/v1 ClusterIssuer"
"""A kind without namespaces that is not Kubernetes's own."""


@oarlock.steps("v1 Node", children=[ISSUER, "v1 Secret"], watches=[oarlock.watch("v1 Pod", names=lambda node: [])])
def node(obj: object, ctx: oarlock.Context) -> None: ...


def test_where_a_namespace_is_missing_it_is_told_how_to_say_that_there_is_none() -> None:
    ctx = FakeContext(node, {"kind": "Node", "metadata": {"name": "a"}})
    mend = 'name it as oarlock.Kind("cert-manager.io/v1", "ClusterIssuer", namespaced=False)'
    body = {"apiVersion": "cert-manager.io/v1", "kind": "ClusterIssuer", "metadata": {"name": "le"}}
    for call in (lambda: ctx.create(body), lambda: ctx.delete("ClusterIssuer", "le")):
        with pytest.raises(oarlock.Never) as told:
            call()
        assert told.value.message.startswith("node: Node a: ")
        assert told.value.message.endswith(f"as Node a has none; if ClusterIssuer is a kind without namespaces, {mend}")
    with pytest.raises(oarlock.Never) as told:
        ctx.delete("Secret", "le")
    assert told.value.message.endswith("give namespace/name, as Node a has none")
    assert ctx.did.writes == []


def test_an_object_without_a_namespace_of_a_kind_that_should_have_one() -> None:
    with pytest.raises(ValueError, match="declare it with namespaced=False"):
        Resource("cert-manager.io/v1", "clusterissuers", "ClusterIssuer").item("", "le")


NO_KINDS: list[tuple[dict[str, Any], str]] = [
    ({"plural": "Sites"}, "Site: plural='Sites' has to be small letters, digits and dashes, at most 63, .*; as sites"),
    ({"plural": "my_sites"}, "Site: plural='my_sites' has to be small letters"),
    ({"plural": "s" * 64}, "Site: plural='s{64}' has to be small letters"),
    ({"plural": ["sites"]}, r"Site: plural=\['sites'\] has to be small letters"),
    ({"kind": "My_Site"}, "'My_Site' cannot name a kind: write letters and digits, as in DatabaseBackup"),
    ({"kind": "Gr\u00f6\u00dfe"}, "cannot name a kind"),
    ({"kind": ""}, "'' cannot name a kind"),
    ({"api_version": "example.com/1"}, "Site: api_version='example.com/1' has to be as v1, or example.com/v1"),
    ({"api_version": "Example.com/v1"}, "Site: api_version='Example.com/v1' has to be"),
    ({"namespaced": "Cluster"}, "Site: namespaced='Cluster' has to be True or False"),
]


@pytest.mark.parametrize(("says", "told"), NO_KINDS, ids=lambda each: str(each)[:40])
def test_names_that_no_server_takes_are_told_where_they_are_written(says: dict[str, Any], told: str) -> None:
    with pytest.raises(oarlock.BadDefinition, match=f"^{told}" if told[0] != "c" else told):
        oarlock.Kind(**{"api_version": "example.com/v1", "kind": "Site", **says})


PLURALS = {
    "Website": "websites",
    "NetworkPolicy": "networkpolicies",
    "ApiKey": "apikeys",
    "Gateway": "gateways",
    "Ingress": "ingresses",
    "Sandbox": "sandboxes",
    "Switch": "switches",
    "Mesh": "meshes",
    "Endpoints": "endpoints",
    "CSIStorageCapacity": "csistoragecapacities",
}


@pytest.mark.parametrize(("kind", "plural"), PLURALS.items())
def test_the_plural_is_that_of_english(kind: str, plural: str) -> None:
    assert oarlock.Kind("example.com/v1", kind).plural == plural
