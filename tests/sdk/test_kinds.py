"""Which kinds have namespaces, where a user does not say so."""

from __future__ import annotations

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
