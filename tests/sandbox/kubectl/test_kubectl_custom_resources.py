"""kubectl at custom resources: applied, explained, shown, patched, scaled, waited for, deleted."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
import yaml

from tests.sandbox.apiserver.custom.definitions import NAME, SPEC, definition, version, widget
from tests.sandbox.kubectl.kubectl_harness import KUBECTL, Kubectl, serving

pytestmark = KUBECTL

COLUMNS = [
    {"name": "Size", "type": "integer", "jsonPath": ".spec.size"},
    {"name": "Color", "type": "string", "jsonPath": ".spec.color"},
]
EXPLAINED = {**SPEC, "properties": {**SPEC["properties"], "size": {"type": "integer", "description": "How many."}}}


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Path]:
    """A server of the test's own: definitions have no namespace."""
    yield from serving(tmp_path)


@pytest.fixture
def widgets(kubectl: Kubectl) -> Kubectl:
    kubectl.apply(definition(version(spec=EXPLAINED, additionalPrinterColumns=COLUMNS)))
    assert "condition met" in kubectl.run("wait", "--for=condition=Established", f"crd/{NAME}", "--timeout=10s")
    return kubectl


def test_life_of_an_object(widgets: Kubectl) -> None:
    assert "widget.example.com/a created" in widgets.apply(widget(size=2))
    assert "widget.example.com/a configured" in widgets.apply(widget(size=3))
    assert "widget.example.com/a unchanged" in widgets.apply(widget(size=3))
    header, row = widgets.run("get", "wd").splitlines()
    assert (header.split(), row.split()) == (["NAME", "SIZE", "COLOR"], ["a", "3", "red"])
    assert widgets.run("get", "all", "-o", "name").split() == ["widget.example.com/a"]
    widgets.run("label", "wd", "a", "x=y")
    widgets.run("scale", "wd/a", "--replicas=4")
    widgets.run("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"color":"blue"}}')
    assert widgets.run("get", "wd", "-l", "x=y", "--no-headers").split() == ["a", "4", "blue"]
    ready = '{"status":{"conditions":[{"type":"Ready","status":"True"}]}}'
    widgets.run("patch", "wd", "a", "--subresource=status", "--type=merge", "-p", ready)
    assert "condition met" in widgets.run("wait", "--for=condition=Ready", "wd/a", "--timeout=10s")
    assert "Kind:         Widget" in widgets.run("describe", "wd", "a")
    assert "deleted" in widgets.run("delete", "wd", "a")
    assert "NotFound" in widgets.run("get", "wd", "a", code=1)


def test_explained(widgets: Kubectl) -> None:
    assert "How many." in widgets.run("explain", "widgets.spec.size")
    whole = widgets.run("explain", "widgets", "--recursive")
    for part in ("GROUP:      example.com", "KIND:       Widget", "hosts", "weight", "<ObjectMeta>"):
        assert part in whole


def test_unknown_fields_are_refused_unless_validation_is_off(widgets: Kubectl) -> None:
    slip = widget(colour="red")
    message = 'strict decoding error: unknown field "spec.colour"'
    assert message in widgets.run("apply", "-f", "-", stdin=yaml.safe_dump(slip), code=1)
    widgets.run("apply", "--validate=false", "-f", "-", stdin=yaml.safe_dump(slip))
    assert "colour" not in widgets.json("get", "wd", "a")["spec"]


def test_refused_by_the_schema(widgets: Kubectl) -> None:
    widgets.apply(widget())
    told = widgets.run("patch", "wd", "a", "--type=merge", "-p", '{"spec":{"color":"green"}}', code=1)
    assert 'spec.color: Unsupported value: "green": supported values: "red", "blue"' in told
    assert "is not supported" in widgets.run("patch", "wd", "a", "--type=strategic", "-p", "{}", code=1)


def test_the_definition_takes_them_along(widgets: Kubectl) -> None:
    widgets.apply(widget("a"))
    widgets.apply(widget("b"))
    widgets.run("delete", "crd", NAME)
    assert "could not find the requested resource" in widgets.run("get", "wd", code=1)
    widgets.apply(definition())
    assert "No resources found" in widgets.run("get", "widgets")
