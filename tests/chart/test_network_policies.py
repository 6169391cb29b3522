"""Nothing is let in or out but what the table says."""

from __future__ import annotations

from typing import Any

from tests.chart.engine import CHART, CI_VALUES, NEEDED, Obj, Rendered, ci_values, merged, render


def policies_of(rendered: Rendered, role: str) -> list[Obj]:
    """Those that select the role's pods."""
    labels = next(
        each["spec"]["template"]["metadata"]["labels"]
        for each in rendered.of("StatefulSet")
        if each["metadata"]["labels"]["app.kubernetes.io/component"] == role
    )
    return [each["spec"] for each in rendered.of("NetworkPolicy") if selects(each["spec"]["podSelector"], labels)]


def selects(selector: Obj, labels: Obj) -> bool:
    expressions = selector.get("matchExpressions", [])
    assert all(each["operator"] == "In" for each in expressions)
    return selector.get("matchLabels", {}).items() <= labels.items() and all(
        labels.get(each["key"]) in each["values"] for each in expressions
    )


def allowed(rendered: Rendered, role: str, way: str) -> list[tuple[str, Any]]:
    """(ports, peers) of each rule; peers None: anybody."""
    peers = {"ingress": "from", "egress": "to"}[way]
    return [
        (" ".join(f"{port['port']}/{port['protocol']}" for port in rule["ports"]), rule.get(peers))
        for spec in policies_of(rendered, role)
        for rule in spec.get(way, [])
    ]


def chosen(peers: list[Obj]) -> set[str]:
    """The roles of this release that some of the peers are."""
    own = {"app.kubernetes.io/name": "oarlock", "app.kubernetes.io/instance": "oarlock"}
    named = [peer["podSelector"] for peer in peers if peer.keys() == {"podSelector"}]
    every = ("ingestor", "worker", "redis", "board", "other")
    return {role for role in every for each in named if selects(each, own | {"app.kubernetes.io/component": role})}


def roles(rendered: Rendered) -> list[str]:
    return [each["metadata"]["labels"]["app.kubernetes.io/component"] for each in rendered.of("StatefulSet")]


def test_every_pod_is_denied_all_at_first() -> None:
    for path in CI_VALUES:
        rendered = render(ci_values(path))
        if path.name == "no-network-policy-values.yaml":
            assert not rendered.of("NetworkPolicy")
            continue
        for role in roles(rendered):
            deny = {"policyTypes", "podSelector"}
            bare = [each for each in policies_of(rendered, role) if each.keys() == deny]
            assert [set(each["policyTypes"]) for each in bare] == [{"Ingress", "Egress"}]


def test_as_it_comes() -> None:
    rendered = render()
    for role in ("ingestor", "worker"):
        ((ports, peers),) = allowed(rendered, role, "ingress")
        assert ports == "metrics/TCP"
        assert peers == [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "monitoring"}}}]
        dns, api, redis = allowed(rendered, role, "egress")
        assert dns[0] == "53/UDP 53/TCP"
        assert "podSelector" in dns[1][0]
        assert api == ("443/TCP 6443/TCP", None)
        assert (redis[0], chosen(redis[1])) == ("redis/TCP", {"redis"})
    ((ports, fleet),) = allowed(rendered, "redis", "ingress")
    assert (ports, chosen(fleet)) == ("redis/TCP", {"ingestor", "worker"})
    assert allowed(rendered, "redis", "egress") == []


def test_nothing_leaves_a_closed_network_but_to_what_is_named() -> None:
    rendered = render(ci_values(CHART / "ci" / "closed-network-values.yaml"))
    for role in ("ingestor", "worker"):
        assert allowed(rendered, role, "ingress") == []
        assert allowed(rendered, role, "egress") == [
            ("53/UDP 53/TCP", [{"ipBlock": {"cidr": "169.254.20.10/32"}}]),
            ("4318/TCP", [{"ipBlock": {"cidr": "10.2.0.7/32"}}]),
            ("6443/TCP", [{"ipBlock": {"cidr": "10.0.0.10/32"}}, {"ipBlock": {"cidr": "10.0.0.11/32"}}]),
            ("6390/TCP", [{"ipBlock": {"cidr": "10.1.0.0/24"}}]),
        ]


def test_ports_of_a_redis_of_ones_own() -> None:
    for file, ports in {
        "redis-standalone": "6380/TCP",
        "redis-sentinel": "26379/TCP 6379/TCP",
        "redis-cluster": "6379/TCP 6400/TCP",
        "redis-url": "6379/TCP",
    }.items():
        rendered = render(ci_values(CHART / "ci" / f"{file}-values.yaml"))
        assert allowed(rendered, "worker", "egress")[-1] == (ports, None), file


def test_keda_is_let_in_where_it_asks() -> None:
    def peers(mode: str) -> int:
        values = merged(NEEDED, {"worker": {"autoscaling": {"mode": mode}}})
        return len(allowed(render(values), "ingestor", "ingress")[0][1])

    assert (peers("none"), peers("hpa"), peers("keda")) == (1, 1, 2)


def test_further_clients_of_the_bundled_redis() -> None:
    client = {"podSelector": {"matchLabels": {"app": "tools"}}}
    rendered = render(merged(NEEDED, {"networkPolicy": {"redis": {"clients": [client]}}}))
    ((_, peers),) = allowed(rendered, "redis", "ingress")
    assert peers[1:] == [client]


def test_the_board_asks_redis_and_the_figures_and_nothing_else() -> None:
    rendered = render(ci_values(CHART / "ci" / "board-values.yaml"))
    assert allowed(rendered, "board", "ingress") == []
    dns, figures, redis = allowed(rendered, "board", "egress")
    assert dns[0] == "53/UDP 53/TCP"
    assert (figures[0], chosen(figures[1])) == ("metrics/TCP", {"ingestor", "worker"})
    assert (redis[0], chosen(redis[1])) == ("redis/TCP", {"redis"})
    ((_, clients),) = allowed(rendered, "redis", "ingress")
    assert chosen(clients) == {"ingestor", "worker", "board"}
    for role in ("ingestor", "worker"):
        ((ports, readers),) = allowed(rendered, role, "ingress")
        assert (ports, chosen(readers)) == ("metrics/TCP", {"board"})
        assert allowed(rendered, role, "egress") == allowed(render(), role, "egress")


def test_a_board_that_counts_no_api_calls_asks_redis_alone() -> None:
    rendered = render(merged(NEEDED, {"board": {"enabled": True, "apiCalls": False}}))
    assert [ports for ports, _ in allowed(rendered, "board", "egress")] == ["53/UDP 53/TCP", "redis/TCP"]
    assert allowed(rendered, "worker", "ingress") == allowed(render(), "worker", "ingress")


def test_those_who_may_open_the_board() -> None:
    rendered = render(ci_values(CHART / "ci" / "board-write-values.yaml"))
    peers = [{"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "ingress-nginx"}}}]
    assert allowed(rendered, "board", "ingress") == [("board/TCP", peers)]
    _, figures, redis = allowed(rendered, "board", "egress")
    assert figures[0] == "metrics/TCP metrics-1/TCP"
    assert redis == ("6379/TCP", None)
    assert not [rule for rule in allowed(rendered, "worker", "ingress") if peers[0] in rule[1]]


def test_traces_leave_to_the_collector_alone() -> None:
    collector = {"namespaceSelector": {"matchLabels": {"kubernetes.io/metadata.name": "tracing"}}}
    rendered = render(merged(NEEDED, {"networkPolicy": {"traces": {"port": 4319, "to": [collector]}}}))
    for role in ("ingestor", "worker"):
        before = allowed(render(), role, "egress")
        added = [rule for rule in allowed(rendered, role, "egress") if rule not in before]
        assert added == [("4319/TCP", [collector])]
