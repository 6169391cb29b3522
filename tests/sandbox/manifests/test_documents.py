"""YAML in, objects with their lines out; whatever is no JSON is refused with its place."""

from __future__ import annotations

from pathlib import Path

import pytest

from oarlock.sandbox.manifests.documents import Unreadable, parse, read_all


@pytest.mark.parametrize(
    ("text", "values"),
    [
        pytest.param(
            "a: 1\n---\n# nothing\n---\nb: 2\n", [{"a": 1}, {"b": 2}], id="documents that are empty do not count"
        ),
        pytest.param("a: 2024-01-01", [{"a": "2024-01-01"}], id="a date is text"),
        pytest.param("a: yes\nb: 'yes'", [{"a": True, "b": "yes"}], id="yes is true, as for kubectl"),
        pytest.param("8080: x\ntrue: y", [{"8080": "x", "true": "y"}], id="keys are text"),
        pytest.param(
            "base: &b {x: 1, y: 2}\nc: {<<: *b, y: 3}", [{"base": {"x": 1, "y": 2}, "c": {"x": 1, "y": 3}}], id="merge"
        ),
        pytest.param('{"kind": "Pod", "n": [1, 2.5, null]}', [{"kind": "Pod", "n": [1, 2.5, None]}], id="JSON is YAML"),
        pytest.param(
            "kind: List\nitems: [{kind: Pod}, {kind: Job}]",
            [{"kind": "Pod"}, {"kind": "Job"}],
            id="a List is its items",
        ),
        pytest.param("﻿a: 1", [{"a": 1}], id="a byte order mark"),
    ],
)
def test_values(text: str, values: list[object]) -> None:
    assert [document.value for document in parse(text.encode(), "f.yaml")] == values


@pytest.mark.parametrize(
    ("text", "told"),
    [
        pytest.param(b"a: 1\nb: [\n", "f.yaml:3:1: not valid YAML", id="open bracket"),
        pytest.param(
            b"ok: 1\n---\nx: 1\n  y: 2\n", "f.yaml:4:4: not valid YAML", id="indentation in the second document"
        ),
        pytest.param(b"a:\n\tb: 1", "indent with spaces, not tabs", id="tab"),
        pytest.param(
            b"a: 1\nb: 2\na: 3",
            "f.yaml:3:1: not valid YAML: the key 'a' stands here twice (first in line 1)",
            id="twice",
        ),
        pytest.param(b"a: &x [*x]", "an alias that contains itself", id="cycle"),
        pytest.param(b"a: .nan", "'.nan' is no JSON value; put it in quotes", id="not a number"),
        pytest.param(b"? [1, 2]\n: x", "a key must be a plain word", id="a list as key"),
        pytest.param(b"a: !!python/object/apply:os.system [x]", "f.yaml:1:4", id="a tag that would run code"),
        pytest.param(b"\xff\xfe", "f.yaml:1: not UTF-8 text; save it as UTF-8", id="another encoding"),
        pytest.param(b"# nothing\n", "f.yaml: no objects in it", id="empty"),
        pytest.param(b"a: \x00", "f.yaml: not valid YAML", id="a control character"),
    ],
)
def test_refused(text: bytes, told: str) -> None:
    with pytest.raises(Unreadable) as refused:
        parse(text, "f.yaml")
    assert told in str(refused.value)
    assert "\n" not in str(refused.value)


def test_lines_are_known_also_of_fields_that_are_missing() -> None:
    (document,) = parse(b"kind: A\nspec:\n  list:\n  - name: x\n  - name: y\n", "f.yaml")
    assert document.line_of("spec.list[1].name") == 5
    assert document.line_of("spec.list[1].image") == 5
    assert document.line_of("spec.other.deep") == 2
    assert document.line_of("nowhere") == 1


def test_a_directory_is_its_yaml_and_json_files_by_name(tmp_path: Path) -> None:
    (tmp_path / "b.yml").write_text("n: 2")
    (tmp_path / "a.yaml").write_text("n: 1")
    (tmp_path / "c.json").write_text('{"n": 3}')
    (tmp_path / "README.md").write_text("no: yaml: at all")
    documents, problems = read_all([str(tmp_path)])
    assert [document.value["n"] for document in documents] == [1, 2, 3]
    assert problems == []


def test_every_file_that_cannot_be_read_is_named_once(tmp_path: Path) -> None:
    (tmp_path / "bad.yaml").write_text("a: [")
    (tmp_path / "empty").mkdir()
    _, problems = read_all([str(tmp_path / "none.yaml"), str(tmp_path / "bad.yaml"), str(tmp_path / "empty")])
    assert len(problems) == 3
    assert all(str(tmp_path) in problem for problem in problems)
