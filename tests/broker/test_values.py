"""Values as the scripts send and take them."""

from __future__ import annotations

import pytest

from oarlock.broker.expectations import BACK_OFF, Expectations, ExpectedDelete, OpenWrite, Rewritten, SizeEntry
from oarlock.broker.values.claims import LoadSpec
from oarlock.broker.values.objects import Cached
from oarlock.broker.values.turns import Entry

VALUES = [
    b"5 uid-1\nowner=u node=n1 mirror\nq:ns/a q:ns/b\nblob",
    b"5 uid-1 k.5ea1\nowner=u\n\nblob",
    b"99999999999999999999 \n\n\n",
    b"7 u\n\n\n" + bytes(range(256)) + b"\n\n",
]


@pytest.mark.parametrize("value", VALUES)
def test_one_object_is_read_as_many_are(value: bytes) -> None:
    one = Cached.parse(value)
    assert Cached.parse_all([value, value]) == [one, one]
    assert isinstance(Cached.parse_all([value])[0], Cached)
    head, entries, wakes = value.split(b"\n")[:3]
    assert (f"{one.rv} {one.uid}" + f" {one.signature}" * bool(one.signature)).encode() == head
    assert b"\n".join([head, entries, wakes, one.blob]) == value


@pytest.mark.parametrize(
    ("entry", "field", "detail"),
    [
        (Entry("create", "pods/a"), "create pods/a", ""),
        (Entry("create", "pods/a", hint="node=n1"), "create pods/a", "node=n1"),
        (Entry("delete", "pods/a", "u", "5"), "delete pods/a", "uid=u rv=5"),
        (Entry(BACK_OFF, "n1", hint="generation=1 delay_ms=2"), "backoff n1", "generation=1 delay_ms=2"),
    ],
)
def test_an_entry_as_it_is_stored(entry: Entry, field: str, detail: str) -> None:
    assert (entry.field, entry.detail) == (field, detail)


def test_a_load_spec_as_a_claim_reads_it() -> None:
    children = (("pods", "owner", "uid"), ("revs", "owner", "uid"), ("pods", "node", "name"))
    spec = LoadSpec("q", "sets", children, (("nodes", ""), ("classes", "g:7")))
    assert spec.text == "q sets pods/owner/uid revs/owner/uid pods/node/name nodes/-/mirror classes/g:7/mirror"
    assert spec.resources == ("pods", "revs")
    assert LoadSpec("q", "sets").text == "q sets"


def test_a_record_in_all_its_words() -> None:
    said = {
        "owner": "uid-web",
        "create pods/a": "pending since_ms=5 sent_ms=6 tries=2 node=n1 until_ms=9",
        "create pods/b": "pending since_ms=5",
        "delete pods/c": "pending since_ms=5 sent_ms=5 tries=1 uid=u rv=7 over",
        "delete pods/d": "answered uid=v rv=8",
        "scale sets/i": "pending since_ms=5 sent_ms=6 tries=2 uid=y rv=9 low=0 high=12 over",
        "scale sets/j": "answered uid=z low=1 high=3",
        "reserved pods/a": "node=n1 until_ms=9",
        "reserved pods/f": "over",
        "blocked pods/e": "uid=w",
        "passed pods/g": "until_ms=8",
        "rest pods/h": "uid=x",
        "backoff n1": "generation=1 delay_ms=1000 at_ms=5",
        "backoff n2": "pending",
        "status sets/web": "pending since_ms=5",
        "rewritten": "times=6 rv=9 inputs=ab until_ms=5",
        "undone": "uid-web",
        "said": "create pods/a: no answer",
    }
    record = Expectations.parse([text for pair in said.items() for text in pair])
    assert record == Expectations(
        owner_uid="uid-web",
        creates={"pods/a": OpenWrite(5, 6, 2), "pods/b": OpenWrite(5, 5, 1)},
        deletes=(
            ExpectedDelete("pods/c", "u", "7", False, OpenWrite(5, 5, 1, True)),
            ExpectedDelete("pods/d", "v", "8", True),
        ),
        scales=(
            SizeEntry("sets/i", "y", "9", 0, 12, OpenWrite(5, 6, 2, True)),
            SizeEntry("sets/j", "z", "", 1, 3),
        ),
        pending_others=(("status", "sets/web"),),
        reserved={"pods/a": False, "pods/f": True},
        blocked={"pods/e": "w"},
        passed={"pods/g": 8},
        rests={"pods/h": "uid=x"},
        hints={"pods/a": "node=n1"},
        back_offs={"n1": "generation=1 delay_ms=1000 at_ms=5", "n2": "pending"},
        said="create pods/a: no answer",
        rewritten=Rewritten(6, "9", "ab", 5),
        undone="uid-web",
    )
    assert record.unanswered == 5
    assert record.rewritten is not None
    assert record.rewritten.text == said["rewritten"]
    pending, done = record.scales
    assert pending.answered_text == "answered uid=y low=0 high=12"
    assert done.answered_text == said[done.field]
    assert Expectations.parse([]) is None
    only = Expectations.parse(["owner", "u", "backoff n1", "pending"])
    assert only is not None
    assert not only.unanswered
