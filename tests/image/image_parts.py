"""Where the image's parts lie."""

from __future__ import annotations

from dataclasses import dataclass
from pathlib import Path

from tests.image.dockerfile import Stage

PREFIX = "/opt/oarlock"


@dataclass(frozen=True)
class Image:
    """``prefix``: the folder that is /opt/oarlock in a container."""

    prefix: Path
    final: Stage

    @property
    def mounts(self) -> list[str]:
        return [f"{self.prefix}:{PREFIX}:ro"]
