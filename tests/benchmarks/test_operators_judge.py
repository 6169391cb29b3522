"""The judge of operators under kills: a story in which all is well, and the same with one thing wrong each time."""

from __future__ import annotations

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from benchmarks.operators.judge import Verdict, judge

Json = dict[str, Any]


class Story:
    """A Bundle of two children, of which one is dropped, and an Effect that is told, changed and deleted."""

    def __init__(self) -> None:
        self.audit: list[Json] = []
        self.outside: list[Json] = []
        self._spec("create", 2, "a")
        self.write("b-0", "u0", 201)
        self.write("b-1", "u1", 201)
        self._spec("patch", 1, "b")
        self.write("b-0", "u0", 200)
        self.delete("b-1", "u1")
        self.at_end: dict[str, list[Json]] = {"configmaps": [_child("b-0", "u0", "b")], "effects": []}
        self.tell("PUT", 1, "e-1", "x")
        self.tell("PUT", 1, "e-1", "x")
        self.tell("PUT", 2, "e-2", "y")
        self.tell("DELETE", 3, "e-3", "y")
        self._event("delete", "effects", "e", "e", 200, "(user)")

    def _event(
        self, verb: str, resource: str, name: str, uid: str, code: int, by: str = "(worker)", **more: Any
    ) -> Json:
        at = f"2024-01-01T00:00:{len(self.audit):02}.000000Z"
        times = {"requestReceivedTimestamp": at, "stageTimestamp": at}
        ref = {"resource": resource, "name": name, "uid": uid}
        status = {"code": code}
        event = {
            "verb": verb,
            "userAgent": f"oarlock/0 {by}",
            "objectRef": ref,
            "responseStatus": status,
            **times,
            **more,
        }
        self.audit.append(event)
        return event

    def _spec(self, verb: str, children: int, text: str) -> None:
        spec = {"children": children, "text": text}
        self._event(verb, "bundles", "b", "B", 200 + (verb == "create"), "(user)", responseObject={"spec": spec})

    def write(self, name: str, uid: str, code: int) -> None:
        self._event("patch", "configmaps", name, uid, code, responseObject=_child(name, uid, ""))

    def delete(self, name: str, uid: str, version: str = "7") -> None:
        body = {"preconditions": {"uid": uid, **({"resourceVersion": version} if version else {})}}
        self._event("delete", "configmaps", name, uid, 200, requestObject=body)

    def tell(self, verb: str, generation: int, key: str, value: str) -> None:
        self.outside.append({"verb": verb, "uid": "e", "generation": generation, "key": key, "value": value})

    def judged(self, folder: Path) -> Verdict:
        audit, outside = folder / "audit", folder / "outside"
        audit.write_text("\n".join(map(json.dumps, self.audit)))
        outside.write_text("\n".join(map(json.dumps, self.outside)))
        return judge(audit, self.at_end, outside)


def _child(name: str, uid: str, text: str) -> Json:
    owner = {"uid": "B", "controller": True}
    return {"metadata": {"name": name, "uid": uid, "ownerReferences": [owner]}, "data": {"text": text}}


def test_all_is_well(tmp_path: Path) -> None:
    verdict = Story().judged(tmp_path)
    assert verdict.broken == []
    assert verdict.counts["children_created"] == 2
    assert verdict.counts["effects_told"] == 4


def twice(story: Story) -> None:
    story.write("b-0", "u9", 201)


def wanted_child_deleted(story: Story) -> None:
    story.delete("b-0", "u0")


def delete_without_version(story: Story) -> None:
    story.write("b-1", "u2", 201)
    story.delete("b-1", "u2", version="")


def missing_at_the_end(story: Story) -> None:
    story.at_end["configmaps"] = []


def too_many_at_the_end(story: Story) -> None:
    story.at_end["configmaps"].append(_child("b-1", "u1", "b"))


def old_text_at_the_end(story: Story) -> None:
    story.at_end["configmaps"] = [_child("b-0", "u0", "a")]


def without_owner(story: Story) -> None:
    story.write("b-0", "u0", 200)
    story.audit[-1]["responseObject"]["metadata"]["ownerReferences"] = []


def two_keys(story: Story) -> None:
    story.tell("PUT", 1, "other", "x")


def one_key_for_two(story: Story) -> None:
    story.tell("PUT", 2, "e-1", "y")


def never_told(story: Story) -> None:
    story.at_end["effects"] = [{"metadata": {"name": "f", "uid": "f", "generation": 1}}]


def never_undone(story: Story) -> None:
    story.outside.pop()


@pytest.mark.parametrize(
    ("change", "sentence"),
    [
        (twice, "b-0 was created 2 times"),
        (wanted_child_deleted, "b-0 was deleted, though"),
        (delete_without_version, "not UID and resourceVersion"),
        (missing_at_the_end, "at the end b has []"),
        (too_many_at_the_end, "at the end b has"),
        (old_text_at_the_end, "at the end b has"),
        (without_owner, "without a Bundle as its controller"),
        (two_keys, "under 2 keys"),
        (one_key_for_two, "stands for 2 effects"),
        (never_told, "was never told"),
        (never_undone, "was never undone"),
    ],
)
def test_what_is_wrong_is_found(tmp_path: Path, change: Callable[[Story], None], sentence: str) -> None:
    story = Story()
    change(story)
    assert any(sentence in each for each in story.judged(tmp_path).broken), story.judged(tmp_path).broken
