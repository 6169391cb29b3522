"""A mechanism of the protocol, taken out."""

from __future__ import annotations
import __future__

import inspect
import textwrap
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from types import FunctionType
from typing import Any

import pytest

from oarlock.broker.steps import script_texts
from tests.simulation.simulation import Weights


@dataclass(frozen=True)
class Mutant:
    """``script``: texts to replace in the Lua files, for a real Redis. ``code``: texts to replace in functions, and
    ``patch``: other changes of Python, for the twin. ``first``: the seed that the search begins with; the next ones
    follow, should that one show the mutant no more.
    """

    script: tuple[tuple[str, str, str], ...] = ()
    code: tuple[tuple[Any, str, str], ...] = ()
    patch: Callable[[pytest.MonkeyPatch], None] | None = None
    weights: Weights | None = None
    options: dict[str, Any] = field(default_factory=dict)
    first: int = 0


def distinct(mutants: Mapping[str, Mutant]) -> list[str]:
    """The first of those that run under the same conditions. What does not name any is run by the campaigns."""
    found: dict[str, str] = {}
    for name, mutant in mutants.items():
        if mutant.weights is not None:
            found.setdefault(repr((mutant.weights, mutant.options)), name)
    return list(found.values())


def take_out(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    """Let the product be what the mutant wants. Fails where a text that it replaces is not there any more."""
    _change_scripts(mutant, monkeypatch)
    for function, old, new in mutant.code:
        change_code(function, old, new, monkeypatch)
    if mutant.patch is not None:
        mutant.patch(monkeypatch)


def _change_scripts(mutant: Mutant, monkeypatch: pytest.MonkeyPatch) -> None:
    real = script_texts.source

    def source(script: str) -> str:
        text = real(script)
        for file, old, new in mutant.script:
            if file == script:
                assert old in text, f"{file}.lua no longer says {old!r}"
                text = text.replace(old, new)
        return text

    monkeypatch.setattr(script_texts.FOLDER, "source", source)


def change_code(function: FunctionType, old: str, new: str, monkeypatch: pytest.MonkeyPatch) -> None:
    """Whoever calls the function, by whatever name, runs the changed text."""
    text = textwrap.dedent(inspect.getsource(function))
    assert old in text, f"{function.__qualname__} no longer says {old!r}"
    made: dict[str, Any] = dict(function.__globals__)
    flags = __future__.annotations.compiler_flag
    exec(compile(text.replace(old, new), function.__code__.co_filename, "exec", flags, dont_inherit=True), made)
    monkeypatch.setattr(function, "__code__", made[function.__name__].__code__)
