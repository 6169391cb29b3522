"""A real Prometheus, for what only it can say: whether queries have answers and rules are good."""

from __future__ import annotations

import json
import os
import shutil
import signal
import subprocess
import urllib.parse
import urllib.request
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest
import yaml

from oarlock.sandbox.host import free_port
from tests import ROOT

ALERTS = ROOT / "helm" / "oarlock" / "alerts" / "oarlock.yaml"
DASHBOARD = ROOT / "helm" / "oarlock" / "dashboards" / "oarlock.json"
SCRAPE_S = 1


def need(program: str) -> str:
    """The path of a program of Debian's package prometheus. Skips the test without it; in CI it must be there."""
    path = shutil.which(program)
    if path is None:
        assert not os.environ.get("CI"), f"CI needs {program}: apt-get install prometheus"
        pytest.skip(f"no {program} here; on Debian: apt-get install prometheus")
    return path


class Prometheus:
    """Scrapes ``urls`` every second, with our alert rules."""

    def __init__(self, directory: Path, urls: Sequence[str]) -> None:
        directory.mkdir(parents=True, exist_ok=True)
        self._address = f"127.0.0.1:{free_port()}"
        config = {
            "global": {"scrape_interval": f"{SCRAPE_S}s", "evaluation_interval": f"{SCRAPE_S}s"},
            "rule_files": [str(ALERTS)],
            "scrape_configs": [
                {"job_name": "oarlock", "static_configs": [{"targets": [url.removeprefix("http://") for url in urls]}]}
            ],
        }
        (directory / "prometheus.yaml").write_text(yaml.safe_dump(config))
        with (directory / "prometheus.log").open("wb") as log:
            self._process = subprocess.Popen(
                [
                    need("prometheus"),
                    f"--config.file={directory / 'prometheus.yaml'}",
                    f"--storage.tsdb.path={directory / 'data'}",
                    f"--web.listen-address={self._address}",
                    "--log.level=warn",
                ],
                cwd=directory,
                stdin=subprocess.DEVNULL,
                stdout=log,
                stderr=log,
            )
        self.log = directory / "prometheus.log"

    def ask(self, path: str, **query: str) -> Any:
        """The data of an API call; None while it does not answer yet. Fails the test on an error."""
        assert self._process.poll() is None, self.log.read_text()
        url = f"http://{self._address}/api/v1/{path}?{urllib.parse.urlencode(query)}"
        try:
            with urllib.request.urlopen(url, timeout=20) as answer:
                told = json.load(answer)
        except urllib.error.HTTPError as error:
            if error.code == 503:
                return None
            raise AssertionError(f"{query}: {error.read().decode()}") from None
        except OSError:
            return None
        assert told["status"] == "success"
        return told["data"]

    def query(self, expression: str) -> list[Any]:
        """What an expression gives now."""
        data = self.ask("query", query=expression)
        return data["result"] if data else []

    def close(self) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(10)
        except subprocess.TimeoutExpired:
            self._process.kill()
            self._process.wait()
