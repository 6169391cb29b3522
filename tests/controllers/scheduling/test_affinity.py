"""nodeSelector and required node affinity: every operator, terms, fields, and what is malformed.

Numbers are those of the upstream unit cases (`pkg/controller/daemon/daemon_controller_test.go`).
"""

import pytest

from oarlock.controllers.scheduling.affinity import MalformedTerm, NodeFilter, checks_of
from oarlock.controllers.scheduling.model import NodeTerm, Placement
from tests.controllers.scheduling.scheduling_builders import LABELS, fields_term, labels_term, req


def matches(placement, name="n1", labels=LABELS):
    return NodeFilter(placement).matches(labels, name)


@pytest.mark.parametrize(
    ("requirement", "matched"),
    [
        pytest.param(req("os", "In", "linux"), True, id="In, the value"),
        pytest.param(req("os", "In", "windows", "linux"), True, id="In, one of the values"),
        pytest.param(req("os", "In", "windows"), False, id="In, another value"),
        pytest.param(req("gone", "In", "x"), False, id="In, absent label"),
        pytest.param(req("gone", "In", ""), False, id="In the empty value, absent label"),
        pytest.param(req("empty", "In", ""), True, id="In the empty value, empty label"),
        pytest.param(req("os", "NotIn", "linux"), False, id="NotIn, the value"),
        pytest.param(req("os", "NotIn", "windows", "linux"), False, id="NotIn, one of the values"),
        pytest.param(req("os", "NotIn", "windows"), True, id="NotIn, another value"),
        pytest.param(req("gone", "NotIn", "x"), True, id="NotIn, absent label"),
        pytest.param(req("gone", "NotIn", ""), True, id="NotIn the empty value, absent label"),
        pytest.param(req("empty", "NotIn", ""), False, id="NotIn the empty value, empty label"),
        pytest.param(req("os", "Exists"), True, id="Exists"),
        pytest.param(req("empty", "Exists"), True, id="Exists, empty label"),
        pytest.param(req("gone", "Exists"), False, id="Exists, absent label"),
        pytest.param(req("os", "DoesNotExist"), False, id="DoesNotExist, present label"),
        pytest.param(req("gone", "DoesNotExist"), True, id="DoesNotExist"),
        pytest.param(req("cores", "Gt", "7"), True, id="Gt, more"),
        pytest.param(req("cores", "Gt", "8"), False, id="Gt, equal"),
        pytest.param(req("cores", "Gt", "10"), False, id="Gt compares numbers, not text"),
        pytest.param(req("cores", "Gt", "007"), True, id="Gt, leading zeros"),
        pytest.param(req("gone", "Gt", "0"), False, id="Gt, absent label"),
        pytest.param(req("os", "Gt", "0"), False, id="Gt, label that is no number"),
        pytest.param(req("empty", "Gt", "0"), False, id="Gt, empty label"),
        pytest.param(req("cores", "Lt", "10"), True, id="Lt, less"),
        pytest.param(req("cores", "Lt", "8"), False, id="Lt, equal"),
        pytest.param(req("gone", "Lt", "9"), False, id="Lt, absent label"),
        pytest.param(req("os", "Lt", "9"), False, id="Lt, label that is no number"),
    ],
)
def test_operators(requirement, matched):
    """Each operator on a label."""
    assert matches(Placement(terms=(labels_term(requirement),))) is matched


@pytest.mark.parametrize(
    ("requirement", "matched"),
    [
        pytest.param(req("metadata.name", "In", "n1"), True, id="In, the name"),
        pytest.param(req("metadata.name", "In", "n2"), False, id="In, another name"),
        pytest.param(req("metadata.name", "NotIn", "n1"), False, id="NotIn, the name"),
        pytest.param(req("metadata.name", "NotIn", "n2"), True, id="NotIn, another name"),
    ],
)
def test_fields(requirement, matched):
    """The name of the node is a field, and no label."""
    assert matches(Placement(terms=(fields_term(requirement),))) is matched
    assert matches(Placement(terms=(labels_term(req("metadata.name", "In", "n1")),))) is False


YES, NO = req("os", "In", "linux"), req("os", "In", "windows")
HERE, ELSEWHERE = req("metadata.name", "In", "n1"), req("metadata.name", "In", "n2")
BROKEN = req("os", "In")


@pytest.mark.parametrize(
    ("placement", "matched"),
    [
        pytest.param(Placement(), True, id="nothing asked"),
        pytest.param(Placement(node_selector={"os": "linux", "zone": "a"}), True, id="every pair"),
        pytest.param(Placement(node_selector={"os": "linux", "zone": "b"}), False, id="all but one pair"),
        pytest.param(Placement(node_selector={"gone": ""}), False, id="an absent label is not an empty one"),
        pytest.param(Placement(node_selector={"empty": ""}), True, id="an empty label"),
        pytest.param(Placement(terms=()), False, id="an affinity without terms"),
        pytest.param(Placement(terms=(NodeTerm(),)), False, id="an empty term"),
        pytest.param(Placement(terms=(NodeTerm(), labels_term(YES))), True, id="an empty term does not spoil others"),
        pytest.param(Placement(terms=(labels_term(NO), labels_term(YES))), True, id="any term suffices"),
        pytest.param(Placement(terms=(labels_term(NO), labels_term(NO))), False, id="no term holds"),
        pytest.param(Placement(terms=(labels_term(YES, NO),)), False, id="all of a term must hold"),
        pytest.param(Placement(terms=(NodeTerm((YES,), (HERE,)),)), True, id="labels and fields"),
        pytest.param(Placement(terms=(NodeTerm((YES,), (ELSEWHERE,)),)), False, id="labels, not fields"),
        pytest.param(Placement(terms=(NodeTerm((NO,), (HERE,)),)), False, id="fields, not labels"),
        pytest.param(Placement(terms=(fields_term(HERE, ELSEWHERE),)), False, id="all fields must hold"),
        pytest.param(Placement(terms=(labels_term(YES, BROKEN),)), False, id="a malformed term matches nothing"),
        pytest.param(Placement(terms=(NodeTerm((YES,), (BROKEN,)),)), False, id="nor one with a malformed field"),
        pytest.param(Placement(terms=(labels_term(BROKEN), labels_term(YES))), True, id="other terms are still tried"),
        pytest.param(Placement("", {"os": "linux"}, (labels_term(YES),)), True, id="selector and affinity"),
        pytest.param(Placement("", {"os": "linux"}, (labels_term(NO),)), False, id="selector, not affinity"),
        pytest.param(Placement("", {"os": "windows"}, (labels_term(YES),)), False, id="affinity, not selector"),
        pytest.param(Placement("", {"zone": "a"}), True, id="25: node selector of the labelled nodes"),
        pytest.param(Placement("", {}, (labels_term(req("zone", "In", "a")),)), True, id="29: affinity to them"),
        pytest.param(
            Placement("", {}, (labels_term(req("zone", "In", "z")), fields_term(HERE))),
            True,
            id="26.4.4: a zone label, or the node's name",
        ),
    ],
)
def test_placements(placement, matched):
    """How requirements, terms and the nodeSelector combine."""
    assert matches(placement) is matched
    assert NodeFilter(placement).everything is (placement == Placement())


@pytest.mark.parametrize(
    ("term", "reason"),
    [
        pytest.param(labels_term(req("os", "In")), "at least one value", id="In without values"),
        pytest.param(labels_term(req("os", "NotIn")), "at least one value", id="NotIn without values"),
        pytest.param(labels_term(req("os", "Exists", "linux")), "takes no values", id="Exists with a value"),
        pytest.param(labels_term(req("gone", "DoesNotExist", "")), "takes no values", id="DoesNotExist with a value"),
        pytest.param(labels_term(req("cores", "Gt")), "at least one value", id="Gt without a value"),
        pytest.param(labels_term(req("cores", "Gt", "1", "2")), "takes one integer", id="Gt with two values"),
        pytest.param(labels_term(req("cores", "Lt", "many")), "takes one integer", id="Lt with a word"),
        pytest.param(labels_term(req("cores", "Lt", "")), "takes one integer", id="Lt with the empty value"),
        pytest.param(labels_term(req("cores", "Lt", "9" * 20)), "takes one integer", id="Lt beyond 64 bits"),
        pytest.param(labels_term(req("cores", "Gt", "-5")), "not a label value", id="a negative bound"),
        pytest.param(labels_term(req("os", "in", "linux")), "not an operator", id="an operator in small letters"),
        pytest.param(labels_term(req("os", "", "linux")), "not an operator", id="no operator"),
        pytest.param(labels_term(req("-os", "NotIn", "x")), "not a label key", id="a key that is none"),
        pytest.param(labels_term(req("os", "NotIn", "no blanks")), "not a label value", id="a value that is none"),
        pytest.param(fields_term(req("metadata.uid", "NotIn", "x")), "not a field", id="another field"),
        pytest.param(fields_term(req("metadata.name", "In")), "exactly one value", id="a field without values"),
        pytest.param(fields_term(req("metadata.name", "NotIn", "a", "b")), "exactly one value", id="two names"),
        pytest.param(fields_term(req("metadata.name", "Exists", "a")), "not an operator for", id="Exists on a field"),
    ],
)
def test_malformed(term, reason):
    """Each is told apart, and matches no node, whatever a lenient reading of it would say."""
    with pytest.raises(MalformedTerm, match=reason):
        checks_of(term)
    assert matches(Placement(terms=(term,))) is False


def test_28_name_set_and_selector():
    """A selector that no node satisfies, whatever the name, and one that does."""
    assert matches(Placement(terms=(NodeTerm((YES,), (HERE,)),)), "n2") is False
    assert matches(Placement(node_selector={"os": "linux"}), labels={}) is False
