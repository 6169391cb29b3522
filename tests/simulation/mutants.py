"""A mechanism of the protocol, taken out."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

import pytest

from broker import script_texts
from tests.simulation.simulation import Weights


@dataclass(frozen=True)
class Mutant:
    """``script``: texts to replace in the Lua files, for a real Redis. ``patch``: changes Python, for the twin."""

    script: tuple[tuple[str, str, str], ...] = ()
    patch: Callable[[pytest.MonkeyPatch], None] | None = None
    weights: Weights | None = None
    options: dict[str, Any] = field(default_factory=dict)


def change_scripts(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the scripts say what the mutant wants. Fails where the text it replaces is not there any more."""
    real = script_texts.source

    def source(script: str) -> str:
        text = real(script)
        for file, old, new in mutant.script:
            if file == script:
                assert old in text, f"{file}.lua no longer says {old!r}"
                text = text.replace(old, new)
        return text

    monkeypatch.setattr(script_texts, "source", source)
