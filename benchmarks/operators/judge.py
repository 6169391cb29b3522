"""The verdict of a campaign, from evidence alone: the API server's audit log, what it lists at the end, and the log of
the outside. It imports nothing of the product, and says itself what a Bundle of a spec has to have.
"""

from __future__ import annotations

import itertools
import json
from collections.abc import Iterable, Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

Json = dict[str, Any]


@dataclass
class Wish:
    """One Bundle: (when it was asked for, how many children, their text), in order; ``gone_s``: when it was deleted."""

    name: str
    specs: list[tuple[str, int, str]] = field(default_factory=list)
    gone: str = ""

    def lacked(self, child: str, since: str, until: str) -> bool:
        """Whether some spec in force between these times does not ask for this child."""
        before = [count for at, count, _ in self.specs if at <= since][-1:]
        between = [count for at, count, _ in self.specs if since < at <= until]
        return any(child not in names(self.name, count) for count in (*before, *between))

    def drops(self, child: str) -> int:
        """How often a spec that asked for it was followed by one that does not."""
        asked = [child in names(self.name, count) for _, count, _ in self.specs]
        return sum(before and not after for before, after in itertools.pairwise(asked))


@dataclass
class Verdict:
    """``broken``: sentences, none if all is well. ``counts``: what there was to judge."""

    broken: list[str] = field(default_factory=list)
    counts: dict[str, int] = field(default_factory=dict)

    def count(self, what: str, more: int = 1) -> None:
        self.counts[what] = self.counts.get(what, 0) + more

    def blame(self, text: str) -> None:
        self.broken.append(text)


def names(bundle: str, count: int) -> list[str]:
    return [f"{bundle}-{number}" for number in range(count)]


def judge(audit: Path, at_end: Mapping[str, Iterable[Json]], outside: Path) -> Verdict:
    """``at_end``: by plural, the objects that the server lists when all is at rest."""
    verdict = Verdict()
    events = [json.loads(line) for line in audit.read_text().splitlines()]
    events = [each for each in events if each["responseStatus"]["code"] < 300]
    wishes = _wishes(events)
    _children(verdict, events, wishes)
    _at_end(verdict, wishes, at_end)
    told = [json.loads(line) for line in outside.read_text().splitlines()] if outside.exists() else []
    _effects(verdict, events, told, at_end)
    return verdict


def _by_user(event: Json) -> bool:
    return "(user)" in event["userAgent"]


def _wishes(events: list[Json]) -> dict[str, Wish]:
    """By the UID of the Bundle."""
    found: dict[str, Wish] = {}
    for event in events:
        ref = event["objectRef"]
        if ref["resource"] != "bundles" or not _by_user(event):
            continue
        if event["verb"] == "delete":
            found[ref["uid"]].gone = event["stageTimestamp"]
        else:
            spec = event["responseObject"]["spec"]
            wish = found.setdefault(ref["uid"], Wish(ref["name"]))
            wish.specs.append((event["requestReceivedTimestamp"], spec["children"], spec.get("text", "")))
    return found


def _children(verdict: Verdict, events: list[Json], wishes: Mapping[str, Wish]) -> None:
    """What the fleet did to ConfigMaps: created as often as they came to be wanted, deleted only what was not."""
    made: dict[tuple[str, str], int] = {}
    born: dict[str, tuple[str, str]] = {}  # by UID of the child: UID of its Bundle, and since when it is there
    for event in events:
        ref = event["objectRef"]
        if ref["resource"] != "configmaps" or _by_user(event):
            continue
        if event["verb"] == "delete":
            owner, since = born.get(ref["uid"], ("", ""))
            _deleted(verdict, event, wishes.get(owner), since)
            continue
        child = event["responseObject"]
        owners = [each for each in child["metadata"].get("ownerReferences", ()) if each.get("controller")]
        if len(owners) != 1 or owners[0]["uid"] not in wishes:
            verdict.blame(f"{ref['name']} was written without a Bundle as its controller")
            continue
        uid = owners[0]["uid"]
        born.setdefault(child["metadata"]["uid"], (uid, event["stageTimestamp"]))
        if event["responseStatus"]["code"] == 201:
            made[uid, ref["name"]] = made.get((uid, ref["name"]), 0) + 1
            verdict.count("children_created")
        else:
            verdict.count("children_applied_again")
    for (uid, name), times in made.items():
        if times > 1 + wishes[uid].drops(name):
            verdict.blame(f"{name} was created {times} times, and dropped by its spec {wishes[uid].drops(name)} times")


def _deleted(verdict: Verdict, event: Json, wish: Wish | None, since: str) -> None:
    verdict.count("children_deleted")
    name = event["objectRef"]["name"]
    preconditions = (event.get("requestObject") or {}).get("preconditions", {})
    if not preconditions.get("uid") or not preconditions.get("resourceVersion"):
        verdict.blame(f"the delete of {name} carries {preconditions}, not UID and resourceVersion")
    if wish is None:
        verdict.blame(f"{name} was deleted, which no Bundle owned")
    elif not wish.lacked(name, since, event["requestReceivedTimestamp"]):
        verdict.blame(f"{name} was deleted, though every spec since its creation asks for it")


def _at_end(verdict: Verdict, wishes: Mapping[str, Wish], at_end: Mapping[str, Iterable[Json]]) -> None:
    """Each wanted child exactly once, with the last text, and no other."""
    there: dict[str, dict[str, str]] = {}
    for child in at_end["configmaps"]:
        for owner in child["metadata"].get("ownerReferences", ()):
            there.setdefault(owner["uid"], {})[child["metadata"]["name"]] = child.get("data", {}).get("text", "")
    for uid, wish in wishes.items():
        found = there.pop(uid, {})
        _, count, text = wish.specs[-1]
        wanted = {} if wish.gone else dict.fromkeys(names(wish.name, count), text)
        verdict.count("children_wanted", len(wanted))
        if found != wanted:
            verdict.blame(f"at the end {wish.name} has {sorted(found.items())}, not {sorted(wanted.items())}")
    for uid, found in there.items():
        verdict.blame(f"at the end there are {sorted(found)} of {uid}, which nobody made")


def _effects(verdict: Verdict, events: list[Json], told: list[Json], at_end: Mapping[str, Iterable[Json]]) -> None:
    """Each generation at rest was told at least once, and one key is one effect; undone before the object went."""
    keys: dict[tuple[str, int, str], set[str]] = {}
    uses: dict[str, set[tuple[str, str, str]]] = {}
    for each in told:
        keys.setdefault((each["uid"], each["generation"], each["verb"]), set()).add(each["key"])
        uses.setdefault(each["key"], set()).add((each["uid"], each["verb"], each["value"]))
        verdict.count("effects_told")
    verdict.count("effects", len(keys))
    for (uid, generation, verb), found in keys.items():
        if len(found) > 1:
            verdict.blame(f"{verb} of {uid} in generation {generation} was told under {len(found)} keys")
    for key, meant in uses.items():
        if len(meant) > 1:
            verdict.blame(f"the key {key} stands for {len(meant)} effects")
    for each in at_end["effects"]:
        uid, generation = each["metadata"]["uid"], each["metadata"]["generation"]
        if (uid, generation, "PUT") not in keys:
            verdict.blame(f"{each['metadata']['name']} in generation {generation} was never told")
    living = {each["metadata"]["uid"] for each in at_end["effects"]}
    told_of = {uid for uid, _, verb in keys if verb == "PUT"}
    undone = {uid for uid, _, verb in keys if verb == "DELETE"}
    for event in events:
        ref = event["objectRef"]
        if ref["resource"] != "effects" or not _by_user(event) or event["verb"] != "delete":
            continue
        verdict.count("effects_deleted")
        if ref["uid"] in living:
            verdict.blame(f"{ref['name']} is still there")
        elif ref["uid"] in told_of and ref["uid"] not in undone:
            verdict.blame(f"{ref['name']} is gone, and its effect was never undone")
