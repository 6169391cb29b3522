"""What is said of a server's message or of an exception, which may hold anything."""

from __future__ import annotations

from oarlock.workers.process.log_line import discreet


def test_what_has_no_utf8_is_spelled_out() -> None:
    """RQ's registry of failed keys is in Redis, which takes nothing else."""
    assert discreet(ValueError("no file x\udcff")) == r"no file x\udcff"
    assert discreet("größer") == "größer"
