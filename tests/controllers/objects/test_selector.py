"""Label selectors."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.objects.selector import InvalidSelector, LabelSelector, Requirement, label_selector
from oarlock.sandbox.apiserver.text.selectors import label_tests

LABELS = {"app": "web", "tier": "front"}


@pytest.mark.parametrize(
    ("match_labels", "expressions", "matches"),
    [
        pytest.param({}, (), True, id="empty matches everything"),
        pytest.param({"app": "web"}, (), True, id="one pair"),
        pytest.param({"app": "web", "tier": "back"}, (), False, id="all pairs must hold"),
        pytest.param({"more": ""}, (), False, id="an absent label is not an empty one"),
        pytest.param({}, (Requirement("tier", "In", ("back", "front")),), True, id="In"),
        pytest.param({}, (Requirement("tier", "In", ("back",)),), False, id="In, other value"),
        pytest.param({}, (Requirement("more", "In", ("x",)),), False, id="In, absent key"),
        pytest.param({}, (Requirement("tier", "NotIn", ("front",)),), False, id="NotIn"),
        pytest.param({}, (Requirement("tier", "NotIn", ("back",)),), True, id="NotIn, other value"),
        pytest.param({}, (Requirement("more", "NotIn", ("x",)),), True, id="NotIn, absent key"),
        pytest.param({}, (Requirement("tier", "Exists"),), True, id="Exists"),
        pytest.param({}, (Requirement("more", "Exists"),), False, id="Exists, absent key"),
        pytest.param({}, (Requirement("more", "DoesNotExist"),), True, id="DoesNotExist"),
        pytest.param({}, (Requirement("tier", "DoesNotExist"),), False, id="DoesNotExist, present key"),
        pytest.param({"app": "web"}, (Requirement("tier", "NotIn", ("front",)),), False, id="both parts must hold"),
        pytest.param({"example.com/app": "web"}, (), False, id="a prefixed key is another key"),
    ],
)
def test_matches(match_labels, expressions, matches):
    """Equality pairs and the four operators."""
    selector = label_selector(match_labels, expressions)
    assert not selector.error
    assert selector.matches(LABELS) is matches
    assert selector.empty is (not match_labels and not expressions)


@pytest.mark.parametrize(
    ("match_labels", "expressions", "part"),
    [
        pytest.param({}, (Requirement("app", "Gt", ("1",)),), "not an operator", id="node operators"),
        pytest.param({}, (Requirement("app", "in", ("x",)),), "not an operator", id="other case"),
        pytest.param({}, (Requirement("app", ""),), "not an operator", id="no operator"),
        pytest.param({}, (Requirement("app", "In"),), "at least one value", id="In without values"),
        pytest.param({}, (Requirement("app", "NotIn"),), "at least one value", id="NotIn without values"),
        pytest.param({}, (Requirement("app", "Exists", ("x",)),), "takes no values", id="Exists with values"),
        pytest.param(
            {}, (Requirement("app", "DoesNotExist", ("",)),), "takes no values", id="DoesNotExist with values"
        ),
        pytest.param({}, (Requirement("", "Exists"),), "not a label key", id="empty key"),
        pytest.param({"-app": "x"}, (), "not a label key", id="key begins with a dash"),
        pytest.param({"a" * 64: "x"}, (), "not a label key", id="key too long"),
        pytest.param({"a/b/c": "x"}, (), "DNS subdomain", id="two slashes"),
        pytest.param({"/app": "x"}, (), "DNS subdomain", id="empty prefix"),
        pytest.param({"Example.com/app": "x"}, (), "DNS subdomain", id="capital in the prefix"),
        pytest.param({"app\n": "x"}, (), "not a label key", id="line end"),
        pytest.param({"app": "with blank"}, (), "not a label value", id="blank in a value"),
        pytest.param({}, (Requirement("app", "In", ("ok", "a" * 64)),), "not a label value", id="value too long"),
    ],
)
def test_invalid(match_labels, expressions, part):
    """An invalid selector says why, and raises rather than match."""
    selector = label_selector(match_labels, expressions)
    assert part in selector.error
    with pytest.raises(InvalidSelector, match=part):
        selector.matches(LABELS)


@pytest.mark.parametrize("value", ["", "a", "A.b_c-9", "x" * 63])
def test_valid_values(value):
    """An empty value is a value."""
    assert not label_selector({"example.com/app": value}).error


keys, values = st.sampled_from("abc"), st.sampled_from("xyz")
labels_maps = st.dictionaries(keys, values)
requirements = st.builds(
    lambda key, operator, some: Requirement(key, operator, tuple(some) if operator in ("In", "NotIn") else ()),
    keys,
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist"]),
    st.sets(values, min_size=1),
)


@given(labels_maps, st.lists(requirements, max_size=3), labels_maps)
def test_a_pair_is_in_with_one_value(match_labels, expressions, labels):
    """matchLabels is shorthand for expressions; the operators come in opposite pairs."""
    written_out = tuple(Requirement(k, "In", (v,)) for k, v in match_labels.items())
    short = label_selector(match_labels, tuple(expressions))
    assert short.matches(labels) == label_selector(None, (*written_out, *expressions)).matches(labels)
    opposite = {"In": "NotIn", "NotIn": "In", "Exists": "DoesNotExist", "DoesNotExist": "Exists"}
    for r in expressions:
        assert r.matches(labels) != Requirement(r.key, opposite[r.operator], r.values).matches(labels)


@given(labels_maps, st.lists(requirements, max_size=3), labels_maps)
def test_a_server_understands_it(match_labels, expressions, labels):
    """A list of what is selected finds what the selector matches."""
    selector = label_selector(match_labels, tuple(expressions))
    assert all(test(labels) for test in label_tests(selector.query)) == selector.matches(labels)


def test_is_a_value():
    """Selectors compare by content, as the cache needs."""
    assert label_selector({"a": "x"}) == LabelSelector({"a": "x"}, (), "")
