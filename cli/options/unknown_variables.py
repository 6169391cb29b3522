"""Environment variables that look like ours and that nobody reads: misspelt ones, as a rule."""

from __future__ import annotations

import os
import re
from collections.abc import Mapping
from difflib import get_close_matches

from oarlock.cli.options.setting_options import variable
from oarlock.workers.process.settings import setting_names

OURS = "OARLOCK_"
OTHERS = tuple(
    OURS + name
    for name in (
        # of commands, beside the settings
        *("WORKERS", "LOG_FORMAT", "STATE_DIR", "EMBEDDED", "BOARD_TOKEN", "REPORT_FD", "METRICS_FD"),
        *(f"{user}_PASSWORD" for user in ("INGESTOR", "WORKER", "METRICS", "ADMIN", "REPLICA", "SENTINEL")),
        # of compose/
        *("IMAGE", "STATE", "REDIS_IMAGE", "REDIS_SCHEME", "REDIS_HOST"),
        # of the repository's own tests and benchmarks
        *("KUBERNETES_BIN", "KUBECTLS", "JUNK_ROUNDS"),
    )
)
FAMILIES = ("OARLOCK_TEST_", "OARLOCK_CHAOS_", "OARLOCK_BENCH_")
"""Any name of tests, campaigns and benchmarks."""
_SERVICE = re.compile(r"_(SERVICE_HOST|SERVICE_PORT(_\w+)?|PORT(_\d+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$")
"""What a kubelet sets for each Service of a pod's namespace, such as OARLOCK_REDIS_PORT_6379_TCP_ADDR."""


def known_variables() -> list[str]:
    """Every variable that somebody reads, except those of ``FAMILIES``."""
    return [*map(variable, setting_names()), *OTHERS]


def unknown_variables(env: Mapping[str, str] | None = None) -> list[str]:
    """A line for each variable of the environment that begins as ours do and has no meaning."""
    known = known_variables()
    return [
        _told(name, known)
        for name in sorted(os.environ if env is None else env)
        if name.startswith(OURS) and name not in known and not name.startswith(FAMILIES) and not _SERVICE.search(name)
    ]


def _told(name: str, known: list[str]) -> str:
    near = get_close_matches(name.removeprefix(OURS), [each.removeprefix(OURS) for each in known], 1, 0.7)
    mend = f"did you mean {OURS}{near[0]}?" if near else "`oarlock config -o json` names those that there are"
    return f"warning: the environment variable {name} is ignored, there is no such setting: {mend}"
