"""A fleet with exactly the rendered permissions and the rendered environment does all that its kinds ask.

The story is that of tests/realserver/test_fleet_with_roles.py; here Helm's output stands in for the files of rbac/.
"""

from __future__ import annotations

import base64
import os
from collections.abc import Iterator
from pathlib import Path

import pytest

from oarlock.controllers.registry import CONTROLLERS
from tests.chart.engine import NEEDED, merged, render
from tests.realserver import test_fleet_with_roles as story
from tests.realserver.accounts import NAMESPACE, apply, kubectl
from tests.realserver.processes import Running
from tests.realserver.server import RealServer
from tests.realserver.test_fleet_with_roles import (  # noqa: F401  # collected here too, with what `rendered` puts in place
    fleet,
    test_create_scale_release_adopt,
    test_roll_back_and_prune,
)

pytestmark = [
    pytest.mark.kubectl,
    pytest.mark.timeout(180),
    pytest.mark.skipif(os.environ.get("OARLOCK_TEST_SERVER") != "real", reason="make test-cluster has a real server"),
    pytest.mark.usefixtures("rendered"),
]
RBAC = ("ClusterRole", "ClusterRoleBinding", "Role", "RoleBinding", "ServiceAccount")
OTHER_PLACES = ("OARLOCK_REDIS_URL", "OARLOCK_METRICS_BIND_ADDRESS", "OARLOCK_SIGNING_KEY_FILE")
"""On this machine they lead elsewhere than in a pod."""
ROLES = {"fleet-ingestor": "ingestor", "fleet-worker": "worker"}


def install(server: RealServer) -> None:
    kubectl(server, "create", "namespace", NAMESPACE)
    apply(server, *[each for each in render(kube_version="v1.20.2").objects if each["kind"] in RBAC])


def start(folder: Path, name: str, arguments: list[str]) -> Running:
    """As the story's own, with the environment of the rendered pod."""
    if name not in ROLES:
        return original_start(folder, name, arguments)
    key = folder / "signing.key"
    if not key.exists():
        key.write_bytes(base64.b64encode(os.urandom(32)))
        key.chmod(0o400)
    values = merged(NEEDED, {"settings": {"KUBE_API_QPS": 0, "LEASE_MS": 1500, "RENEW_EVERY_MS": 400}})
    rendered = render(values, kube_version="v1.20.2").env(ROLES[name])
    given = {key: value for key, value in rendered.items() if key.startswith("OARLOCK_") and key not in OTHER_PLACES}
    environment = {key: value for key, value in os.environ.items() if not key.startswith("OARLOCK_")}
    given |= {"OARLOCK_SIGNING_KEY_FILE": str(key), "OARLOCK_METRICS_BIND_ADDRESS": "127.0.0.1:0"}
    command = [story.sys.executable, "-m", "oarlock.cli", *arguments]
    return Running(command, folder / f"{name}.log", cwd=story.ROOT, env={**environment, **given})


original_start = story.start


@pytest.fixture(scope="module")
def rendered() -> Iterator[None]:
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(story, "install", install)
        patch.setattr(story, "start", start)
        yield


@pytest.fixture(scope="module", autouse=True)
def _before_the_fleet(rendered: None) -> None:
    """Module fixtures that are used by all come first, so the fleet starts with what is in place by then."""


def test_it_was_what_helm_renders(fleet: story.Fleet) -> None:  # noqa: F811  # the fixture of the story
    """The roles bear the chart's labels, and the processes have its environment: they log JSON."""
    roles = fleet.get("clusterrole", "-l", "app.kubernetes.io/managed-by=Helm")["items"]
    assert len(roles) == len(CONTROLLERS) + 1, "one a controller, and the ingestors'"
    for name in ROLES:
        log = (fleet.folder / f"{name}.log").read_text()
        assert all(line.startswith("{") for line in log.splitlines() if "oarlock" in line), log  # OARLOCK_LOG_FORMAT
