"""Kinds that are stored and shown, and that nothing here acts on.

Files that bring a workload to a cluster bring these along: access rights, disruption budgets, webhooks, definitions
of further kinds. None of it has an effect here, custom resources of the defined kinds are not served.
"""

from __future__ import annotations

from typing import Final

from oarlock.sandbox.apiserver.kinds.kind import Cascade, Kind
from oarlock.sandbox.apiserver.printing.printers import PRINTERS

_STATUS: Final = frozenset({"status"})
_RBAC: Final = "rbac.authorization.k8s.io"
_ADMISSION: Final = "admissionregistration.k8s.io"

STORED_KINDS: Final = (
    Kind(
        "Deployment",
        "deployments",
        "deployment",
        group="apps",
        short_names=("deploy",),
        categories=("all",),
        subresources=frozenset({"status", "scale"}),
        has_generation=True,
        printer=PRINTERS["Deployment"],
    ),
    Kind(
        "Job",
        "jobs",
        "job",
        group="batch",
        categories=("all",),
        subresources=_STATUS,
        has_generation=True,
        # Upstream: pkg/registry/batch/job/strategy.go, as it always was for batch/v1.
        cascade=Cascade.ORPHAN,
        printer=PRINTERS["Job"],
    ),
    Kind("Role", "roles", "role", group=_RBAC, printer=PRINTERS["Role"]),
    Kind("RoleBinding", "rolebindings", "rolebinding", group=_RBAC, printer=PRINTERS["RoleBinding"]),
    Kind("ClusterRole", "clusterroles", "clusterrole", group=_RBAC, namespaced=False, printer=PRINTERS["Role"]),
    Kind(
        "ClusterRoleBinding",
        "clusterrolebindings",
        "clusterrolebinding",
        group=_RBAC,
        namespaced=False,
        printer=PRINTERS["RoleBinding"],
    ),
    Kind(
        "PodDisruptionBudget",
        "poddisruptionbudgets",
        "poddisruptionbudget",
        group="policy",
        short_names=("pdb",),
        subresources=_STATUS,
        has_generation=True,
        printer=PRINTERS["PodDisruptionBudget"],
    ),
    Kind(
        "PriorityClass",
        "priorityclasses",
        "priorityclass",
        group="scheduling.k8s.io",
        short_names=("pc",),
        namespaced=False,
        printer=PRINTERS["PriorityClass"],
    ),
    Kind(
        "NetworkPolicy",
        "networkpolicies",
        "networkpolicy",
        group="networking.k8s.io",
        short_names=("netpol",),
        has_generation=True,
        printer=PRINTERS["NetworkPolicy"],
    ),
    Kind(
        "IngressClass",
        "ingressclasses",
        "ingressclass",
        group="networking.k8s.io",
        namespaced=False,
        has_generation=True,
        printer=PRINTERS["IngressClass"],
    ),
    Kind("CSIDriver", "csidrivers", "csidriver", group="storage.k8s.io", namespaced=False),
    Kind(
        "ValidatingWebhookConfiguration",
        "validatingwebhookconfigurations",
        "validatingwebhookconfiguration",
        group=_ADMISSION,
        categories=("api-extensions",),
        namespaced=False,
        printer=PRINTERS["WebhookConfiguration"],
    ),
    Kind(
        "MutatingWebhookConfiguration",
        "mutatingwebhookconfigurations",
        "mutatingwebhookconfiguration",
        group=_ADMISSION,
        categories=("api-extensions",),
        namespaced=False,
        printer=PRINTERS["WebhookConfiguration"],
    ),
    Kind(
        "CustomResourceDefinition",
        "customresourcedefinitions",
        "customresourcedefinition",
        group="apiextensions.k8s.io",
        short_names=("crd", "crds"),
        categories=("api-extensions",),
        namespaced=False,
        subresources=_STATUS,
        has_generation=True,
        printer=PRINTERS["CustomResourceDefinition"],
    ),
)
