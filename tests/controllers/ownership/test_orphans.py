"""What stands where in the index of orphans, and that an owner that looks where it is sent misses none that matters."""

import random
import secrets

import pytest

from oarlock.controllers.daemonset import decide as daemon_decide
from oarlock.controllers.daemonset import names
from oarlock.controllers.objects.model import Requirement, label_selector
from oarlock.controllers.ownership.orphans import places_by_label, places_by_name, selected_entries, where_to_look
from oarlock.controllers.plan import Snapshot, Unanswered
from oarlock.controllers.pods.slots import base_of, slots_of
from oarlock.controllers.replicaset import decide
from tests.controllers.builders import NOW_MS, pod, rs, slot_names, with_fields
from tests.controllers.daemonset.daemon_builders import dpod, ds, node, slot, snap
from tests.controllers.pod_names import daemon_name

A_IN = Requirement("a", "In", ("1", "2"))


@pytest.mark.parametrize(
    ("selector", "words"),
    [
        pytest.param(label_selector({"a": "1"}), ["?ns/a=1"], id="one label"),
        pytest.param(label_selector({"a": "1", "b": ""}), ["?ns/a=1", "?ns/b="], id="either label will do"),
        pytest.param(label_selector(None, (A_IN,)), ["?ns/a=1|ns/a=2"], id="one of several values"),
        pytest.param(label_selector({"b": "1"}, (A_IN,)), ["?ns/b=1", "?ns/a=1|ns/a=2"], id="both"),
        pytest.param(
            label_selector(None, (Requirement("a", "In", ("1", "1")),)), ["?ns/a=1"], id="a value that is named twice"
        ),
        pytest.param(label_selector(None, (Requirement("a", "Exists"),)), ["?ns"], id="no value is named: all of them"),
        pytest.param(
            label_selector({"b": "1"}, (Requirement("a", "NotIn", ("1",)),)), ["?ns/b=1"], id="what excludes is no help"
        ),
        pytest.param(
            label_selector(None, (Requirement("a", "In", tuple(map(str, range(17)))),)), ["?ns"], id="too many values"
        ),
        pytest.param(label_selector({}), ["?ns"], id="empty: everything"),
        pytest.param(label_selector({"a": "no value"}), ["?ns"], id="invalid: as ever"),
        pytest.param(None, [], id="none selects nothing"),
    ],
)
def test_where_an_owner_looks(selector, words):
    assert where_to_look("ns", selector, "web-") == (*words, "+ns/~web-")


@pytest.mark.parametrize(
    ("name", "places"),
    [
        pytest.param("web-bcdfg", ["orphan=ns/~web-"], id="as a slot"),
        pytest.param("web-bcdfghjk", ["orphan=ns/~web-bcd", "orphan=ns/~web-"], id="as a daemon pod"),
        pytest.param("web-00001", [], id="no letters of ours"),
        pytest.param("web-bcda2", [], id="one that is not"),
        pytest.param("bcd", ["orphan=ns/~", "orphan=ns/~"], id="too short: harmless"),
    ],
)
def test_where_a_name_stands(name, places):
    assert list(places_by_name("ns", name)) == places


def test_no_orphan_that_matters_is_missed():
    """Whichever of its selector's places an owner is sent to; and by name, whatever its labels."""
    number = secrets.randbits(32)
    print(f"seed {number}")
    chance = random.Random(number)
    selected = borne = 0
    for _ in range(4_000):
        labels = {key: chance.choice("12") for key in "abc" if chance.random() < 0.7}
        wanted = {key: chance.choice("12") for key in "abc" if chance.random() < 0.4}
        operators = [
            Requirement(key, operator, ("1",) * operator.endswith("In"))
            for key in "abc"
            for operator in ("In", "NotIn", "Exists", "DoesNotExist")
            if chance.random() < 0.05
        ]
        selector = label_selector(wanted, tuple(operators))
        owner = chance.choice(("web", "w" * 60, "a.b", "x-bcdfg"))
        made, base = (
            (slots_of(owner, "uid").name(chance.randrange(1_000)), base_of(owner))
            if chance.random() < 0.5
            else (daemon_name(owner, "uid", f"n{chance.randrange(99)}", 0), names.base_of(owner))
        )
        name = chance.choice((made, "bare"))
        stands = {*places_by_label("ns", labels), *places_by_name("ns", name)}
        words = where_to_look("ns", selector, base)
        if selector.matches(labels):
            selected += 1
            for word in words:
                assert word[0] != "?" or stands & {f"orphan={place}" for place in word[1:].split("|")}, word
            assert stands & set(selected_entries("ns", selector))
        if name == made:
            borne += 1
            assert f"orphan={words[-1][1:]}" in stands
    assert min(selected, borne) > 500


def read(owner, base, orphans, chance):
    """Of the orphans those that a claim reads, whichever of the sufficient places it goes to."""
    words = where_to_look(owner.namespace, owner.selector, base)
    any_of = [word[1:].split("|") for word in words if word[0] == "?"]
    places = {f"orphan={place}" for place in (*chance.choice(any_of), words[-1][1:])}
    return [
        each
        for each in orphans
        if places & {*places_by_label(each.namespace, each.labels), *places_by_name(each.namespace, each.name)}
    ]


def some(chance, of, most):
    return frozenset(chance.sample(of, chance.randrange(most)))


def test_a_replicaset_decides_as_if_it_saw_every_orphan_of_its_namespace():
    number = secrets.randbits(32)
    print(f"seed {number}")
    chance = random.Random(number)
    left_out = acted = 0
    candidates = slot_names(*range(12))
    for _ in range(3_000):
        bearers = chance.sample([*candidates, *(f"bare-{i}" for i in range(6))], 10)
        labels = [{"app": "web"}, {"app": "web", "b": "1"}, {"app": "else"}, {}, {"b": "1"}]
        known = [
            pod(
                name,
                labels=chance.choice(labels),
                phase=chance.choice(("Running", "Running", "Failed")),
                deleting_ms=chance.choice((0, 0, NOW_MS)),
                **({"owner_refs": ()} if chance.random() < 0.6 else {}),
            )
            for name in bearers
        ]
        owner = rs(chance.randrange(12), strict=chance.random() < 0.3)
        if chance.random() < 0.5:
            owner = with_fields(owner, selector=label_selector({"app": "web", "b": "1"}))
        orphans = [each for each in known if not each.owner_refs]
        seen = {each.uid for each in read(owner, base_of("web"), orphans, chance)}
        fewer = tuple(each for each in known if each.owner_refs or each.uid in seen)
        left_out += len(known) - len(fewer)
        unanswered, blocked = Unanswered(creates=some(chance, candidates, 4)), some(chance, candidates, 3)
        plans = [
            decide.decide(Snapshot(owner, pods, unanswered=unanswered, blocked=blocked), NOW_MS)
            for pods in (tuple(known), fewer)
        ]
        acted += plans[0].writes
        assert plans[0] == plans[1]
    assert left_out > 1_000
    assert acted > 1_000


def test_a_daemonset_decides_as_if_it_saw_every_orphan_of_its_namespace():
    number = secrets.randbits(32)
    print(f"seed {number}")
    chance = random.Random(number)
    left_out = acted = 0
    around = {f"n{i}": node(f"n{i}") for i in range(5)}
    owner = ds()
    for _ in range(2_000):
        bearers = {
            chance.choice((slot(on, k), f"bare-{on}-{k}")): dpod(on, k)
            for on in around
            for k in range(2)
            if chance.random() < 0.5
        }
        known = []
        for name, one in bearers.items():
            labels = chance.choice((one.labels, {"app": "else"}, {}))
            refs = () if chance.random() < 0.7 else one.owner_refs
            known.append(with_fields(one, name=name, uid=f"uid-{name}", labels=labels, owner_refs=refs))
        orphans = [each for each in known if not each.owner_refs]
        seen = {each.uid for each in read(owner, names.base_of(owner.name), orphans, chance)}
        fewer = tuple(each for each in known if each.owner_refs or each.uid in seen)
        left_out += len(known) - len(fewer)
        whole = snap(around, known)
        plans = [daemon_decide.decide(each, NOW_MS) for each in (whole, with_fields(whole, pods=fewer))]
        acted += plans[0].writes
        assert plans[0] == plans[1]
    assert left_out > 500
    assert acted > 500
