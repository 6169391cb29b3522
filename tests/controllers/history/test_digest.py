"""Templates compared by meaning: what the API server may respell must not count, and everything else must."""

import json
import random
import sys
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.history.digest import data_digest, revision_data, template_digest

BASE = {"metadata": {"labels": {"app": "web"}}, "spec": {"containers": [{"name": "c", "image": "i"}]}}


def with_spec(**fields: Any) -> dict[str, Any]:
    return BASE | {"spec": BASE["spec"] | fields}


def digest(template: Any) -> str:
    return template_digest(json.dumps(template).encode())


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(
            BASE | {"metadata": {"creationTimestamp": None, "labels": {"app": "web"}}}, BASE, id="null of older servers"
        ),
        pytest.param(with_spec(tolerations=[]), BASE, id="an empty list"),
        pytest.param(with_spec(tolerations=None), with_spec(tolerations=[]), id="a list that is null"),
        pytest.param(with_spec(nodeSelector={}), BASE, id="an empty map of strings"),
        pytest.param(with_spec(containers=[{"name": "c", "image": "i", "resources": {}}]), BASE, id="an empty struct"),
        pytest.param(
            with_spec(containers=[{"name": "c", "image": "i", "resources": {"limits": {}}}]), BASE, id="emptied by that"
        ),
        pytest.param(
            with_spec(volumes=[{"ephemeral": {"volumeClaimTemplate": {"metadata": {"creationTimestamp": None}}}}]),
            with_spec(volumes=[{"ephemeral": {"volumeClaimTemplate": {}}}]),
            id="metadata inside of the spec",
        ),
        pytest.param(BASE | {"$patch": "replace"}, BASE, id="the directive"),
    ],
)
def test_spellings_of_one_template(one: Any, other: Any) -> None:
    assert digest(one) == digest(other)


@pytest.mark.parametrize(
    ("one", "other"),
    [
        pytest.param(with_spec(volumes=[{"emptyDir": {}}]), with_spec(volumes=[{}]), id="a source that is empty"),
        pytest.param(
            with_spec(affinity={"namespaceSelector": {}}), with_spec(affinity={}), id="every namespace, or our own"
        ),
        pytest.param(with_spec(x={"labelSelector": {}}), with_spec(x={"labelSelector": None}), id="all pods, or none"),
        pytest.param(with_spec(a=0), BASE, id="zero"),
        pytest.param(
            {"metadata": {"labels": {"": "a"}}}, {"metadata": {"labels": {"": "b"}}}, id="a label without a name"
        ),
        pytest.param(with_spec(a=""), BASE, id="an empty text"),
        pytest.param(with_spec(a=False), BASE, id="false"),
        pytest.param(with_spec(a=False), with_spec(a=0), id="false and zero"),
        pytest.param(with_spec(a="1"), with_spec(a=1), id="text and number"),
        pytest.param(with_spec(a=[1, 2]), with_spec(a=[2, 1]), id="the order of a list"),
        pytest.param(with_spec(a=[None]), with_spec(a=[]), id="a place in a list"),
        pytest.param(BASE | {"$patch": "merge"}, BASE, id="another directive"),
    ],
)
def test_templates_that_differ(one: Any, other: Any) -> None:
    assert digest(one) != digest(other)


def test_the_template_may_be_null() -> None:
    assert template_digest(b"null") == template_digest(b"{}") == data_digest(revision_data(b"null"))


@pytest.mark.parametrize("raw", [b"", b"{", b"[]", b"1", b'"\xff"'])
def test_what_is_no_template(raw: bytes) -> None:
    for read in (template_digest, revision_data):
        with pytest.raises(ValueError):
            read(raw)


def test_what_is_nested_too_deeply() -> None:
    """At whatever depth reading it ends, it ends with a ValueError."""
    ends = set()
    for depth in (*range(2), *range(800, sys.getrecursionlimit()), 100_000):
        try:
            ends.add(len(template_digest(b'{"a":' * (depth + 1) + b"1" + b"}" * (depth + 1))))
        except ValueError:
            ends.add(0)
    assert ends == {0, 20}


@pytest.mark.parametrize(
    "data",
    [
        {"spec": {"template": BASE}, "kind": "DaemonSet"},
        {"spec": {"template": BASE, "replicas": 1}},
        {"spec": {"template": [BASE]}},
        {"spec": {"template": None}},
        {"spec": BASE},
        BASE,
        {},
        [],
        None,
        "text",
        {"spec": {"template": BASE | {"$patch": "delete"}}},
    ],
)
def test_data_that_is_not_a_template_alone(data: Any) -> None:
    """No template ever has this digest, not even one that looks like the data."""
    found = data_digest(json.dumps(data).encode())
    assert found != digest(BASE)
    assert not isinstance(data, dict) or found != digest(data) or "$patch" in str(data)
    assert found != digest({})


def test_the_data_is_what_upstream_stores() -> None:
    """Sorted, compact, nothing left out, escaped as Go's encoder does it: kubectl compares these bytes."""
    template = {"spec": {"x": "<a> & b\u2028", "empty": []}, "metadata": {"creationTimestamp": None, "name": "é"}}
    assert revision_data(json.dumps(template).encode()).decode() == (
        '{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"name":"é"},'
        '"spec":{"empty":[],"x":"\\u003ca\\u003e \\u0026 b\\u2028"}}}}'
    )


numbers = st.integers(-(2**53), 2**53)
keys = st.sampled_from(["a", "b", "metadata", "resources", "emptyDir", "labels", "é"]) | st.text(max_size=3)
values = st.recursive(
    st.none() | st.booleans() | numbers | st.text(max_size=4),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=4),
    max_leaves=12,
)
templates = st.dictionaries(keys, values, max_size=5)
_ABSENT_WHEN_EMPTY = {"metadata", "resources", "labels"}


def canonical(value: Any) -> Any:
    """The rules once more, in another way: until nothing more can be taken out. Numbers are told from booleans."""
    if isinstance(value, list):
        return ("list", tuple(canonical(each) for each in value))
    if isinstance(value, dict):
        held = {key: canonical(each) for key, each in value.items()}
        nothing = [("scalar", "NoneType", None), ("list", ())]
        return (
            "map",
            frozenset(
                (key, each)
                for key, each in held.items()
                if each not in nothing and not (key in _ABSENT_WHEN_EMPTY and each == ("map", frozenset()))
            ),
        )
    return ("scalar", type(value).__name__, value)


@given(templates, templates)
def test_equal_digests_are_equal_templates(one: Any, other: Any) -> None:
    assert (digest(one) == digest(other)) == (canonical(one) == canonical(other))


def respelled(value: Any, chance: random.Random) -> Any:
    """The same template as another server might write it: other order, nulls and empty lists come and go."""
    if isinstance(value, list):
        return [respelled(each, chance) for each in value]
    if not isinstance(value, dict):
        return value
    items = [(key, respelled(each, chance)) for key, each in value.items()]
    items = [(key, each) for key, each in items if each not in (None, []) or chance.random() < 0.5]
    spare = [f"x{n}" for n in range(3) if f"x{n}" not in value]
    items += [(key, chance.choice([None, []])) for key in spare if chance.random() < 0.5]
    chance.shuffle(items)
    return dict(items)


@given(templates, st.randoms(use_true_random=False))
def test_no_spelling_makes_a_revision(template: Any, chance: random.Random) -> None:
    raw = json.dumps(template).encode()
    other = json.dumps(respelled(template, chance), indent=chance.choice([None, 2])).encode()
    assert template_digest(raw) == template_digest(other)
    assert data_digest(revision_data(other)) == template_digest(raw)
    assert json.loads(revision_data(raw)) == {"spec": {"template": template | {"$patch": "replace"}}}


# A template as kube-apiserver 1.20.2 served it, and the data that kube-controller-manager 1.20.2 stored, cut short.
SERVED = (
    b'{"metadata":{"creationTimestamp":null,"labels":{"a":"a"}},"spec":{"containers":[{"name":"c","image":"i",'
    b'"command":["\\u0008\\u000c\x7f\\u0001\\u003c"],"resources":{},"imagePullPolicy":"Always"}],'
    b'"securityContext":{},"tolerations":[{"key":"k","operator":"Exists","tolerationSeconds":9223372036854775807}]}}'
)
STORED = (
    b'{"spec":{"template":{"$patch":"replace","metadata":{"creationTimestamp":null,"labels":{"a":"a"}},"spec":'
    b'{"containers":[{"command":["\\u0008\\u000c\x7f\\u0001\\u003c"],"image":"i","imagePullPolicy":"Always",'
    b'"name":"c","resources":{}}],"securityContext":{},"tolerations":[{"key":"k","operator":"Exists",'
    b'"tolerationSeconds":9223372036854775807}]}}}}'
)


def test_the_bytes_are_those_that_upstream_stored() -> None:
    assert revision_data(SERVED) == STORED
    assert data_digest(STORED) == template_digest(SERVED)


@pytest.mark.parametrize(("short", "long"), [(rb"\b", rb"\u0008"), (rb"\f", rb"\u000c")])
def test_control_characters_are_spelled_as_the_server_does(short: bytes, long: bytes) -> None:
    for spelled in (short, long):
        assert spelled in revision_data(b'{"spec":{"text":"' + spelled + b'"}}')
    assert rb"\\b " + long in revision_data(rb'{"spec":{"text":"\\b ' + long + b'"}}'), "an escaped backslash and a b"
