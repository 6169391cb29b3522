"""The end of `oarlock chaos`: the verdict on the evidence, for people and as JSON."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import click

from oarlock.chaos.judge.checker import Evidence, check
from oarlock.chaos.judge.timeline import clock, timeline
from oarlock.chaos.judge.verdict import Verdict
from oarlock.chaos.record.saved import VERDICT, NoEvidence, read_saved
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.tables import console

SHOWN_MAX = 5
"""Violations whose evidence is printed; the others are named."""


def judge(root: Path, quiet: bool, *, keep: bool) -> int:
    """Print the verdict on the evidence in a directory. After a pass the directory is removed, unless ``keep``."""
    try:
        run, evidence = read_saved(root)
    except NoEvidence as error:
        raise InputProblem(str(error)) from None
    verdict = Verdict.of(run, check(evidence))
    if not quiet:
        _report(verdict, evidence)
    told = verdict.as_json()
    (root / VERDICT).write_text(json.dumps(told, indent=1) + "\n")
    if verdict.word == "pass" and not keep:
        shutil.rmtree(root, ignore_errors=True)
        told["state_dir"] = ""
    click.echo(json.dumps(told))
    return 0 if verdict.word == "pass" else 1


def _report(verdict: Verdict, evidence: Evidence) -> None:
    found = verdict.findings
    for violation in found.violations[:SHOWN_MAX]:
        click.echo(f"\n{violation.kind} {violation.task} at {clock(violation.at_s)}, revision {violation.rv}:")
        click.echo(f"  {violation.text}")
        for line in timeline(evidence, violation):
            click.echo(f"    {line}")
    for violation in found.violations[SHOWN_MAX:]:
        click.echo(f"{violation.kind} {violation.task} at {clock(violation.at_s)}, rv {violation.rv}: {violation.text}")
    say([f"evidence is missing: {gap}" for gap in found.gaps])
    click.echo()
    console().print(verdict.table())
    click.echo()
    console().print(verdict.kinds_table())
    told, run = verdict.as_json(), verdict.run
    worker = told["recovery"]["worker_kill_to_claim_ms"]
    if run.only:
        how = f"{run.only} {run.done} times (seed {run.seed}), struck {sum(run.struck.values())} times"
    else:
        how = f"{run.done} faults (seed {run.seed})"
    if worker["count"]:
        how += (
            f"; a killed worker's keys were claimed again after {worker['p50']} ms (p50), {worker['p99']} ms (p99),"
            f" {worker['max']} ms (most)"
        )
    click.echo(f"\n{how}; all at rest {run.settle_s} s after the last fault")
    if told["not_judged"]:
        click.echo(f"not judged {told['not_judged']}")
    click.echo(f"verdict: {verdict.word}" + ("" if verdict.word == "pass" else f"; evidence in {run.state_dir}"))
