"""The instructions of a Dockerfile, as far as this project's uses them."""

from __future__ import annotations

import json
import re
import shlex
from dataclasses import dataclass, field
from pathlib import Path


@dataclass
class Stage:
    """One FROM and what follows it."""

    name: str
    runs: list[str] = field(default_factory=list)
    copies: list[tuple[str, ...]] = field(default_factory=list)
    environment: dict[str, str] = field(default_factory=dict)
    user: str = ""
    entrypoint: list[str] = field(default_factory=list)
    command: list[str] = field(default_factory=list)
    workdir: str = "/"


def stages(path: Path) -> list[Stage]:
    """All of them in order. Raises ValueError for an instruction that is not known here."""
    text = re.sub(r"^\s*#.*\n", "", path.read_text(), flags=re.MULTILINE)
    found: list[Stage] = []
    for line in re.sub(r"\\\n", " ", text).splitlines():
        word, _, rest = line.strip().partition(" ")
        stage = found[-1] if found else None
        match word, stage:
            case "" | "ARG" | "LABEL" | "STOPSIGNAL", _:
                pass
            case "FROM", _:
                found.append(Stage(rest.rpartition(" AS ")[2] if " AS " in rest else ""))
            case "RUN", Stage():
                stage.runs.append(rest)
            case "COPY", Stage():
                stage.copies.append(tuple(rest.split()))
            case "ENV", Stage():
                stage.environment |= dict(pair.split("=", 1) for pair in shlex.split(rest))
            case "USER", Stage():
                stage.user = rest
            case "WORKDIR", Stage():
                stage.workdir = rest
            case "ENTRYPOINT", Stage():
                stage.entrypoint = json.loads(rest)
            case "CMD", Stage():
                stage.command = json.loads(rest)
            case _:
                raise ValueError(f"{path.name}: {word} is not known to this test")
    return found
