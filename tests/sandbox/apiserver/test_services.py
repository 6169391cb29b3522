"""Services get an address, and keep it."""

from __future__ import annotations

from ipaddress import ip_address
from typing import Any

import pytest

from oarlock.sandbox.apiserver.verbs.service_addresses import NETWORK
from tests.sandbox.api_harness import MERGE, Api

SERVICES = "/api/v1/namespaces/default/services"
PORTS = [{"port": 80}]


def service(name: str = "a", **spec: Any) -> dict[str, Any]:
    return {"metadata": {"name": name}, "spec": {"ports": PORTS, **spec}}


def test_each_has_its_own(api: Api) -> None:
    made = [api.create(SERVICES, service(name))["spec"] for name in ("a", "b", "c")]
    assert len({spec["clusterIP"] for spec in made}) == 3
    assert all(ip_address(spec["clusterIP"]) in NETWORK and spec["clusterIPs"] == [spec["clusterIP"]] for spec in made)
    assert made[0]["ports"] == [{"port": 80, "protocol": "TCP", "targetPort": 80}]
    assert made[0]["ipFamilies"] == ["IPv4"]


def test_one_may_be_asked_for_and_is_free_again_after_a_delete(api: Api) -> None:
    asked = service(clusterIP="10.96.7.7")
    assert api.create(SERVICES, asked)["spec"]["clusterIP"] == "10.96.7.7"
    code, status = api.call("POST", SERVICES, service("b", clusterIP="10.96.7.7"))
    assert (code, "provided IP is already allocated" in status["message"]) == (422, True)
    api.delete(f"{SERVICES}/a")
    api.create(SERVICES, service("b", clusterIP="10.96.7.7"))
    assert api.call("POST", SERVICES, service("c", clusterIP="10.1.1.1"))[0] == 422
    assert api.call("POST", SERVICES, service("c", clusterIP="x"))[0] == 422


def test_some_have_none(api: Api) -> None:
    assert api.create(SERVICES, service(clusterIP="None"))["spec"]["clusterIPs"] == ["None"]
    outside = service("b", type="ExternalName", externalName="a.io")
    assert "clusterIP" not in api.create(SERVICES, outside)["spec"]


def test_an_update_keeps_it(api: Api) -> None:
    address = api.create(SERVICES, service())["spec"]["clusterIP"]
    assert api.put(f"{SERVICES}/a", service(selector={"a": "b"}))["spec"]["clusterIP"] == address
    code, status = api.call("PATCH", f"{SERVICES}/a", {"spec": {"clusterIP": "10.96.9.9"}}, MERGE)
    assert (code, "may not change once set" in status["message"]) == (422, True)


@pytest.mark.parametrize(
    ("spec", "field"),
    [
        ({"ports": []}, "spec.ports"),
        ({"type": "X"}, "spec.type"),
        ({"ports": [{"port": 0}]}, "spec.ports[0].port"),
        ({"ports": [{"port": 1}, {"port": 2, "name": "b"}]}, "spec.ports[0].name"),
        ({"ports": [{"port": 1, "name": "a"}, {"port": 2, "name": "a"}]}, "spec.ports[1].name"),
        ({"type": "ExternalName"}, "spec.externalName"),
        ({"type": "NodePort", "clusterIP": "None"}, "spec.clusterIPs[0]"),
    ],
)
def test_what_may_not_be(api: Api, spec: dict[str, Any], field: str) -> None:
    code, status = api.call("POST", SERVICES, service(**spec))
    assert (code, status["details"]["causes"][0]["field"]) == (422, field)
