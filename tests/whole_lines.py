"""Logs that another process is writing."""

from __future__ import annotations

from pathlib import Path


def whole_lines(path: Path) -> list[str]:
    """Those that are written to their ends: of a large write a reader may see the first part."""
    text = path.read_bytes()
    return text[: text.rfind(b"\n") + 1].decode().splitlines()
