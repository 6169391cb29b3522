"""`oarlock dev`: a website appears, the file is edited, the change is seen; a broken file keeps the old one running."""

from __future__ import annotations

import re
import signal
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.e2e.e2e_helpers import until
from tests.e2e.e2e_operators import DEPLOYMENTS, SITES, Objects, Running, site, website_file

MANIFEST = """\
apiVersion: example.com/v1
kind: Website
metadata: {name: shop}
spec: {image: "nginx:1", replicas: 2}
"""


@pytest.fixture
def file(tmp_path: Path) -> Path:
    return website_file(tmp_path)


@pytest.fixture
def running(tmp_path: Path, file: Path) -> Iterator[Running]:
    manifest = tmp_path / "shop.yaml"
    manifest.write_text(MANIFEST)
    dev = Running(tmp_path / "dev.log", "dev", str(file), "-f", str(manifest))
    yield dev
    dev.stop(signal.SIGINT)
    print(dev.said)


def test_edit_and_see(running: Running, file: Path) -> None:
    until(lambda: "KUBECONFIG=" in running.said, 60, "the cluster is up")
    kubeconfig = Path(re.findall(r"KUBECONFIG=(\S+)", running.said)[0])
    objects = Objects(kubeconfig)
    until(lambda: objects.all(SITES)["shop"].get("status", {}).get("ready") == 2, 60, "the site is ready", pause_s=0.2)
    for said in ("+ Website default/shop", "+ Deployment default/shop", "of Website shop", "status.ready=2"):
        until(lambda said=said: said in running.said, 10, said)
    until(lambda: re.search(r"^website +1 +\d+ +0 ", running.said, re.MULTILINE), 10, "a row for the controller")

    good = file.read_text()
    file.write_text(good + "\ndef broken(:\n")
    line = len(good.splitlines()) + 2
    until(lambda: f"! {file}:{line}: SyntaxError" in running.said, 30, "what is wrong with the file")
    objects.create(SITES, site("made-meanwhile"))
    until(lambda: "made-meanwhile" in objects.all(DEPLOYMENTS), 20, "what ran before runs on", pause_s=0.2)

    file.write_text(good.replace("@oarlock.resource(", "@oarlock.resource(namespaced=False, api_version="))
    until(lambda: "! the API server refused CustomResourceDefinition" in running.said, 30, "a scope cannot change")
    objects.create(SITES, site("made-later"))
    until(lambda: "made-later" in objects.all(DEPLOYMENTS), 20, "what ran before runs on", pause_s=0.2)

    file.write_text(good.replace('"containerPort": 80', '"containerPort": 8080'))

    def changed() -> bool:
        found = objects.all(DEPLOYMENTS)["shop"]["spec"]["template"]["spec"]["containers"][0]
        return bool(found["ports"][0]["containerPort"] == 8080)

    until(changed, 60, "the Deployment is as the new file wants it", pause_s=0.2)
    assert "has changed: loaded anew" in running.said

    assert running.stop(signal.SIGINT) == 0
    assert "stopping ..." in running.said
    assert "Traceback" not in running.said
    assert not kubeconfig.exists()
