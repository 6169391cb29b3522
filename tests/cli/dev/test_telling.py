"""What `oarlock dev` tells: lines for what happens to objects, lines of the operator's log, a table of figures."""

from __future__ import annotations

import json
import os
from collections import Counter
from pathlib import Path
from typing import Any

import pytest

from oarlock.cli.dev.code_watch import Check, CodeWatch
from oarlock.cli.dev.figures import turns_of
from oarlock.cli.dev.happenings import Happenings
from oarlock.cli.dev.operator_child import LogTail
from tests import ROOT

SHOP: dict[str, Any] = {
    "metadata": {"name": "shop", "namespace": "default", "resourceVersion": "7"},
    "spec": {"image": "nginx:1", "pages": {"a": "b"}},
}
OF_SHOP = {"ownerReferences": [{"kind": "Website", "name": "shop", "controller": True}]}
OF_OTHERS = {"ownerReferences": [{"kind": "ReplicaSet", "name": "web", "controller": True}]}


def told(happenings: Happenings) -> list[str]:
    found = []
    while not happenings.told.empty():
        found.append(" ".join(happenings.told.get().split()))
    return found


def meta(name: str, **more: Any) -> dict[str, Any]:
    return {"metadata": {"name": name, "namespace": "default", **more}}


@pytest.fixture
def happenings() -> Happenings:
    return Happenings(frozenset({"Website"}))


CHANGES = {
    "a value": ({"spec": {"image": "nginx:2", "pages": {"a": "b"}}}, ["~ Website default/shop spec.image=nginx:2"]),
    "a new part": ({"status": {"ready": 1, "url": "u"}}, ["~ Website default/shop status"]),
    "a value goes": ({"spec": {"pages": {"a": "b"}}}, ["~ Website default/shop spec.image=gone"]),
    "several": (
        {"spec": {"image": "x", "pages": {"a": "1", "b": "2", "c": "3"}}},
        ["~ Website default/shop spec.image=x, spec.pages.a=1, spec.pages.b=2, and 1 more"],
    ),
    "a long one": (
        {"spec": {"image": "x" * 50, "pages": {"a": "b"}}},
        [f"~ Website default/shop spec.image={'x' * 37}..."],
    ),
    "only what the server notes": (
        {"metadata": {**SHOP["metadata"], "resourceVersion": "8", "managedFields": [1]}},
        [],
    ),
}


@pytest.mark.parametrize(("change", "lines"), CHANGES.values(), ids=list(CHANGES))
def test_a_change(happenings: Happenings, change: dict[str, Any], lines: list[str]) -> None:
    happenings.change("Website", SHOP, False)
    assert told(happenings) == ["+ Website default/shop"]
    happenings.change("Website", {**SHOP, **change}, False)
    assert told(happenings) == lines
    happenings.change("Website", SHOP, True)
    assert told(happenings) == ["- Website default/shop"]


def test_of_other_kinds_only_what_one_of_ours_controls(happenings: Happenings) -> None:
    happenings.change("Deployment", meta("web", **OF_SHOP), False)
    happenings.change("Pod", meta("web-1", **OF_OTHERS), False)
    happenings.change("ConfigMap", meta("other"), False)
    assert told(happenings) == ["+ Deployment default/web of Website shop"]


def test_events(happenings: Happenings) -> None:
    def event(kind: str, name: str, count: int, type_: str = "Warning") -> None:
        about = {"kind": kind, "namespace": "default", "name": name}
        obj = {"involvedObject": about, "type": type_, "reason": "Failed", "message": "no", "count": count}
        happenings.event(obj, False)

    happenings.change("Deployment", meta("web", **OF_SHOP), False)
    told(happenings)
    for count in (1, 2, 9, 10, 11, 100):
        event("Website", "shop", count)
    event("Deployment", "web", 1, "Normal")
    event("Deployment", "elsewhere", 1)
    event("Pod", "web-1", 1)
    assert told(happenings) == [
        "! Website default/shop Failed: no",
        "! Website default/shop Failed: no (10 times)",
        "! Website default/shop Failed: no (100 times)",
        "Deployment default/web Failed: no",
    ]


LINES = {
    "of every start": ("time=T level=warning logger=oarlock.ingest event=bootstrap epoch=1", []),
    "not worth telling": ("time=T level=info logger=oarlock.fleet event=started pid=7", []),
    "a failed turn": (
        'time=T level=warning logger=oarlock.worker event=turn_failed queue=site key=default/a reason="no way" n=1',
        ["! turn_failed queue=site key=default/a reason=no way"],
    ),
    "a user's own": (
        'time=T level=info logger=oarlock.controller.site event=message controller=site key=default/a text="made it"',
        ["  made it controller=site key=default/a"],
    ),
    "a function that failed": (
        'time=T level=error logger=oarlock.worker event=function_failed controller=site key=default/a error="E: no"'
        " traceback=" + json.dumps("Traceback:\n  File x\nE: no"),
        ["! function_failed controller=site key=default/a error=E: no", "    Traceback:", "      File x", "    E: no"],
    ),
    "a print": ("hello \x1b[31mred", ["  hello \\u001b[31mred"]),
    "damaged": ('time=T level=error logger="oarlock', []),
}


@pytest.mark.parametrize(("line", "lines"), LINES.values(), ids=list(LINES))
def test_a_line_of_the_log(tmp_path: Path, line: str, lines: list[str]) -> None:
    log = tmp_path / "operator.log"
    tail = LogTail(log)
    assert list(tail.lines()) == []  # it is not there yet
    log.write_text(line[:20])
    assert list(tail.lines()) == []
    log.write_text(line + "\n")
    assert list(tail.lines()) == lines


def test_a_trouble_is_told_once_until_the_code_is_new(tmp_path: Path) -> None:
    log, trouble = tmp_path / "operator.log", "time=T level=error logger=oarlock.worker event=turn_failed reason=x\n"
    tail = LogTail(log)
    log.write_text(trouble * 3 + "printed\n" * 2)
    assert list(tail.lines()) == ["! turn_failed reason=x", "  printed", "  printed"]
    tail.forget()
    with log.open("a") as file:
        file.write(trouble)
    assert list(tail.lines()) == ["! turn_failed reason=x"]


def test_turns_by_outcome() -> None:
    text = (
        "# TYPE oarlock_turns_total counter\n"
        'oarlock_turns_total{queue="site",outcome="done"} 5\noarlock_turns_total{queue="site",outcome="failed"} 2\n'
    )
    assert turns_of(text) == {"site": Counter(done=5, failed=2)}


def test_files_that_change(tmp_path: Path) -> None:
    file, beside = tmp_path / "site.py", tmp_path / "parts.py"
    file.write_text("1")
    watch = CodeWatch(str(file), [])
    assert not watch.changed()
    file.write_text("12")
    assert watch.changed()
    assert not watch.changed()
    beside.write_text("1")
    watch.follow([file, beside])
    assert not watch.changed()
    os.utime(beside, (1, 1))
    assert watch.changed()
    file.unlink()  # as some editors do before they write it anew
    assert watch.changed()
    file.write_text("12")
    assert watch.changed()


def test_a_check_says_what_is_in_the_files_or_why_not(tmp_path: Path) -> None:
    good = Check(str(ROOT / "tests" / "sdk" / "website.py")).wait()
    assert good.problem == ""
    assert [each["name"] for each in good.facts["controllers"]] == ["website"]
    assert [file.name for file in good.files] == ["website.py"]
    bad = tmp_path / "site.py"
    bad.write_text("print('loading')\ndef site(:\n")
    assert Check(str(bad)).wait().problem == f"{bad}:2: SyntaxError: invalid syntax"


def test_a_file_that_is_called_as_a_library_of_ours(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """An operator of Redis in redis.py: where Python has the current folder on its path, our own imports found that."""
    (tmp_path / "redis.py").write_text((ROOT / "tests" / "sdk" / "website.py").read_text())
    monkeypatch.chdir(tmp_path)
    checked = Check("redis.py").wait()
    assert checked.problem == ""
    assert [file.name for file in checked.files] == ["redis.py"]
