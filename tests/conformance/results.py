"""What the suite says of each case, from its JUnit report, or its output where it did not come to write one. Pure.

Read are the reports of Ginkgo 1 (up to Kubernetes 1.24) and 2: both also name the cases that were not asked for.
"""

from __future__ import annotations

import re
from dataclasses import dataclass
from typing import Literal
from xml.etree import ElementTree

Outcome = Literal["passed", "failed", "skipped"]

_PROGRESS = re.compile(r'\{"msg":"(PASSED|FAILED) (.+?)","total":')


@dataclass(frozen=True, slots=True)
class Result:
    """Of one case, or of what the suite does before and after all. `message`: why it failed."""

    outcome: Outcome
    took_s: float
    message: str = ""


def read(report: str) -> dict[str, Result]:
    """Full text of each case -> its result. Raises ValueError for what is no report."""
    try:
        root = ElementTree.fromstring(report)
    except ElementTree.ParseError as error:
        raise ValueError(f"the report is no XML: {error}") from None
    found = {}
    for case in root.iter("testcase"):
        failure = next((child for child in case if child.tag in ("failure", "error")), None)
        outcome: Outcome = "failed" if failure is not None else "passed" if case.find("skipped") is None else "skipped"
        message = "" if failure is None else failure.get("message") or failure.text or ""
        name = case.get("name", "").removeprefix("[It] ")
        found[name] = Result(outcome, float(case.get("time", 0)), message.strip())
    return found


def read_progress(output: str) -> dict[str, Result]:
    """As `read`, of the cases that have ended, without their times."""
    return {
        text: Result("passed", 0.0) if said == "PASSED" else Result("failed", 0.0, "see e2e.log")
        for said, text in _PROGRESS.findall(output)
    }
