"""Which revision is the current one, and what is to be done about the others."""

from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from oarlock.controllers.history.decide import History, decide_history, mislabelled
from oarlock.controllers.history.model import HASH_LABEL, ControllerRevision, revision_name
from oarlock.controllers.objects.model import Requirement, label_selector
from tests.controllers.builders import NOW_MS, OTHER_UID, UID, WEB, with_fields
from tests.controllers.history.history_builders import (
    OUR_DAEMONS,
    THEIR_DAEMONS,
    daemon_pod,
    daemons,
    hash_for,
    revision,
)

V1, V2, V3 = revision(1, "v1"), revision(2, "v2"), revision(3, "v3")
TWIN = revision(4, "v1", "twin", WEB | {HASH_LABEL: "twin"})
BARE = {"labels": dict(WEB)}


def said(history: History) -> str:
    """What is to be done, in words; revisions by the part of their names after `web-`, or by their image."""
    short = {hash_for(image): image for image in ("v1", "v2", "v3")}

    def names(revisions: tuple[ControllerRevision, ...]) -> str:
        rests = (each.name.removeprefix("web-") for each in revisions)
        return " ".join(short.get(rest, rest) for rest in rests)

    words = [f"{word} {names(those)}" for word, those in _stages(history) if those]
    current = names((history.current,)) if history.current else "none"
    words += [f"create {history.number}"] * history.create + [f"number {history.number}"] * history.renumber
    words += [f"current {current}", f"old {names(history.old)}".strip()]
    return "; ".join(words)


def _stages(history: History) -> tuple[tuple[str, tuple[ControllerRevision, ...]], ...]:
    return (
        ("adopt", history.adopt),
        ("release", history.release),
        ("label", history.unlabelled),
        ("delete", history.duplicates),
    )


@pytest.mark.parametrize(
    ("image", "revisions", "expected"),
    [
        pytest.param("v1", (), "create 1; current none; old", id="the first"),
        pytest.param("v1", (V1,), "current v1; old", id="26.2.7 nothing has changed"),
        pytest.param("v2", (V1,), "create 2; current none; old v1", id="another template"),
        pytest.param("v3", (V1, V2, V3), "current v3; old v1 v2", id="in order"),
        pytest.param("v1", (V1, V2, V3), "number 4; current v1; old v2 v3", id="rolled back: numbered, not made anew"),
        pytest.param("v1", (with_fields(V1, revision=4), V2, V3), "current v1; old v2 v3", id="numbered already"),
        pytest.param("v2", (V1, with_fields(V2, revision=0)), "number 2; current v2; old v1", id="never numbered"),
        pytest.param(
            "v3", (with_fields(V1, revision=7), V2), "create 8; current none; old v1 v2", id="after the highest number"
        ),
    ],
)
def test_current(image: str, revisions: tuple[ControllerRevision, ...], expected: str) -> None:
    history = decide_history(daemons(image), revisions)
    assert said(history) == expected
    assert history.hash == hash_for(image), "a rollback has the hash it had before"
    assert history.writes == (("create" in expected) or ("number" in expected))


@pytest.mark.parametrize(
    ("fields", "expected"),
    [
        pytest.param({}, "current v1; old", id="26.2.9 ours"),
        pytest.param({"labels": {"app": "else"}}, "release v1; create 1; current none; old", id="26.2.9 not selected"),
        pytest.param({"owner_refs": ()}, "adopt v1; current v1; old", id="26.2.9 an orphan that is selected"),
        pytest.param(
            {"owner_refs": (), "namespace": "other"}, "create 1; current none; old", id="26.2.9 of another namespace"
        ),
        pytest.param({"owner_refs": (), "labels": {}}, "create 1; current none; old", id="an orphan, not selected"),
        pytest.param({"owner_refs": (), "deleting_ms": 1}, "create 1; current none; old", id="an orphan being deleted"),
        pytest.param({"owner_refs": (THEIR_DAEMONS,)}, "create 1; current none; old", id="another's"),
        pytest.param(
            {"owner_refs": (with_fields(OUR_DAEMONS, uid=OTHER_UID),)},
            "create 1; current none; old",
            id="of a predecessor of the same name",
        ),
        pytest.param(BARE, "label v1; current v1; old", id="without a hash label"),
        pytest.param({"labels": WEB | {HASH_LABEL: ""}}, "label v1; current v1; old", id="with an empty one"),
        pytest.param(BARE | {"owner_refs": ()}, "adopt v1; label v1; current v1; old", id="adopted, then labelled"),
        pytest.param(BARE | {"deleting_ms": 1}, "current v1; old", id="without one, being deleted"),
    ],
)
def test_claims_and_labels(fields: dict[str, Any], expected: str) -> None:
    assert said(decide_history(daemons("v1"), [with_fields(V1, **fields)])) == expected


def test_the_label_will_be_the_name() -> None:
    """Not a hash: this is what upstream gives it, and the pods get the same."""
    bare = with_fields(V1, **BARE)
    assert decide_history(daemons("v1"), [bare]).hash == bare.name


@pytest.mark.parametrize(
    ("revisions", "expected"),
    [
        pytest.param((V1, TWIN), "delete v1; current twin; old", id="26.4.8 the higher number stays"),
        pytest.param((TWIN, V1), "delete v1; current twin; old", id="26.4.8 in whatever order they are listed"),
        pytest.param((TWIN, V1, with_fields(V2, revision=9)), "delete v1; number 10; current twin; old v2", id="back"),
        pytest.param(
            (with_fields(V1, revision=4, created_ms=2), with_fields(TWIN, created_ms=1)),
            "delete twin; current v1; old",
            id="equal numbers: the younger stays",
        ),
        pytest.param(
            (V1, with_fields(TWIN, deleting_ms=1)), "current v1; old", id="one that goes already: not deleted twice"
        ),
        pytest.param((with_fields(V1, deleting_ms=1),), "current v1; old", id="the only one goes: its name is taken"),
        pytest.param(
            (V1, with_fields(TWIN, revision=1, labels=dict(WEB), owner_refs=())),
            "adopt twin; label twin; delete v1; current twin; old",
            id="adopted, labelled, kept",
        ),
    ],
)
def test_duplicates(revisions: tuple[ControllerRevision, ...], expected: str) -> None:
    assert said(decide_history(daemons("v1"), revisions)) == expected


NAMED = with_fields(V1, name="web-bare", labels=dict(WEB))
THIRD = revision(3, "v1", "third", WEB | {HASH_LABEL: "third"})


@pytest.mark.parametrize(
    ("revisions", "relabelled"),
    [
        pytest.param((V1, TWIN, V2), "v1", id="111280: pods of the duplicate, not those of an older template"),
        pytest.param((V1, TWIN, THIRD), "v1 third", id="of every duplicate"),
        pytest.param((with_fields(V1, revision=9), TWIN), "twin", id="of the one that goes"),
        pytest.param((NAMED, TWIN), "web-bare", id="one that gets its name as its label"),
        pytest.param((V1,), "", id="no duplicate"),
        pytest.param((V1, V2), "", id="another template is none"),
        pytest.param((with_fields(TWIN, name="web-copy", revision=1), TWIN), "", id="both bear the same hash"),
        pytest.param(
            (V1, TWIN, with_fields(V2, labels=V1.labels)),
            "",
            id="one of another template bears it too: it says nothing",
        ),
    ],
)
def test_pods_labelled_anew(revisions: tuple[ControllerRevision, ...], relabelled: str) -> None:
    """26.4.8, 111280: a pod of every hash there may be, and one without."""
    hashes = {"v1": hash_for("v1"), "v2": hash_for("v2")}
    bare = daemon_pod("none", "", labels=dict(WEB))
    pods = [daemon_pod(word, hashes.get(word, word)) for word in ("v1", "v2", "v3", "twin", "third", "web-bare")]
    found = mislabelled(decide_history(daemons("v1"), revisions), [*pods, bare])
    assert [pod.name for pod in found] == relabelled.split()


@pytest.mark.parametrize(
    "fields",
    [
        pytest.param({"deleting_ms": NOW_MS}, id="being deleted"),
        pytest.param({"selector": None}, id="no selector"),
        pytest.param({"selector": label_selector({})}, id="an empty selector, which would match everything"),
        pytest.param({"selector": label_selector({}, (Requirement("a", "In"),))}, id="an invalid selector"),
    ],
)
def test_owners_left_alone(fields: dict[str, Any]) -> None:
    mess = (with_fields(V1, owner_refs=()), with_fields(V1, **BARE), TWIN, V2, with_fields(V3, labels={}))
    for image in ("v1", "v2", "v4"):
        assert not decide_history(daemons(image, **fields), mess).writes


def test_an_owner_being_deleted_keeps_its_hash() -> None:
    assert decide_history(daemons("v1", deleting_ms=1), [TWIN]).hash == "twin"


def test_the_collision_count_makes_another_name() -> None:
    """None, then 1, then 2: each is another hash. 0 is not None."""
    owners = [daemons("v1", count) for count in (None, 0, 1, 2)]
    assert len({decide_history(owner, []).hash for owner in owners}) == 4
    assert {decide_history(owner, [V1]).hash for owner in owners} == {hash_for("v1")}, "what is there has its hash"


@pytest.mark.parametrize(
    ("adopted", "expected"),
    [
        pytest.param(None, "adopt v1 v2; number 3; current v1; old v2", id="before"),
        pytest.param({V1.uid, V2.uid}, "number 3; current v1; old v2", id="both"),
        pytest.param({V2.uid}, "create 3; current none; old v2", id="the current one had gone"),
        pytest.param(set(), "create 1; current none; old", id="both had gone"),
    ],
)
def test_after_adoptions(adopted: set[str] | None, expected: str) -> None:
    orphans = [with_fields(each, owner_refs=()) for each in (V1, V2)]
    history = decide_history(daemons("v1"), orphans, None if adopted is None else frozenset(adopted))
    assert said(history) == expected


def after(history: History, revisions: tuple[ControllerRevision, ...], image: str) -> tuple[ControllerRevision, ...]:
    """The revisions once everything has been carried out."""
    gone = {each.uid for each in history.duplicates}
    left = []
    for each in revisions:
        changed = each
        if each in history.adopt:
            changed = with_fields(changed, owner_refs=(*each.owner_refs, OUR_DAEMONS))
        if each in history.release:
            changed = with_fields(changed, owner_refs=())
        if each in history.unlabelled:
            changed = with_fields(changed, labels=each.labels | {HASH_LABEL: each.name})
        if history.renumber and each == history.current:
            changed = with_fields(changed, revision=history.number)
        if each.uid not in gone:
            left.append(changed)
    if history.create:
        made = revision(history.number, image, history.hash, WEB | {HASH_LABEL: history.hash}, uid="made")
        assert made.name == revision_name("web", history.hash)
        left.append(made)
    return tuple(left)


some_revisions = st.lists(
    st.builds(
        lambda image, fields: with_fields(revision(0, image), **fields),
        st.sampled_from(["v1", "v1", "v2", "v3"]),
        st.fixed_dictionaries(
            {
                "revision": st.integers(0, 5),
                "created_ms": st.integers(0, 2),
                "labels": st.sampled_from([WEB | {HASH_LABEL: "h1"}, WEB | {HASH_LABEL: "h2"}, dict(WEB), {}]),
                "owner_refs": st.sampled_from([(OUR_DAEMONS,), (OUR_DAEMONS,), (), (THEIR_DAEMONS,)]),
                "deleting_ms": st.sampled_from([0, 0, 0, 1]),
                "namespace": st.sampled_from(["default", "default", "default", "other"]),
            }
        ),
    ),
    max_size=6,
).map(lambda those: tuple(with_fields(each, name=f"r{n}", uid=f"u{n}") for n, each in enumerate(those)))


@given(some_revisions, st.sampled_from(["v1", "v2", "v4"]), st.sampled_from([None, 0, 1]), st.data())
def test_nothing_is_written_twice(
    revisions: tuple[ControllerRevision, ...], image: str, collision_count: int | None, data: st.DataObject
) -> None:
    """Whatever there is: once it was carried out, the same owner has nothing to write, in whatever order its revisions
    are listed; its hash is what was foretold, borne by a revision of its template with a number above all others.
    """
    owner = daemons(image, collision_count)
    first = decide_history(owner, revisions)
    done = after(first, revisions, image)
    again = decide_history(owner, data.draw(st.permutations(done)))
    assert not again.writes, said(again)
    assert again.hash == first.hash
    assert again.current is not None
    assert again.current.digest == owner.template_digest
    assert all(each.revision < again.current.revision for each in again.old)
    foreign = [each for each in revisions if each.owner_refs and each.owner_refs[0].uid != UID]
    assert [each for each in done if each in foreign] == foreign, "what is another's is not touched"
