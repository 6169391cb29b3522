"""All kinds but pods and their owners."""

from __future__ import annotations

import msgspec

from oarlock.sandbox.apiserver.shapes.common import (
    Condition,
    Flag,
    Metadata,
    Number,
    Quantities,
    Shape,
    StringMap,
    Strings,
    Text,
)
from oarlock.sandbox.apiserver.shapes.pods import Named


class NamespaceSpec(Shape):
    finalizers: Strings = None


class NamespaceStatus(Shape):
    phase: Text = None
    conditions: list[Condition] | None = None


class Namespace(Shape):
    metadata: Metadata
    spec: NamespaceSpec | None = None
    status: NamespaceStatus | None = None


class Taint(Shape):
    key: Text = None
    value: Text = None
    effect: Text = None


class NodeSpec(Shape):
    taints: list[Taint] | None = None
    unschedulable: Flag = None
    pod_cidr: Text = msgspec.field(name="podCIDR", default=None)
    provider_id: Text = msgspec.field(name="providerID", default=None)


class Address(Shape):
    type: Text = None
    address: Text = None


class NodeStatus(Shape):
    capacity: Quantities = None
    allocatable: Quantities = None
    conditions: list[Condition] | None = None
    addresses: list[Address] | None = None
    node_info: StringMap = None


class Node(Shape):
    metadata: Metadata
    spec: NodeSpec | None = None
    status: NodeStatus | None = None


class LeaseSpec(Shape):
    holder_identity: Text = None
    lease_duration_seconds: Number = None
    lease_transitions: Number = None
    acquire_time: Text = None
    renew_time: Text = None


class Lease(Shape):
    metadata: Metadata
    spec: LeaseSpec | None = None


class Reference(Shape):
    api_version: Text = None
    kind: Text = None
    namespace: Text = None
    name: Text = None
    uid: Text = None


class Series(Shape):
    count: Number = None
    last_observed_time: Text = None


class Event(Shape):
    metadata: Metadata
    involved_object: Reference | None = None
    source: dict[str, str | None] | None = None
    series: Series | None = None
    first_timestamp: Text = None
    last_timestamp: Text = None
    event_time: Text = None
    reporting_instance: Text = None
    reason: Text = None
    message: Text = None
    type: Text = None
    count: Number = None
    reporting_component: Text = None


class QuotaSpec(Shape):
    hard: Quantities = None
    scopes: Strings = None


class QuotaStatus(Shape):
    hard: Quantities = None
    used: Quantities = None


class ResourceQuota(Shape):
    metadata: Metadata
    spec: QuotaSpec | None = None
    status: QuotaStatus | None = None


class ServicePort(Shape):
    name: Text = None
    protocol: Text = None
    port: Number = None
    node_port: Number = None


class ServiceSpec(Shape):
    type: Text = None
    cluster_ip: Text = msgspec.field(name="clusterIP", default=None)
    external_name: Text = None
    external_ips: Strings = msgspec.field(name="externalIPs", default=None)
    selector: StringMap = None
    ports: list[ServicePort] | None = None


class Ingress(Shape):
    ip: Text = None
    hostname: Text = None


class Balancer(Shape):
    ingress: list[Ingress] | None = None


class ServiceStatus(Shape):
    load_balancer: Balancer | None = None


class Service(Shape):
    metadata: Metadata
    spec: ServiceSpec | None = None
    status: ServiceStatus | None = None


class Secret(Shape):
    metadata: Metadata
    type: Text = None
    data: StringMap = None
    string_data: StringMap = None


class ConfigMap(Shape):
    metadata: Metadata
    data: StringMap = None
    binary_data: StringMap = None


class ServiceAccount(Shape):
    metadata: Metadata
    secrets: list[Reference] | None = None
    image_pull_secrets: list[Named] | None = None


class Binding(Shape):
    metadata: Metadata | None = None
    target: Reference | None = None


class Anything(Shape):
    metadata: Metadata


class ScaleSpec(Shape):
    replicas: Number = None


class Scale(Shape):
    metadata: Metadata | None = None
    spec: ScaleSpec | None = None
