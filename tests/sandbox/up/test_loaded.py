"""What `oarlock up` has in memory when it forks ingestors and workers: they have all of it, too."""

from __future__ import annotations

import subprocess
import sys

LOADED = """
import sys
import click
from oarlock.cli import cli
from oarlock.cli.run.up import _loaded
with click.Context(cli) as context:
    cli.get_command(context, "up")
    _loaded()
print(*sys.modules)
"""


def test_the_rules_of_the_api_server_are_not_part_of_it() -> None:
    """They are 4 MB. Without files there is nothing to check, and the server is a process of its own."""
    told = subprocess.run([sys.executable, "-c", LOADED], capture_output=True, text=True, check=True).stdout.split()
    assert {"oarlock.workers.rq.worker", "oarlock.workers.ingest.ingestor", "oarlock.sandbox.up.start"} <= set(told)
    assert not [each for each in told if each.startswith(("oarlock.sandbox.apiserver", "yaml", "rich"))]
