"""The tables of docs/evidence.md, made of the lines that were kept."""

from __future__ import annotations

from collections.abc import Iterable, Sequence

from oarlock.chaos.faults.points import POINTS
from tests import ROOT
from tests.evidence.campaigns import (
    ALONE,
    CHURN_H,
    EACH_LOSS,
    LOSSES,
    POINT_KILLS,
    WANTED,
    Line,
    at_point,
    churn_h,
    lost,
    total,
)

PAGE = ROOT / "docs" / "evidence.md"
BEGIN = "<!-- the tables are made from tests/evidence/played.jsonl: python -m tests.evidence table -->\n"
END = "<!-- end of the tables -->\n"
TOLD_LOSSES = {
    "flushall": "emptied (FLUSHALL)",
    "redis": "killed, back without data",
    "lost-tail": "killed, back from a log without its end",
    "sentinel": "failover to a replica",
    "old-master": "failover, the old master serves on",
}


def page(text: str, lines: Sequence[Line]) -> str:
    """The page with its tables made anew."""
    head, _, rest = text.partition(BEGIN)
    _, _, tail = rest.partition(END)
    tables = (by_commit(lines), by_fault(lines), by_point(lines), alone(lines))
    return f"{head}{BEGIN}\n{chr(10).join(each for each in tables if each)}\n{END}{tail}"


def by_commit(lines: Sequence[Line]) -> str:
    """A row for the campaigns of each commit, and one for all. What gave no evidence does not count."""
    heads = [fault.replace("_", " ") for fault in WANTED]
    rows = [("commit", "campaigns", "pass", *heads, "with a write under way", "simulated hours", "violations")]
    commits = list(dict.fromkeys(line["commit"] for line in lines))
    for name, of in [*((each, [line for line in lines if line["commit"] == each]) for each in commits), ("all", lines)]:
        counted = [line for line in of if line["verdict"] != "no evidence"]
        aim = {fault: f" of {wanted:,}" if name == "all" else "" for fault, wanted in WANTED.items()}
        hours = f"{churn_h(counted):.1f}" + (f" of {CHURN_H}" if name == "all" else "")
        passed = sum(line["verdict"] == "pass" for line in of)
        faults = [f"{total(counted, fault):,}{aim[fault]}" for fault in WANTED]
        under_way = f"{total(counted, 'writes_in_flight'):,}"
        rows.append((name, str(len(of)), str(passed), *faults, under_way, hours, str(total(of, "violations"))))
    return _table(rows)


def by_fault(lines: Sequence[Line]) -> str:
    """Of each kind of campaign: how many, how fast all came to rest. Of each kind of loss: how many."""
    counted = [line for line in lines if line["verdict"] != "no evidence"]
    rows = [("loss of Redis", "times", "violations")]
    for loss in LOSSES:
        of = [line for line in counted if lost([line], loss)]
        rows.append((TOLD_LOSSES[loss], f"{lost(of, loss)} of {EACH_LOSS}", str(total(of, "violations"))))
    kinds = [("campaign", "played", "pass", "at rest after (median, most)", "violations")]
    for kind in dict.fromkeys(line["kind"] for line in lines if line["kind"] not in ALONE):
        of = [line for line in lines if line["kind"] == kind]
        passed = sum(line["verdict"] == "pass" for line in of)
        kinds.append((kind, str(len(of)), str(passed), _settled(of), str(total(of, "violations"))))
    return _table(kinds) + "\n" + _table(rows) if len(kinds) > 1 else ""


def _settled(lines: Sequence[Line]) -> str:
    settled = sorted(line["settle_s"] for line in lines if "settle_s" in line)
    return f"{settled[len(settled) // 2]:.1f} s, {settled[-1]:.1f} s" if settled else "-"


def by_point(lines: Sequence[Line]) -> str:
    """Of each named point: how often workers killed themselves there."""
    counted = [line for line in lines if line["verdict"] != "no evidence"]
    if not any(at_point(counted, point) for point in POINTS):
        return ""
    rows = [("a worker was killed", "point", "times")]
    rows += [(what, f"`{name}`", f"{at_point(counted, name)} of {POINT_KILLS}") for name, what in POINTS.items()]
    return _table(rows)


def alone(lines: Sequence[Line]) -> str:
    """The last campaign of each sort of fault that was played alone."""
    last = {line["kind"]: line for line in lines if line["kind"] in ALONE}
    if not last:
        return ""
    heads = (
        "fault alone, commit, seed, lasted, times, struck, created / deleted, 409 / again, stale, epochs, judged, rest"
    )
    rows = [(*heads.split(", "), "violations", "verdict")]
    for kind in ALONE:
        if line := last.get(kind):
            rows.append(
                (
                    *(f"`{kind}`", line["commit"], str(line["seed"]), f"{line['lasted_s']:g} s", str(line["times"])),
                    *(f"{line['struck']:,}", f"{line['creates']:,} / {line['deletes']:,}"),
                    *(f"{line['already_exists']} / {line['reissued_writes']}", str(line["stale"])),
                    *(str(line["epochs"]), str(line["judged"]), f"{line['settle_s']} s"),
                    *(str(line["violations"]), line["verdict"]),
                )
            )
    return _table(rows)


def _table(rows: Iterable[Sequence[str]]) -> str:
    head, *rest = (f"| {' | '.join(row)} |" for row in rows)
    rule = "|---" * (head.count("|") - 1) + "|"
    return "\n".join((head, rule, *rest)) + "\n"
