"""A fleet whose RQ keeps its keys on a Redis of their own, as beside a Redis Cluster."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from oarlock.chaos.rig.redis_pair import Server
from oarlock.chaos.rig.rig import Rig


class RqApart(Rig):
    """As ``Rig``. ``rq``: RQ's server."""

    def __init__(self, root: Path, *, settings: Mapping[str, str], **options: Any) -> None:
        self.rq = Server(root.absolute() / "rq", ['save ""'])
        url = f"redis://127.0.0.1:{self.rq.port}/0"
        super().__init__(root, settings={**settings, "OARLOCK_RQ_REDIS_URL": url}, **options)

    async def start(self) -> None:
        self.rq.start()
        await super().start()

    async def stop(self) -> None:
        await super().stop()
        self.rq.kill()
