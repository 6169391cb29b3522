"""The command searches what it is asked for and tells by its exit code whether the rule holds."""

import pytest

from tests.model.__main__ import main


def test_it_prints_states_and_verdict(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["small", "--only", "pods that change"]) == 0

    assert "1,560 states" in capsys.readouterr().out


def test_a_changed_rule_comes_with_its_trace(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["mutants", "--only", "unknown deletes are available", "--trace"]) == 0

    said = capsys.readouterr().out
    assert "over-deletion" in said
    assert "    from [1, 1], wanted 1" in said


def test_an_unknown_case_is_told(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["wide", "--only", "nonsense"]) == 2

    assert "no case is called 'nonsense'" in capsys.readouterr().err
