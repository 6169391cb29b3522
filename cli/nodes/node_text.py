"""Labels, taints and nodes as people write and read them, in kubectl's notation. Pure."""

from __future__ import annotations

import fnmatch
import re
from collections.abc import Iterable, Mapping, Sequence
from typing import Any

from oarlock.cli.problems import InputProblem
from oarlock.cli.tables import span
from oarlock.cluster.timestamps import unix_ms
from oarlock.sandbox.apiserver.text import names
from oarlock.sandbox.apiserver.validation.pods.placement import EFFECTS, taint_errors
from oarlock.sandbox.nodes.lifecycle import readiness

Obj = dict[str, Any]
Labels = Mapping[str, str]

GIVEN_LABELS = ("kubernetes.io/hostname", "kubernetes.io/os", "kubernetes.io/arch")
"""Labels that every node has; tables leave out their usual values."""
UNKNOWN = "Unknown"
"""The readiness of a node without a Ready condition."""
_NAME = re.compile(r"[a-z0-9*?\[\]!.-]+")


def split_words(words: Sequence[str]) -> tuple[list[str], list[str]]:
    """(names of nodes, changes): a change contains `=` or `:` or ends in `-`; a name never does."""
    changes = [word for word in words if "=" in word or ":" in word or word.endswith("-")]
    return [word for word in words if word not in changes], changes


def parse_label(word: str) -> tuple[str, str]:
    """`key=value`. Raises InputProblem."""
    key, equals, value = word.partition("=")
    if not equals:
        raise InputProblem(f"label {word!r}: no value; write key=value, such as zone=a")
    _check_key("label", word, key)
    for problem in names.label_value(value):
        raise InputProblem(f"label {word!r}: bad value {value!r}: {problem}")
    return key, value


def parse_label_change(word: str) -> tuple[str, str | None]:
    """`key=value`, or `key-` (None: remove it). Raises InputProblem."""
    if "=" in word or not word.endswith("-"):
        return parse_label(word)
    key = word[:-1]
    _check_key("label", word, key)
    return key, None


def _check_key(what: str, word: str, key: str) -> None:
    for problem in names.qualified_name(key):
        raise InputProblem(f"{what} {word!r}: bad key {key!r}: {problem}")


def parse_taint(word: str) -> Obj:
    """`key=value:Effect` or `key:Effect`. Raises InputProblem."""
    head, colon, effect = word.rpartition(":")
    if not colon:
        raise InputProblem(f"taint {word!r}: no effect; write key=value:Effect, Effect one of {', '.join(EFFECTS)}")
    key, _, value = head.partition("=")
    taint = {"key": key, "value": value, "effect": effect} if value else {"key": key, "effect": effect}
    for error in taint_errors([taint], "taint"):
        what = error.field.rpartition(".")[2]
        raise InputProblem(f"taint {word!r}: bad {what}: {error.message}")
    return taint


def parse_taint_change(word: str) -> tuple[Obj, bool]:
    """(taint, whether to set it): `key=value:Effect` to set; `key-` or `key:Effect-` to remove.

    Raises InputProblem.
    """
    if not word.endswith("-"):
        return parse_taint(word), True
    text = word[:-1]
    if ":" in text:
        return parse_taint(text), False
    key = text.partition("=")[0]
    _check_key("taint", word, key)
    return {"key": key}, False


def with_taints(taints: Sequence[Obj], changes: Iterable[tuple[Obj, bool]]) -> list[Obj]:
    """The taints after the changes; a taint of the same key and effect is replaced."""
    result = list(taints)
    for change, is_set in changes:
        same = [taint for taint in result if _same(taint, change)]
        if is_set and [{**taint, "timeAdded": None} for taint in same] == [{**change, "timeAdded": None}]:
            continue
        result = [taint for taint in result if taint not in same]
        if is_set:
            result.append(change)
    return result


def _same(taint: Obj, other: Obj) -> bool:
    return taint.get("key") == other["key"] and taint.get("effect") == other.get("effect", taint.get("effect"))


def taint_text(taint: Obj) -> str:
    """`key=value:Effect`; without a value `key:Effect`."""
    value = f"={taint['value']}" if taint.get("value") else ""
    return f"{taint.get('key', '')}{value}:{taint.get('effect', '')}"


def check_name(name: str) -> None:
    """Raises InputProblem if no node may have this name."""
    for problem in names.dns_subdomain(name):
        raise InputProblem(f"node {name!r}: bad name: {problem}")


def chosen(nodes: Sequence[Obj], wanted: Sequence[str]) -> list[Obj]:
    """The nodes that ``wanted`` names, by name or pattern (`node-1*`), in the order of `nodes`; all if it is empty.

    Raises InputProblem with a line for each word that matches no node.
    """
    if not wanted:
        return list(nodes)
    have = [node["metadata"]["name"] for node in nodes]
    picked: set[str] = set()
    problems = []
    for word in wanted:
        found = fnmatch.filter(have, word) if _NAME.fullmatch(word) else []
        if not found:
            problems.append(f"node {word!r}: there is none; `oarlock nodes list` shows those there are")
        picked.update(found)
    if problems:
        raise InputProblem(*problems)
    return [node for node in nodes if node["metadata"]["name"] in picked]


def as_row(node: Obj, pods: int | None = None) -> Obj:
    """A node as `-o json` prints it."""
    meta, spec, status = node["metadata"], node.get("spec") or {}, node.get("status") or {}
    room = str((status.get("allocatable") or {}).get("pods"))
    row = {
        "name": meta["name"],
        "ready": readiness(node) or UNKNOWN,
        "cordoned": bool(spec.get("unschedulable")),
        "taints": [taint_text(taint) for taint in spec.get("taints") or ()],
        "labels": dict(meta.get("labels") or {}),
        "room": int(room) if room.isdigit() else None,
        "created": meta.get("creationTimestamp", ""),
    }
    return row if pods is None else {**row, "pods": pods}


def as_cells(row: Obj, now_ms: int) -> Obj:
    """The row as tables show it."""
    ready = {"True": "Ready", "False": "NotReady"}.get(row["ready"], "Unknown")
    labels: Labels = row["labels"]
    usual = ("linux", "amd64", row["name"])
    told = [f"{key}={value}" for key, value in sorted(labels.items()) if key not in GIVEN_LABELS or value not in usual]
    return {
        "name": row["name"],
        "status": f"{ready},SchedulingDisabled" if row["cordoned"] else ready,
        "pods": f"{row.get('pods', '-')}/{row['room'] if row['room'] is not None else '-'}",
        "taints": row["taints"] or None,
        "labels": told or None,
        "age": span(max(0, now_ms - unix_ms(row["created"])) // 1000 * 1000),
    }


def numbered(have: Iterable[str], prefix: str, count: int) -> list[str]:
    """The next `count` names with this prefix, after the highest number in use."""
    tails = (name.removeprefix(prefix) for name in have if name.startswith(prefix))
    first = max((int(tail) for tail in tails if tail.isascii() and tail.isdigit()), default=-1) + 1
    return [f"{prefix}{number}" for number in range(first, first + count)]


def told(what: str, node_names: Sequence[str], several_from: int = 11) -> list[str]:
    """One line for each node; for many nodes one line in all."""
    if len(node_names) < several_from:
        return [f"{name}: {what}" for name in node_names]
    return [f"{len(node_names)} nodes {what}: {node_names[0]} ... {node_names[-1]}"]
