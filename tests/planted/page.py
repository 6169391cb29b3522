"""docs/troubleshoot.md as the script reads it: what is to be set first; of each section its commands, and where on the
board to look.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass

from tests import ROOT

PAGE = ROOT / "docs" / "troubleshoot.md"
FOLDER = "DIR"
"""Stands on the page for the folder of --state-dir."""
PRELUDE = "Before you begin"
BOARD = "oarlock board"


@dataclass(frozen=True, slots=True)
class OnBoard:
    """``command``: starts the board. ``tabs``: the titles of those to look at, after the start page; then the page of
    ``key``, where one is named.
    """

    command: str
    tabs: tuple[str, ...]
    key: str


@dataclass(frozen=True, slots=True)
class Section:
    """Its commands, as shell lines, by the tool that a person has at hand: ``cli`` (oarlock) and ``redis`` (r). And
    what to look at on the board.
    """

    cli: tuple[str, ...]
    redis: tuple[str, ...]
    board: OnBoard


def prelude(text: str, folder: str) -> str:
    """What is set once in a shell, for this folder."""
    return re.sub(rf"\b{FOLDER}\b", folder, "\n".join(_code(_parts(text)[PRELUDE])))


def sections(text: str) -> Mapping[str, Section]:
    """Heading -> its commands, and its line about the board. A command that changes something is no look: it stands
    behind "Mend". Raises ValueError where the line about the board is missing.
    """
    found = {}
    for heading, body in _parts(text).items():
        if heading == PRELUDE:
            continue
        lines = _code(body.partition("**Mend:**")[0])
        cli = tuple(line for line in lines if line.startswith("oarlock "))
        redis = tuple(line for line in lines if re.search(r"(?:^|\$\()r ", line))
        found[heading] = Section(cli, redis, _on_board(heading, body))
    return found


def _on_board(heading: str, body: str) -> OnBoard:
    """From the paragraph that begins so: tabs stand in quotation marks, a key and a command of its own in backticks."""
    told = re.search(r"^On the board\b(?:.+\n)+", body, re.MULTILINE)
    if told is None:
        raise ValueError(f"{PAGE}: {heading}: no paragraph begins with: On the board")
    line = told[0].replace("\n", " ")
    command, key = re.search(r"`(oarlock board [^`]+)`", line), re.search(r"`([^`\s]+/[^`\s]+)`", line)
    return OnBoard(command[1] if command else BOARD, tuple(re.findall(r'"([^"]+)"', line)), key[1] if key else "")


def _parts(text: str) -> dict[str, str]:
    heading, *rest = re.split(r"^## (.+)\n", text, flags=re.MULTILINE)[1:] or [""]
    parts = [heading, *rest]
    return dict(zip(parts[::2], parts[1::2], strict=True))


def _code(body: str) -> list[str]:
    """The indented lines, without what stands there as an answer (it begins with a blank or with >)."""
    return [line[4:] for line in body.splitlines() if re.match(r" {4}[^\s>]", line)]
