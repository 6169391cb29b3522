"""The choice of cases, the reading of reports, and the table over both."""

from __future__ import annotations

import pytest

from tests import ROOT
from tests.conformance import table
from tests.conformance.cases import LEAST, NOT_PLAYED, SIG, absent, called, of_kinds
from tests.conformance.results import Result, read, read_progress

DOCS = ROOT / "docs" / "conformance.md"
SERVE = "[sig-apps] ReplicaSet should serve a basic image on each replica with a public image  [Conformance]"
ADOPT = "[sig-apps] ReplicaSet should adopt matching pods [Conformance]"
ROLL = "[sig-apps] Daemon set [Serial] should rollback without unnecessary restarts [Conformance]"


def suite(**fewer: int) -> list[str]:
    """The texts of a suite with as many cases as there have to be, or fewer of a kind."""
    listed = [f"{SIG}{case} [Conformance]" for case in NOT_PLAYED]
    counts = {kind: fewer.get(kind, LEAST[kind]) - len(of_kinds(listed, [kind])) for kind in LEAST}
    return [*listed, *(f"{SIG}{kind} should {n}" for kind, count in counts.items() for n in range(count))]


@pytest.mark.parametrize(
    ("text", "name"),
    [
        (SERVE, "ReplicaSet should serve a basic image on each replica with a public image"),
        (ROLL, "Daemon set should rollback without unnecessary restarts"),
        ("[sig-apps] A [Feature:X] [Slow] b", "A b"),
    ],
)
def test_what_a_case_is_called(text: str, name: str) -> None:
    assert called(text) == name


def test_the_cases_of_kinds() -> None:
    others = ["[sig-apps] ReplicaSetLike should x", "[sig-api-machinery] ReplicaSet should x", "BeforeSuite"]
    assert of_kinds([ROLL, SERVE, ADOPT, *others], ["ReplicaSet", "Daemon set"]) == [ADOPT, SERVE, ROLL]


def test_a_whole_suite_lacks_nothing() -> None:
    assert absent(suite(), LEAST) == []


def test_too_few_cases_are_told() -> None:
    (problem,) = absent(suite(ReplicaSet=3), LEAST)
    assert problem == "ReplicaSet: 3 cases in the suite, not the 4 or more it has to have"


@pytest.mark.parametrize("case", NOT_PLAYED)
def test_a_listed_case_that_is_not_in_the_suite_is_told(case: str) -> None:
    other = [text.replace(f"{SIG}{case}", f"{SIG}{case} otherwise") for text in suite()]
    assert absent(other, LEAST) == [f"{case}: listed as not played, and not in the suite"]


def test_a_kind_that_is_not_run_is_not_missed() -> None:
    assert absent(of_kinds(suite(), ["ReplicaSet"]), ["ReplicaSet"]) == []


GINKGO_1 = f"""<?xml version="1.0" encoding="UTF-8"?>
  <testsuite name="Kubernetes e2e suite" tests="2" failures="1" errors="0" time="9.5">
      <testcase name="{ADOPT}" classname="Kubernetes e2e suite" time="2.5"></testcase>
      <testcase name="{ROLL}" classname="Kubernetes e2e suite" time="7">
          <failure type="Failure">/src/x.go:1&#xA;Expected&#xA;    &lt;int&gt;: 1&#xA;/src/x.go:9</failure>
          <system-out>much</system-out>
      </testcase>
      <testcase name="{SERVE}" classname="Kubernetes e2e suite" time="0"><skipped></skipped></testcase>
  </testsuite>"""
GINKGO_2 = f"""<?xml version="1.0" encoding="UTF-8"?>
<testsuites tests="3"><testsuite name="Kubernetes e2e suite">
  <testcase name="[It] {ADOPT}" status="passed" time="2.5"></testcase>
  <testcase name="[It] {ROLL}" status="failed" time="7">
    <failure message="Expected&#xA;    &lt;int&gt;: 1" type="failed">/src/x.go:1 @ 1</failure>
  </testcase>
  <testcase name="[It] {SERVE}" status="skipped" time="0"><skipped message="skipped"></skipped></testcase>
</testsuite></testsuites>"""


@pytest.mark.parametrize("report", [GINKGO_1, GINKGO_2])
def test_a_report(report: str) -> None:
    found = read(report)
    assert found[ADOPT] == Result("passed", 2.5)
    assert found[SERVE] == Result("skipped", 0.0)
    assert (found[ROLL].outcome, found[ROLL].took_s) == ("failed", 7.0)
    (row,) = table.rows([ROLL], found)
    assert (row.ok, row.why) == (False, "Expected <int>: 1")


def test_the_output_of_a_suite_that_wrote_no_report() -> None:
    output = (
        f'STEP: x\n•{{"msg":"PASSED {ADOPT}","total":2,"completed":1,"skipped":3,"failed":0}}\n'
        f'{{"msg":"FAILED {ROLL}","total":2,"completed":1,"skipped":3,"failed":1,"failures":["{ROLL}"]}}\n'
        f'STEP: y\n{{"msg":"Test Suite completed","total":2,"completed":1}}\n'
    )
    assert read_progress(output) == {ADOPT: Result("passed", 0.0), ROLL: Result("failed", 0.0, "see e2e.log")}


def test_no_report() -> None:
    with pytest.raises(ValueError, match="no XML"):
        read("Killed")


PASSED = Result("passed", 1.0)
ROWS = [
    pytest.param(ADOPT, PASSED, "passed", True, id="passed"),
    pytest.param(ADOPT, Result("failed", 1.0, "it broke"), "failed", False, id="failed"),
    pytest.param(ADOPT, Result("skipped", 0.0), "skipped", False, id="skipped without a reason here"),
    pytest.param(ADOPT, None, "no result", False, id="never reached"),
    pytest.param(SERVE, None, "not run", True, id="listed"),
]


@pytest.mark.parametrize(("text", "result", "shown", "ok"), ROWS)
def test_a_row(text: str, result: Result | None, shown: str, ok: bool) -> None:
    (row,) = table.rows([text], {} if result is None else {text: result})
    assert (row.result, row.ok, bool(row.why)) == (shown, ok, shown != "passed")


def test_the_table() -> None:
    results = {ADOPT: PASSED, ROLL: Result("failed", 300.25, "timed out\nwaiting")}
    *lines, total = table.drawn(table.rows([SERVE, ADOPT, ROLL], results)).splitlines()
    assert [line.split()[0] for line in lines] == ["CASE", "ReplicaSet", "ReplicaSet", "Daemon"]
    assert NOT_PLAYED[called(SERVE)] in lines[1]
    assert lines[3].endswith("failed     300.2 s  timed out waiting")
    assert total == "3 cases: 1 not run, 1 passed, 1 failed"


def test_what_fails_before_the_first_case_is_told() -> None:
    results = {"BeforeSuite": Result("failed", 60.0, "nodes are not ready"), ADOPT: Result("failed", 1.0, "x")}
    assert table.others_failed([ADOPT], results) == ["BeforeSuite failed: nodes are not ready"]


@pytest.mark.parametrize("case", NOT_PLAYED)
def test_docs_list_what_is_not_played(case: str) -> None:
    (line,) = [line for line in DOCS.read_text().splitlines() if case in called(line.replace("|", " "))]
    assert NOT_PLAYED[case] in line
