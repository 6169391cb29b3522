"""What an attacker would name as a callback: running it makes a file."""

from __future__ import annotations

import os
from pathlib import Path
from typing import Any


def mark(*arguments: Any) -> None:
    Path(os.environ["FLEET_ATTACK_MARKER"]).touch()
