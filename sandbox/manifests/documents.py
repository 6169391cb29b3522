"""YAML and JSON files as Kubernetes objects that still know where they stood.

The YAML rules are those of kubectl (YAML 1.1 as sigs.k8s.io/yaml reads it): keys are strings, dates stay text, a key
may stand only once in a mapping. What cannot be JSON is refused.
"""

from __future__ import annotations

import math
import os
import sys
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from typing import IO, Any

import yaml

Obj = dict[str, Any]
SUFFIXES = (".yaml", ".yml", ".json")
_TIMESTAMP = "tag:yaml.org,2002:timestamp"


@dataclass(frozen=True, slots=True)
class Document:
    """``source``: the file, or "stdin"; ``number``: from 1; ``lines``: field path ("spec.replicas") -> line."""

    source: str
    number: int
    value: Any
    lines: dict[str, int] = field(default_factory=dict, repr=False)
    item: int = 0
    """Position in a List, from 1; 0: not in one."""

    @property
    def name(self) -> str:
        """The document as messages name it: "document 2" or "document 2, item 3"."""
        return f"document {self.number}" + (f", item {self.item}" if self.item else "")

    def line_of(self, path: str) -> int:
        """Line of a field, or of the nearest one around it that was given."""
        while path and path not in self.lines:
            path = path[: max(path.rfind("."), path.rfind("["), 0)]
        return self.lines.get(path, self.lines.get("", 1))


class Unreadable(Exception):
    """A file cannot be read as documents; one line with the mend."""


def read_all(arguments: Sequence[str], stdin: IO[bytes] | None = None) -> tuple[list[Document], list[str]]:
    """The documents of each FILE, of all YAML and JSON files in each DIR (by name), and of "-"; and the problems."""
    documents: list[Document] = []
    problems: list[str] = []
    for argument in arguments:
        try:
            sources = list(_sources(argument))
        except Unreadable as error:
            problems.append(str(error))
            continue
        for source in sources:
            try:
                raw = (stdin or sys.stdin.buffer).read() if source is None else _bytes(source)
                documents += parse(raw, "stdin" if source is None else str(source))
            except Unreadable as error:
                problems.append(str(error))
    return documents, problems


def _sources(argument: str) -> Iterator[Path | None]:
    """The files an -f means; None is stdin. Raises Unreadable."""
    path = Path(argument)
    if argument == "-":
        yield None
    elif os.path.isdir(path):  # no, where it may not be looked at: whoever reads it then says why
        try:
            files = sorted(each for each in path.iterdir() if each.suffix in SUFFIXES and each.is_file())
        except OSError as error:
            raise Unreadable(f"-f {argument}: {error.strerror}; give a directory that can be read") from None
        if not files:
            raise Unreadable(f"-f {argument}: this directory has no file that ends in {', '.join(SUFFIXES)}")
        yield from files
    else:
        yield path


def _bytes(path: Path) -> bytes:
    try:
        return path.read_bytes()
    except OSError as error:
        raise Unreadable(f"-f {path}: {error.strerror}; give a file that can be read, a directory, or -") from None


def parse(raw: bytes, source: str) -> list[Document]:
    """All documents of one text; empty ones are left out, the items of Lists taken apart. Raises Unreadable."""
    try:
        text = raw.decode("utf-8-sig")
    except UnicodeDecodeError as error:
        line = raw.count(b"\n", 0, error.start) + 1
        raise Unreadable(f"{source}:{line}: not UTF-8 text; save it as UTF-8") from None
    documents: list[Document] = []
    try:
        for number, node in enumerate(yaml.compose_all(text, Loader=_LOADER), start=1):
            lines: dict[str, int] = {}
            value = _Plain(source, lines).value(node, "")
            if value is not None:
                documents += _items(Document(source, number, value, lines))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        where = f"{source}:{mark.line + 1}:{mark.column + 1}" if mark is not None else source
        raise Unreadable(f"{where}: not valid YAML: {_told(error)}") from None
    except yaml.YAMLError as error:
        raise Unreadable(f"{source}: not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise Unreadable(f"{source}: nested too deeply") from None
    if not documents:
        raise Unreadable(f"{source}: no objects in it; give at least one document with apiVersion, kind and metadata")
    return documents


def _told(error: yaml.MarkedYAMLError) -> str:
    parts = [error.context or "", error.problem or "it cannot be parsed"]
    told = ", ".join(part for part in parts if part)
    if "cannot start any token" in told:
        told += "; indent with spaces, not tabs, and quote text that begins with @, ` or %"
    return told


def _items(document: Document) -> Iterator[Document]:
    """A List is its items (upstream: cli-runtime's builder flattens them too)."""
    value = document.value
    if not (isinstance(value, dict) and value.get("kind") == "List" and isinstance(value.get("items"), list)):
        yield document
        return
    for position, item in enumerate(value["items"]):
        here = f"items[{position}]"
        lines = {
            path.removeprefix(here).lstrip("."): line for path, line in document.lines.items() if path.startswith(here)
        }
        yield Document(document.source, document.number, item, lines, position + 1)


class _Loader(getattr(yaml, "CSafeLoader", yaml.SafeLoader)):  # type: ignore[misc]
    """YAML 1.1 without dates: Kubernetes knows only JSON's types."""


_Loader.yaml_implicit_resolvers = {
    first: [(tag, pattern) for tag, pattern in entries if tag != _TIMESTAMP]
    for first, entries in yaml.SafeLoader.yaml_implicit_resolvers.items()
}
_LOADER: Any = _Loader
_COLLECTIONS = ("tag:yaml.org,2002:map", "tag:yaml.org,2002:seq")
_SCALARS = yaml.constructor.SafeConstructor


class _Plain:
    """Nodes to JSON values; notes the line of each field on the way."""

    def __init__(self, source: str, lines: dict[str, int]) -> None:
        self._source, self._lines = source, lines
        self._open: set[int] = set()
        self._scalars = _SCALARS()

    def value(self, node: yaml.Node, path: str) -> Any:
        self._lines[path] = node.start_mark.line + 1
        if isinstance(node, yaml.ScalarNode):
            return self._scalar(node)
        if id(node) in self._open:
            raise self._refused(node, "an alias that contains itself")
        self._open.add(id(node))
        try:
            if node.tag not in _COLLECTIONS:
                raise self._refused(
                    node, f"{node.tag.replace('tag:yaml.org,2002:', '!!')} is no JSON value; leave it out"
                )
            if isinstance(node, yaml.SequenceNode):
                return [self.value(each, f"{path}[{at}]") for at, each in enumerate(node.value)]
            return self._mapping(node, path)
        finally:
            self._open.discard(id(node))

    def _mapping(self, node: yaml.Node, path: str) -> Obj:
        assert isinstance(node, yaml.MappingNode)
        result: Obj = {}
        own = {key.value for key, _ in node.value if isinstance(key, yaml.ScalarNode)}
        if len(own) < len(node.value):
            self._complain_of_keys(node)
        self._scalars.flatten_mapping(node)  # "<<: *base" goes first, so what stands here itself wins
        for key, each in node.value:
            name = _key(self._scalar(key))
            result[name] = self.value(each, f"{path}.{name}" if path else name)
            self._lines[f"{path}.{name}" if path else name] = key.start_mark.line + 1
        return result

    def _complain_of_keys(self, node: yaml.MappingNode) -> None:
        seen: dict[str, int] = {}
        for key, _ in node.value:
            if not isinstance(key, yaml.ScalarNode):
                raise self._refused(key, "a key must be a plain word")
            if key.value in seen:
                raise self._refused(key, f"the key {key.value!r} stands here twice (first in line {seen[key.value]})")
            seen[key.value] = key.start_mark.line + 1

    def _scalar(self, node: yaml.ScalarNode) -> Any:
        try:
            value = self._scalars.construct_object(node)
        except ValueError as error:
            raise self._refused(node, f"{node.value!r}: {error}") from None
        if value is None or isinstance(value, str | bool | int):
            return value
        if isinstance(value, float) and math.isfinite(value):
            return value
        raise self._refused(node, f"{node.value!r} is no JSON value; put it in quotes")

    def _refused(self, node: yaml.Node, why: str) -> yaml.MarkedYAMLError:
        return yaml.MarkedYAMLError(problem=why, problem_mark=node.start_mark)


def _key(value: Any) -> str:
    """A key as kubectl spells it: `true:` and `8080:` are strings."""
    if isinstance(value, bool):
        return "true" if value else "false"
    return "null" if value is None else str(value)
