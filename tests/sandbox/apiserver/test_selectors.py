"""Label and field selectors."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.sandbox.apiserver.errors import ApiError
from oarlock.sandbox.apiserver.kinds.kinds import KINDS
from oarlock.sandbox.apiserver.text.selectors import selector_for, selector_text

OBJ: dict[str, Any] = {
    "metadata": {"name": "a", "namespace": "d", "labels": {"app": "web", "tier": "front", "n": "5", "e": ""}},
    "spec": {"nodeName": "n1"},
    "status": {"phase": "Running"},
}

CASES: list[Any] = [
    ("app=web", "", True),
    ("app==web,tier=front", "", True),
    ("app=web,tier=back", "", False),
    ("app!=web", "", False),
    ("none!=web", "", True),
    ("app in (web, api)", "", True),
    ("app in (api)", "", False),
    ("app notin (api),tier", "", True),
    ("none notin (x)", "", True),
    ("none in (x)", "", False),
    ("tier", "", True),
    ("!tier", "", False),
    ("! none", "", True),
    ("e=", "", True),
    ("none=", "", False),
    ("n>4", "", True),
    ("n<5", "", False),
    ("app>4", "", False),
    ("example.com/x", "", False),
    ("", "metadata.name=a", True),
    ("", "metadata.name!=a", False),
    ("", "spec.nodeName==n1,status.phase=Running", True),
    ("", "spec.nodeName=", False),
    ("", "metadata.namespace=d", True),
    ("app=web", "metadata.name=b", False),
]


@pytest.mark.parametrize(("labels", "fields", "matches"), CASES)
def test_selectors(labels: str, fields: str, matches: bool) -> None:
    selector = selector_for(KINDS["Pod"], labels, fields)
    assert selector is not None
    assert selector.matches(OBJ) is matches


def test_nothing_selected_is_no_selector() -> None:
    assert selector_for(KINDS["Pod"], "", "") is None
    assert selector_for(KINDS["Pod"], "", "", name="a") is not None


@pytest.mark.parametrize(
    ("labels", "fields"),
    [
        ("a b", ""),
        ("a=b,,c=d", ""),
        ("=b", ""),
        ("a in b", ""),
        ("a in (b", ""),
        ("a>x", ""),
        ("a=b c", ""),
        ("a=b,", ""),
        ("-a=b", ""),
        ("a=-b", ""),
        ("", "spec.unknown=1"),
        ("", "metadata.name"),
    ],
)
def test_what_cannot_be_read_is_refused(labels: str, fields: str) -> None:
    with pytest.raises(ApiError) as refused:
        selector_for(KINDS["Pod"], labels, fields)
    assert refused.value.code == 400


def test_a_selector_object_as_text() -> None:
    selector = {
        "matchLabels": {"b": "2", "a": "1"},
        "matchExpressions": [
            {"key": "c", "operator": "In", "values": ["y", "x"]},
            {"key": "d", "operator": "DoesNotExist"},
            {"key": "e", "operator": "Exists"},
        ],
    }
    assert selector_text(selector) == "a=1,b=2,c in (x,y),!d,e"
    assert selector_text(None) == ""
