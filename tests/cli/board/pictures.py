"""The pictures of docs/board.md, of a real fleet at work: ``python -m tests.cli.board.pictures``. It takes two minutes.

An `oarlock up` with the examples and some hundred small ReplicaSets; a rollout that waits for an image that cannot be
pulled; a namespace whose quota is used up; a pause; a worker that is killed.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import tempfile
import time
from pathlib import Path
from typing import Any

from selenium.webdriver import Chrome

from tests import ROOT
from tests.cli.board.browser import await_that, chromium, prefer, resize, shown
from tests.cli.board.running import running_board
from tests.e2e.e2e_helpers import RunningUp, oarlock

TEAMS, SETS = ("billing", "mail", "media", "search"), 60
BUSY_S = 60
WIDTH = 1240
BYTES_MAX = 150_000
KEY = "#/key/0/deployment/shop%2Fsearch"


def namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}


def replicaset(team: str, number: int) -> dict[str, Any]:
    labels = {"app": f"job-{number}"}
    return {
        "apiVersion": "apps/v1",
        "kind": "ReplicaSet",
        "metadata": {"name": f"job-{number}", "namespace": team},
        "spec": {
            "replicas": 2 if number == 7 else 1,
            "selector": {"matchLabels": labels},
            "template": {
                "metadata": {"labels": labels},
                "spec": {"containers": [{"name": "c", "image": "registry.example/job:1"}]},
            },
        },
    }


def objects() -> list[dict[str, Any]]:
    """The last team's quota is used up by its last ReplicaSets."""
    sets = [replicaset(team, number) for team in TEAMS for number in range(SETS)]
    greedy = replicaset(TEAMS[-1], SETS)
    greedy["metadata"]["name"], greedy["spec"]["replicas"] = "greedy", 9
    quota = {
        "apiVersion": "v1",
        "kind": "ResourceQuota",
        "metadata": {"name": "pods", "namespace": TEAMS[-1]},
        "spec": {"hard": {"pods": str(SETS + 2)}},
    }
    return [*map(namespace, TEAMS), quota, *sets, greedy]


def kubectl(up: RunningUp, *arguments: str) -> None:
    command = ["kubectl", "--kubeconfig", str(up.state.kubeconfig), *arguments]
    subprocess.run(command, check=True, stdout=subprocess.DEVNULL)


def work(up: RunningUp) -> None:
    """Events in bursts, and the death of a worker on the way."""
    begun_s, killed, many = time.monotonic(), False, 10
    while (past_s := time.monotonic() - begun_s) < BUSY_S:
        oarlock("requeue", "--all", "--yes", "--state-dir", str(up.state.root))
        many = 22 - many
        kubectl(up, "-n", "shop", "scale", "rs/cart", f"--replicas={many}")
        if past_s > BUSY_S / 2 and not killed:
            os.kill(up.processes("worker")[1].pid, signal.SIGKILL)
            killed = True
        time.sleep(3 if past_s % 30 < 18 else 6)


def take(browser: Chrome, address: str, route: str, height: int, scheme: str, file: Path) -> None:
    prefer(browser, scheme)
    resize(browser, WIDTH, height)
    browser.get("about:blank")
    browser.get(address + route)
    await_that(browser, "it is drawn", lambda: "OPEN" in shown(browser, "#fleet-figures") and shown(browser, "main"))
    time.sleep(4)  # two looks more: rates are known from the second on
    browser.save_screenshot(str(file))
    size = file.stat().st_size
    print(f"{file.relative_to(ROOT)}: {size:,} bytes")
    assert size < BYTES_MAX


def main() -> None:
    with tempfile.TemporaryDirectory() as folder:
        root = Path(folder)
        manifest = root / "objects.json"
        manifest.write_text("\n---\n".join(json.dumps(each) for each in objects()))
        files = [word for file in ("examples/shop.yaml", "examples/platform.yaml") for word in ("-f", file)]
        up = RunningUp(root / "up", "--workers", "4", "--nodes", "60", *files, "-f", str(manifest))
        try:
            with running_board(up.state.root, root / "board.log") as address:
                browser = chromium(root / "profile")
                try:
                    browser.get(address)
                    work(up)
                    kubectl(up, "-n", "shop", "set", "image", "deploy/search", "*=webserver:404")
                    where = ("--state-dir", str(up.state.root))
                    reason = ("--reason", "its storage is being moved", "--by", "ada")
                    for act in (
                        ("pause", "-n", "media", "--not-kept", *reason),
                        ("rate", "replicaset", "10", "--not-kept"),
                        ("requeue", "--all", "-y"),
                    ):
                        done = oarlock(*act, *where)
                        assert done.returncode == 0, done.stderr
                    take(browser, address, "", 900, "light", ROOT / "docs/board-light.png")
                    take(browser, address, KEY, 820, "dark", ROOT / "docs/board-dark.png")
                finally:
                    browser.quit()
        finally:
            up.stop()


if __name__ == "__main__":
    main()
