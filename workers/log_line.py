"""Log messages as one line of key=value, so that people and tools read the same."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[^\s\"=]+")


def line(event: str, **facts: object) -> str:
    """``line("died", worker="w-1", pid=7)`` is ``event=died worker=w-1 pid=7``; other text is quoted."""
    return " ".join([f"event={_word(event)}", *(f"{name}={_word(value)}" for name, value in facts.items())])


def _word(value: object) -> str:
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    flat = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{flat}"'
