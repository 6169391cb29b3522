"""A cluster whose API server keeps an audit log of everything, with a fleet or without."""

from __future__ import annotations

from collections.abc import Iterator
from functools import partial
from pathlib import Path

import pytest

from oarlock.sandbox.apiserver import server
from oarlock.testing import Cluster
from tests.cli.plan.rig import Rig


@pytest.fixture(scope="module", params=[pytest.param("*", id="fleet")])
def rig(request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory) -> Iterator[Rig]:
    """``params``: which controllers run; "" for none."""
    log = tmp_path_factory.mktemp("audit") / "audit.log"
    audited = partial(server.Settings, audit_log=log, audit_full_for_all=True, audit_reads=True)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(server, "Settings", audited)
        with Cluster(nodes=4, controllers=request.param) as cluster:
            yield Rig(cluster, log)


@pytest.fixture(autouse=True)
def fresh(request: pytest.FixtureRequest, tmp_path: Path) -> Iterator[None]:
    """A namespace a test."""
    if "rig" not in request.fixturenames:
        yield
        return
    rig: Rig = request.getfixturevalue("rig")
    with rig.everywhere.fresh(request.node.name[:30]) as cluster:
        rig.cluster, rig.directory = cluster, tmp_path
        yield
