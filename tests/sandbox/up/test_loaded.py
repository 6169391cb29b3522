"""What `oarlock up` has in memory when it forks ingestors and workers: they have all of it, too."""

from __future__ import annotations

import subprocess
import sys
from importlib.util import find_spec

LOADED = """
import sys
import click
from oarlock.cli import cli
with click.Context(cli) as context:
    cli.get_command(context, "up")
    sys.modules["oarlock.cli.run.up"]._loaded()
print(*sys.modules)
"""


def test_what_is_not_asked_for_is_not_part_of_it() -> None:
    """The rules of the API server are 4 MB: without files there is nothing to check, and the server is a process of its
    own. OpenTelemetry is 3 MB: redis-py would load it for itself.
    """
    assert find_spec("opentelemetry"), "else this proves nothing"
    told = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    assert {"oarlock.workers.rq.worker", "oarlock.workers.ingest.ingestor", "oarlock.sandbox.up.start"} <= set(told)
    unwanted = ("oarlock.sandbox.apiserver", "yaml", "rich", "opentelemetry")
    assert not [each for each in told if each.startswith(unwanted)]
