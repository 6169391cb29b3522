"""Eligibility against a second reading of the rules, written as plainly as they are stated."""

from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.controllers.scheduling.eligibility import Eligibility, eligibility_of
from oarlock.controllers.scheduling.model import Node, NodeRequirement, NodeTerm, Placement, Taint, Toleration
from oarlock.controllers.scheduling.tolerations import tolerations_for_pods

BAD_KEYS, BAD_VALUES = {"", "-a", "a/b/c"}, {"-5", "+5", "a b", "x" * 64}
NUMBERS = {"3": 3, "7": 7, "0012": 12, str(2**63 - 1): 2**63 - 1}
HUGE = str(2**63)
NAMES = ["n1", "n2"]

keys = st.sampled_from(["a", "b", "example.com/c"])
values = st.sampled_from(["", "x", "y", HUGE, *NUMBERS])
labels = st.dictionaries(keys, values, max_size=3)
requirement = st.builds(
    NodeRequirement,
    keys | keys | st.sampled_from(sorted(BAD_KEYS)),
    st.sampled_from(["In", "NotIn", "Exists", "DoesNotExist", "Gt", "Lt", "Gt", "Lt", "in", ""]),
    st.lists(values | values | values | st.sampled_from(sorted(BAD_VALUES)), max_size=2).map(tuple),
)
well_formed = st.one_of(
    st.builds(
        NodeRequirement, keys, st.sampled_from(["In", "NotIn"]), st.lists(values, min_size=1, max_size=2).map(tuple)
    ),
    st.builds(NodeRequirement, keys, st.sampled_from(["Exists", "DoesNotExist"]), st.just(())),
    st.builds(NodeRequirement, keys, st.sampled_from(["Gt", "Lt"]), st.tuples(st.sampled_from(sorted(NUMBERS)))),
)
field = st.builds(
    NodeRequirement,
    st.sampled_from(["metadata.name"] * 4 + ["metadata.uid"]),
    st.sampled_from(["In", "NotIn"] * 3 + ["Exists", "Gt"]),
    st.lists(st.sampled_from(NAMES), min_size=1, max_size=2).map(tuple) | st.just(("n1",)),
)
term = st.builds(
    NodeTerm,
    st.lists(well_formed | well_formed | requirement, max_size=3).map(tuple),
    st.lists(field, max_size=1).map(tuple),
)
effects = st.sampled_from(["NoSchedule", "NoExecute", "PreferNoSchedule"])
taint_keys = st.sampled_from(["k", "j", "node.kubernetes.io/not-ready", "node.kubernetes.io/network-unavailable"])
taint = st.builds(Taint, taint_keys, effects, st.sampled_from(["", "v"]))
toleration = st.builds(
    Toleration,
    taint_keys | st.just(""),
    st.sampled_from(["", "Equal", "Exists", "Exists", "Lt", "Gt"]),
    st.sampled_from(["", "v"]),
    effects | st.just(""),
    st.none() | st.just(60),
)
placement = st.builds(
    Placement,
    st.sampled_from(["", "", "", *NAMES]),
    st.dictionaries(keys, values, max_size=1),
    st.none() | st.lists(term, max_size=3).map(tuple),
    st.lists(toleration, max_size=3).map(tuple),
    st.booleans(),
)
node = st.builds(Node, st.sampled_from(NAMES), st.just("u"), labels, st.lists(taint, max_size=3).map(tuple))


def number_of(text):
    return NUMBERS.get(text)


def broken(one):
    if one.key in BAD_KEYS or any(value in BAD_VALUES for value in one.values):
        return True
    if one.operator in ("In", "NotIn"):
        return one.values == ()
    if one.operator in ("Exists", "DoesNotExist"):
        return one.values != ()
    if one.operator in ("Gt", "Lt"):
        return len(one.values) != 1 or number_of(one.values[0]) is None
    return True


def label_holds(one, its_labels):
    has, value = one.key in its_labels, its_labels.get(one.key)
    if one.operator == "Exists":
        return has
    if one.operator == "DoesNotExist":
        return not has
    if one.operator == "In":
        return has and any(value == each for each in one.values)
    if one.operator == "NotIn":
        return not has or all(value != each for each in one.values)
    mine, bound = number_of(value), number_of(one.values[0])
    return mine is not None and (mine > bound if one.operator == "Gt" else mine < bound)


def field_broken(one):
    return one.key != "metadata.name" or one.operator not in ("In", "NotIn") or len(one.values) != 1


def term_holds(one, its):
    if not one.expressions and not one.fields:
        return False
    if any(broken(each) for each in one.expressions) or any(field_broken(each) for each in one.fields):
        return False
    return all(label_holds(each, its.labels) for each in one.expressions) and all(
        (its.name == each.values[0]) == (each.operator == "In") for each in one.fields
    )


def covered(one, tolerations):
    return any(
        each.effect in ("", one.effect)
        and each.key in ("", one.key)
        and (each.operator == "Exists" or (each.operator in ("", "Equal") and each.value == one.value))
        for each in tolerations
    )


def expected(asked, its):
    added = {("node.kubernetes.io/not-ready", "NoExecute")}
    if asked.host_network:
        added.add(("node.kubernetes.io/network-unavailable", "NoSchedule"))
    left = {
        one.effect for one in its.taints if not covered(one, asked.tolerations) and (one.key, one.effect) not in added
    }
    fits = (
        asked.node_name in ("", its.name)
        and asked.node_selector.items() <= its.labels.items()
        and (asked.terms is None or any(term_holds(one, its) for one in asked.terms))
    )
    return (fits and not left & {"NoSchedule", "NoExecute"}, fits and "NoExecute" not in left)


@settings(max_examples=1000)
@given(placement, st.lists(node, min_size=1, max_size=4))
def test_eligible_as_the_rules_say(asked, nodes):
    """Both answers, for nodes asked about one after another."""
    eligibility = Eligibility(asked)
    for one in nodes:
        assert eligibility.eligible(one) == expected(asked, one)
        assert eligibility_of(asked).eligible(one) == expected(asked, one)


@given(term, node)
def test_a_term_as_the_rules_say(one, its):
    """One term alone, where it is not hidden behind anything else."""
    assert Eligibility(Placement(terms=(one,), tolerations=(Toleration("", "Exists"),))).eligible(its)[0] == term_holds(
        one, its
    )


@given(placement)
def test_merging_is_stable(asked):
    """Merging what was merged adds nothing; the template's own keep their order and are as many as before."""
    merged = tolerations_for_pods(asked)
    again = Placement(tolerations=merged, host_network=asked.host_network)
    assert tolerations_for_pods(again) == merged
    bare = [(t.key, t.operator, t.value, t.effect) for t in merged]
    assert bare[: len(asked.tolerations)] == [(t.key, t.operator, t.value, t.effect) for t in asked.tolerations]
