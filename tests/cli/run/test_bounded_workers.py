"""How many workers start where controllers of one's own have `concurrency=`: no more than have something to do."""

from __future__ import annotations

from pathlib import Path
from typing import Any

import pytest

from oarlock.cli import logs
from oarlock.cli.options import process_options
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.workers.supervisor import worker_command
from tests.cli.cli_helpers import call, problems

KUBECONFIG = """\
apiVersion: v1
kind: Config
clusters: [{name: c, cluster: {server: "http://127.0.0.1:1"}}]
users: [{name: u, user: {}}]
contexts: [{name: here, context: {cluster: c, user: u}}]
current-context: here
"""
ONE = "import oarlock\n@oarlock.desired('v1 Secret', concurrency=1)\ndef one(obj, children): return oarlock.Result()\n"
TWO = ONE + "@oarlock.desired('v1 ConfigMap', concurrency=2)\ndef two(obj, children): return oarlock.Result()\n"
FREE = ONE + "@oarlock.desired('v1 ConfigMap')\ndef free(obj, children): return oarlock.Result()\n"


@pytest.fixture
def started(server: EmbeddedRedis, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Any:
    """What `oarlock worker` says, and how many workers it starts: 0 if it refuses."""
    counts: list[int] = []

    def run_fleet(settings: Any, count: int, **options: Any) -> int:
        counts.append(count)
        return 0

    monkeypatch.setattr(worker_command, "run_fleet", run_fleet)
    monkeypatch.setattr(logs, "set_up", lambda *args, **options: None)
    monkeypatch.setattr(process_options, "check_no_threads", lambda what: None)  # the fleet of other tests has some
    (tmp_path / "kubeconfig").write_text(KUBECONFIG)

    def start(code: str, *flags: str) -> tuple[list[str], int]:
        file = tmp_path / f"bounded_{abs(hash(code))}.py"
        file.write_text(code)
        where = ("--redis", server.url("admin"), "--kubeconfig", str(tmp_path / "kubeconfig"))
        result = call("worker", "--operator", str(file), *where, *flags)
        assert result.exit_code == (0 if counts else 2), result.output
        return problems(result), counts[-1] if counts else 0

    return start


TOLD = "start: concurrency= of the controllers keeps no more of them busy"


@pytest.mark.parametrize(
    ("code", "workers", "started_", "told"),
    [
        (ONE, 1, 1, []),
        (ONE, 8, 1, [f"oarlock: 1 of 8 workers {TOLD}"]),
        (TWO, 2, 2, []),
        (TWO, 8, 3, [f"oarlock: 3 of 8 workers {TOLD}"]),
        (FREE, 8, 8, []),
    ],
)
def test_as_many_workers_start_as_have_something_to_do(
    started: Any, code: str, workers: int, started_: int, told: list[str]
) -> None:
    assert started(code, "--workers", str(workers)) == (told, started_)


def test_a_flag_that_leaves_workers_idle_is_refused(started: Any, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OARLOCK_CONCURRENT_ONE_SYNCS", "2")
    (line,), count = started(ONE, "--workers", "3")
    assert count == 0
    assert line.endswith("CONCURRENT_ONE_SYNCS=2: 1 of 3 workers would have nothing to do; start fewer with --workers")
