"""Log messages as one line of key=value, so that people and tools read the same."""

from __future__ import annotations

import re

_PLAIN = re.compile(r"[^\s\"=\x00-\x1f\x7f-\x9f]+")
_CONTROL = re.compile(r"[\x00-\x1f\x7f-\x9f\u2028\u2029]")
"""Characters that end a line or control a terminal. Logged text may come from anybody."""


_everywhere: dict[str, object] = {}


def in_every_line(**facts: object) -> None:
    """Facts that this process adds to all of its lines from now on, such as the shard it serves."""
    _everywhere.update(facts)


_VALUES = re.compile(r'((?:Invalid|Unsupported|Duplicate) value: )(?:"(?:[^"\\]|\\.)*"|.*?(?=: |$))', re.DOTALL)
SAID_MAX = 500


def discreet(said: object, most: int = SAID_MAX) -> str:
    """A server's message for logs and registries: without the values of invalid fields, which servers repeat, and cut
    to ``most`` characters. Upstream: staging/src/k8s.io/apimachinery/pkg/util/validation/field.

    What has no UTF-8, as a file name in an exception may have none, is spelled out: Redis would not take it.
    """
    text = _VALUES.sub(r"\1...", str(said)).encode(errors="backslashreplace").decode()
    return text if len(text) <= most else text[: most - 4] + " ..."


def line(event: str, **facts: object) -> str:
    """``line("died", worker="w-1", pid=7)`` is ``event=died worker=w-1 pid=7``; other text is quoted."""
    if _everywhere:
        facts |= _everywhere
    return " ".join([f"event={_word(event)}", *(f"{name}={_word(value)}" for name, value in facts.items())])


def _word(value: object) -> str:
    text = str(value)
    if _PLAIN.fullmatch(text):
        return text
    flat = text.replace("\\", "\\\\").replace('"', '\\"').replace("\n", "\\n")
    return f'"{printable(flat)}"'


def printable(text: str) -> str:
    """Text that may come from anybody, made safe for a terminal: control characters are spelled out."""
    return text if text.isprintable() else _CONTROL.sub(_spelled, text)


def _spelled(found: re.Match[str]) -> str:
    return f"\\u{ord(found[0]):04x}"
