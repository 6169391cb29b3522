"""As the program of `--mix points`, with workers that announce nothing: the judge has to find them out."""

from __future__ import annotations

import os
import runpy
import sys
from pathlib import Path
from typing import Any

from oarlock.broker.redis_broker import RedisBroker
from oarlock.chaos.faults.traps import FOLDER, Traps
from oarlock.chaos.rig.trapped_program import lay


def announce_nothing(self: RedisBroker, *args: Any, **options: Any) -> list[Any]:
    return []


if __name__ == "__main__":
    RedisBroker.announce = announce_nothing  # type: ignore[method-assign]
    lay(Traps(Path(os.environ[FOLDER])))
    module, *words = sys.argv[1:]
    sys.argv[:] = [module, *words]
    runpy.run_module(module, run_name="__main__", alter_sys=False)
