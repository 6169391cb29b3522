"""What a desired-state function asks its children for: every sensible form finds them, any other is refused."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock

INGRESS, OTHER_INGRESS = "networking.k8s.io/v1 Ingress", "example.com/v1 Ingress"


@oarlock.resource("example.com/v1")
class Theme(oarlock.Object):
    pass


class Undeclared(oarlock.Object):
    pass


def an(api_version: str, kind: str, name: str, namespace: str = "shop") -> dict[str, Any]:
    meta = {"name": name, **({"namespace": namespace} if namespace else {})}
    return {"apiVersion": api_version, "kind": kind, "metadata": meta}


SECRET, THEME = an("v1", "Secret", "tls"), an("example.com/v1", "Theme", "dark")
HERE, THERE = an("networking.k8s.io/v1", "Ingress", "web"), an("example.com/v1", "Ingress", "web")
MAP, FOREIGN_MAP, NODE = an("v1", "ConfigMap", "a"), an("v1", "ConfigMap", "b", "live"), an("v1", "Node", "n1", "")
CHILDREN = oarlock.Children([SECRET, THEME, HERE, THERE], [MAP, FOREIGN_MAP, NODE])


def asked(ask: Any, *, namespace: str = "shop", children: oarlock.Children = CHILDREN) -> Any:
    """What a function of a controller that declares these kinds is answered."""

    @oarlock.desired(
        oarlock.Kind("example.com/v1", "Site"),
        children=["v1 Secret", Theme, INGRESS, OTHER_INGRESS, oarlock.Kind("example.com/v1", "Mouse", plural="mice")],
        watches=[
            oarlock.watch("v1 ConfigMap", wakes=lambda it: []),
            oarlock.watch("v1 Node", wakes=lambda it: []),
        ],
    )
    def site(obj: Any, children: oarlock.Children) -> Any:
        return ask(children)

    return site({"metadata": {"name": "web", "namespace": namespace}}, children)


FOUND: list[tuple[Any, Any]] = [
    (lambda them: them.get("Secret", "tls"), SECRET),
    (lambda them: them.get("v1 Secret", "tls"), SECRET),
    (lambda them: them.get("example.com/v2 Theme", "dark"), THEME),
    (lambda them: them.get("example.com/v1 Mouse", "m"), None),
    (lambda them: them.get(oarlock.Kind("v1", "Secret"), "tls"), SECRET),
    (lambda them: them.get("Secret", "shop/tls"), SECRET),
    (lambda them: them.get("Secret", "live/tls"), None),
    (lambda them: them.get("Secret", "other"), None),
    (lambda them: them.get(Theme, "dark"), THEME),
    (lambda them: them.get(INGRESS, "web"), HERE),
    (lambda them: them.get(OTHER_INGRESS, "web"), THERE),
    (lambda them: them.of("v1 Secret"), [SECRET]),
    (lambda them: them.of(Theme), [THEME]),
    (lambda them: them.of(OTHER_INGRESS), [THERE]),
    (lambda them: them.watched("ConfigMap", "a"), MAP),
    (lambda them: them.watched("v1 ConfigMap", "shop/a"), MAP),
    (lambda them: them.watched("ConfigMap", "b"), None),
    (lambda them: them.watched("ConfigMap", "live/b"), FOREIGN_MAP),
    (lambda them: them.watched("Node", "n1"), NODE),
    (lambda them: them.all_watched("v1 ConfigMap"), [MAP, FOREIGN_MAP]),
    (lambda them: (list(them), len(them)), ([SECRET, THEME, HERE, THERE], 4)),
]


@pytest.mark.parametrize(("ask", "found"), FOUND)
def test_every_form_of_a_kind_and_a_name(ask: Any, found: Any) -> None:
    assert asked(ask) == found


KINDS = (
    '"v1 Secret", "example.com/v1 Theme", "networking.k8s.io/v1 Ingress", '
    '"example.com/v1 Ingress", "example.com/v1 Mouse"'
)
WATCHES = '"v1 ConfigMap", "v1 Node"'
REFUSED: list[tuple[Any, str]] = [
    (lambda them: them.get("Deployment", "web"), f'"Deployment" is not one of its children= ({KINDS})'),
    (lambda them: them.get("apps/v1 Deployment", "web"), f'"apps/v1 Deployment" is not one of its children= ({KINDS})'),
    (lambda them: them.get("secrets", "tls"), f'"secrets" is not one of its children= ({KINDS})'),
    (lambda them: them.get("Ingress", "web"), f'"Ingress" is not one of its children= ({KINDS})'),
    (lambda them: them.get("other.io/v1 Secret", "tls"), f'"other.io/v1 Secret" is not one of its children= ({KINDS})'),
    (lambda them: them.of("Node"), f'"Node" is not one of its children= ({KINDS}); ask children.watched() for it'),
    (lambda them: them.watched("Pod", "a"), f'"Pod" is not one of its watches= ({WATCHES})'),
    (lambda it: it.all_watched(Theme), f'"Theme" is not one of its watches= ({WATCHES}); ask children.get() for it'),
]


@pytest.mark.parametrize(("ask", "text"), REFUSED)
def test_a_kind_that_is_not_declared_is_refused(ask: Any, text: str) -> None:
    with pytest.raises(oarlock.Never) as refused:
        asked(ask)
    assert str(refused.value) == f"site: {text}"


def test_what_is_no_kind_says_how_kinds_are_written() -> None:
    with pytest.raises(oarlock.BadDefinition, match='write it as "apps/v1 Deployment"'):
        asked(lambda them: them.get("v1 secret", "tls"))
    with pytest.raises(oarlock.BadDefinition, match=r"put @oarlock\.resource"):
        asked(lambda them: them.get(Undeclared, "tls"))


def test_of_an_owner_without_a_namespace_one_name_in_two_namespaces_has_to_be_said_in_full() -> None:
    places = [("tls", "a"), ("tls", "b"), ("x", "a")]
    two = oarlock.Children([an("v1", "Secret", name, namespace) for name, namespace in places])
    assert asked(lambda them: them.get("Secret", "b/tls"), namespace="", children=two)["metadata"]["namespace"] == "b"
    assert asked(lambda them: them.get("Secret", "x"), namespace="", children=two)["metadata"]["name"] == "x"
    with pytest.raises(oarlock.Never, match='site: it has several "v1 Secret" of the name tls: ask for namespace/name'):
        asked(lambda them: them.get("Secret", "tls"), namespace="", children=two)


def test_in_a_helper_of_a_test_that_no_controller_calls_each_kind_is_taken_as_it_is() -> None:
    """Objects of a test may be as short as this one."""
    them = oarlock.Children([{"kind": "Secret", "metadata": {"name": "tls"}}])
    assert them.get("Secret", "tls") == them.get("v1 Secret", "tls") == next(iter(them))
    assert them.get("Deployment", "tls") is None
