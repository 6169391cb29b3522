"""The tables of docs/metrics.md, from the one that is served. `python -m tests.docs.metric_tables` writes them anew."""

from __future__ import annotations

from collections.abc import Sequence

from oarlock.workers.counters.layout import AGE_RATIOS, CLAIM_WAIT_S, FAILOVER_S, REQUEST_S, WORK_S
from oarlock.workers.metrics.families import BOTH, OURS, PROCESS, UPSTREAM, Family
from tests import ROOT

PAGE = ROOT / "docs/metrics.md"
MARK = "<!-- from here on: python -m tests.docs.metric_tables -->\n"
_TITLES = (("As upstream", UPSTREAM), ("Of every process", PROCESS), ("Ours", OURS))


def tables() -> str:
    """Everything behind MARK."""
    bounds = [
        ("workqueue_*", WORK_S),
        ("rest_client_*", REQUEST_S),
        ("oarlock_claim_wait_seconds", CLAIM_WAIT_S),
        ("oarlock_failover_seconds", FAILOVER_S),
        ("replicaset_controller_sorting_deletion_age_ratio", AGE_RATIOS),
    ]
    told = "\n".join(f"- `{name}`: {' '.join(f'{bound:g}' for bound in each)}" for name, each in bounds)
    sections = "".join(_section(title, families) for title, families in _TITLES)
    return f"{sections}\n## Bounds of histograms, in seconds or, of ratios, as such\n\n{told}\n"


def _section(title: str, families: Sequence[Family]) -> str:
    rows = [
        f"| `{each.name}` | {each.kind} | {', '.join(each.labels) or '-'} | {each.scope}"
        f" | {'both' if each.roles == BOTH else each.roles[0]} | {each.meaning} |"
        for each in families
    ]
    head = ("", f"## {title}", "", "| metric | type | labels | scope | served by | says |", "|---|---|---|---|---|---|")
    return "\n".join((*head, *rows, ""))


def page() -> str:
    """The page as it should be."""
    return PAGE.read_text().partition(MARK)[0] + MARK + tables()


if __name__ == "__main__":
    PAGE.write_text(page())
