"""docs/troubleshoot.md as the script reads it: what is to be set first, and the commands of each section."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests import ROOT

PAGE = ROOT / "docs" / "troubleshoot.md"
FOLDER = "DIR"
"""Stands on the page for the folder of --state-dir."""
PRELUDE = "Before you begin"


@dataclass(frozen=True, slots=True)
class Section:
    """Its commands, as shell lines, by the tool that a person has at hand: ``cli`` (oarlock) and ``redis`` (r)."""

    cli: tuple[str, ...]
    redis: tuple[str, ...]


def prelude(text: str, folder: str) -> str:
    """What is set once in a shell, for this folder."""
    return re.sub(rf"\b{FOLDER}\b", folder, "\n".join(_code(_parts(text)[PRELUDE])))


def sections(text: str) -> Mapping[str, Section]:
    """Heading -> its commands. A command that changes something is no look: it stands behind "Mend"."""
    found = {}
    for heading, body in _parts(text).items():
        lines = _code(body.partition("**Mend:**")[0])
        cli = tuple(line for line in lines if line.startswith("oarlock "))
        found[heading] = Section(cli, tuple(line for line in lines if re.search(r"(?:^|\$\()r ", line)))
    return found


def _parts(text: str) -> dict[str, str]:
    heading, *rest = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:] or [""]
    parts = [heading, *rest]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _code(body: str) -> list[str]:
    """The indented lines, without what stands there as an answer (it begins with a blank or with >)."""
    return [line[4:] for line in body.splitlines() if re.match(r" {4}[^\s>]", line)]
