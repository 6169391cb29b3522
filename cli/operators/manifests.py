"""Objects for kubectl, as YAML or JSON."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any

import click
import yaml

_FLAT = 80


class _Dumper(yaml.SafeDumper):
    """Without anchors, and with lists further to the right than what they belong to."""

    def ignore_aliases(self, data: Any) -> bool:
        return True

    def increase_indent(self, flow: bool = False, indentless: bool = False) -> None:
        super().increase_indent(flow, False)

    def represent_sequence(self, tag: str, sequence: Any, flow_style: bool | None = None) -> yaml.SequenceNode:
        """Short words on one line, as people write them: `verbs: [get, list]`."""
        flat = (
            all(isinstance(each, str | int) for each in sequence) and sum(len(str(each)) for each in sequence) < _FLAT
        )
        return super().represent_sequence(tag, sequence, flow_style=flat)


manifest_option = click.option(
    "-o", "--output", type=click.Choice(["yaml", "json"]), default="yaml", show_default=True, help="For kubectl, both."
)


def write(objects: Sequence[dict[str, Any]], output: str) -> None:
    """Print them: YAML documents, or one JSON object (a List, if there are several)."""
    if output == "yaml":
        options: dict[str, Any] = {"sort_keys": False, "explicit_start": True, "width": 120, "allow_unicode": True}
        click.echo(yaml.dump_all(objects, Dumper=_Dumper, **options), nl=False)
        return
    found = objects[0] if len(objects) == 1 else {"apiVersion": "v1", "kind": "List", "items": objects}
    click.echo(json.dumps(found, indent=2, ensure_ascii=False))
