"""`e2e.test` as a program, with a stand-in: what it is asked, how it is ended, what is made of its answers."""

from __future__ import annotations

import sys
import time
from pathlib import Path

import pytest

from tests.conformance import __main__ as command
from tests.conformance import suite
from tests.conformance.cases import LEAST, NOT_PLAYED, SIG, called, of_kinds
from tests.conformance.results import Result
from tests.conformance.suite import Suite
from tests.realserver.beside import Broken
from tests.realserver.processes import Running

STAND_IN = """#!{python}
import re, signal, sys, time
from pathlib import Path
given = dict(argument.partition("=")[::2] for argument in sys.argv[1:])
if "--help" in given:
    print("{help}")
    sys.exit(2)
dry = "{dry}" in given
reports = Path(given["--report-dir"])
reports.mkdir(parents=True)
cases = {cases!r}
def report(*_):
    asked = [re.search(given.get("--ginkgo.focus", ""), "suite " + case) for case in cases]
    inside = ["" if each else "<skipped/>" for each in asked]
    lines = ['<testcase name="%s" time="1">%s</testcase>' % line for line in zip(cases, inside)]
    (reports / "junit_01.xml").write_text("<testsuite>%s</testsuite>" % "".join(lines))
    sys.exit(0)
if "{ends}" == "crashes" and not dry:
    sys.exit("panic: a nil map")
if "{ends}" and not dry:
    signal.signal(signal.SIGINT, report if "{ends}" == "politely" else signal.SIG_IGN)
    print("STEP: waiting", flush=True)
    time.sleep(600)
report()
"""
GINKGO_1, GINKGO_2 = ("-ginkgo.noColor", "--ginkgo.dryRun"), ("-ginkgo.no-color", "--ginkgo.dry-run")
A, B = f"{SIG}ReplicaSet should a (1)  [Conformance]", f"{SIG}ReplicaSet should a (1)  [Conformance] too"


def stand_in(folder: Path, cases: list[str], ends: str = "", flags: tuple[str, str] = GINKGO_1) -> Suite:
    folder.mkdir(exist_ok=True)
    program = folder / "e2e.test"
    text = STAND_IN.format(python=sys.executable, help=flags[0], dry=flags[1], cases=cases, ends=ends)
    program.write_text(text)
    program.chmod(0o755)
    return Suite(program, folder / "out")


def run(made: Suite, folder: Path, texts: list[str], limit_s: float = 60.0, waits: bool = False) -> dict[str, Result]:
    """`waits`: the stand-in is at work before the time is looked at."""

    def check() -> None:
        while waits and "STEP: " not in (folder / "out" / "e2e.log").read_text():
            time.sleep(0.01)

    return made.run(texts, folder / "kubeconfig", limit_s=limit_s, check=check)


@pytest.mark.parametrize("flags", [GINKGO_1, GINKGO_2])
def test_the_cases_that_are_named_are_run_and_no_others(tmp_path: Path, flags: tuple[str, str]) -> None:
    made = stand_in(tmp_path, [A, B], flags=flags)
    assert made.texts() == [A, B]
    found = run(made, tmp_path, [A])
    assert {text: result.outcome for text, result in found.items()} == {A: "passed", B: "skipped"}


def test_a_suite_that_lists_nothing(tmp_path: Path) -> None:
    with pytest.raises(Broken, match="lists no case"):
        stand_in(tmp_path, []).texts()


def test_a_suite_that_takes_too_long_is_told_to_end_and_says_how_far_it_came(tmp_path: Path) -> None:
    assert run(stand_in(tmp_path, [A], "politely"), tmp_path, [A], limit_s=0.1, waits=True)[A].outcome == "passed"


def test_a_suite_that_does_not_end_when_told_to(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(suite, "_END_LIMIT_S", 0.1)
    started: list[Running] = []
    monkeypatch.setattr(suite, "Running", lambda *given: started.append(Running(*given)) or started[0])
    with pytest.raises(Broken, match="did not end when told to:\nSTEP: waiting"):
        run(stand_in(tmp_path, [A], "for ever"), tmp_path, [A], limit_s=0.1, waits=True)
    assert not started[0].alive


def test_a_suite_that_crashes_has_no_results_and_those_of_an_earlier_run_do_not_count(tmp_path: Path) -> None:
    assert run(stand_in(tmp_path, [A]), tmp_path, [A])[A].outcome == "passed"
    found = run(stand_in(tmp_path, [A], "crashes"), tmp_path, [A])
    assert found == {"e2e.test": Result("failed", 0.0, "it ended with code 1: panic: a nil map")}


def test_it_is_ended_when_the_cluster_breaks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    started: list[Running] = []
    monkeypatch.setattr(suite, "Running", lambda *given: started.append(Running(*given)) or started[0])

    def check() -> None:
        raise Broken("etcd ended")

    with pytest.raises(Broken, match="etcd ended"):
        stand_in(tmp_path, [A], "for ever").run([A], tmp_path, limit_s=60.0, check=check)
    assert not started[0].alive


def whole() -> list[str]:
    listed = [f"{SIG}{case}" for case in NOT_PLAYED]
    counts = {kind: LEAST[kind] - len(of_kinds(listed, [kind])) for kind in LEAST}
    return [*listed, *(f"{SIG}{kind} should {n}" for kind, count in counts.items() for n in range(count))]


ENDS = [
    pytest.param({}, "", 0, id="all pass"),
    pytest.param({f"{SIG}Daemon set should 2": Result("failed", 1.0, "no")}, "", 1, id="one fails"),
    pytest.param({f"{SIG}Daemon set should 2": Result("skipped", 0.0)}, "", 1, id="one is skipped"),
    pytest.param({"AfterSuite": Result("failed", 0.0)}, "", 1, id="the end fails"),
    pytest.param({}, f"{SIG}Daemon set should 2", 1, id="there is one less"),
    pytest.param({}, f"{SIG}{next(iter(NOT_PLAYED))}", 1, id="a listed one is missing"),
]


@pytest.mark.parametrize(("results", "missing", "code"), ENDS)
def test_the_exit_code(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    results: dict[str, Result],
    missing: str,
    code: int,
) -> None:
    stand_in(tmp_path, [text for text in whole() if text != missing])
    monkeypatch.setattr(command, "obtain", lambda *names: {name: tmp_path / name for name in names})

    def played(_: Suite, texts: list[str], *__: object) -> dict[str, Result]:
        assert not {called(text) for text in texts} & set(NOT_PLAYED)
        return {text: Result("passed", 1.0) for text in texts} | results

    monkeypatch.setattr(command, "_run", played)
    assert command.main(["--evidence", str(tmp_path / "out")]) == code
    said = capsys.readouterr().out
    assert ("NOT AS IT HAS TO BE" in said) is bool(code)
    assert said.startswith("CASE ")
