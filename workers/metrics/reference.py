"""The tables of docs/metrics.md, made from the one that is served: ``python -m oarlock.workers.metrics.reference``."""

from __future__ import annotations

import sys
from collections.abc import Sequence

from oarlock.workers.counters.layout import AGE_RATIOS, CLAIM_WAIT_S, REQUEST_S, WORK_S
from oarlock.workers.metrics.families import BOTH, OURS, PROCESS, UPSTREAM, Family

MARK = "<!-- from here on: python -m oarlock.workers.metrics.reference -->\n"
_TITLES = (("As upstream", UPSTREAM), ("Of every process", PROCESS), ("Ours", OURS))


def text() -> str:
    """Everything behind MARK."""
    bounds = [
        ("workqueue_*", WORK_S),
        ("rest_client_*", REQUEST_S),
        ("oarlock_claim_wait_seconds", CLAIM_WAIT_S),
        ("replicaset_controller_sorting_deletion_age_ratio", AGE_RATIOS),
    ]
    told = "\n".join(f"- `{name}`: {' '.join(f'{bound:g}' for bound in each)}" for name, each in bounds)
    tables = "".join(_section(title, families) for title, families in _TITLES)
    return f"{tables}\n## Bounds of histograms, in seconds or, of ratios, as such\n\n{told}\n"


def _section(title: str, families: Sequence[Family]) -> str:
    rows = [
        f"| `{each.name}` | {each.kind} | {', '.join(each.labels) or '-'} | {each.scope}"
        f" | {'both' if each.roles == BOTH else each.roles[0]} | {each.meaning} |"
        for each in families
    ]
    head = ("", f"## {title}", "", "| metric | type | labels | scope | served by | says |", "|---|---|---|---|---|---|")
    return "\n".join((*head, *rows, ""))


if __name__ == "__main__":
    sys.stdout.write(text())
