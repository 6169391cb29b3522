"""Tests, in folders as the code's. Modules name one another in full: `from tests.controllers.builders import pod`."""

from pathlib import Path

from oarlock.controllers.builtin import register_builtin

ROOT = Path(__file__).resolve().parents[1]

register_builtin()  # tests, and programs of theirs, are processes of a fleet with the built-in kinds

THRIFTY_GO = {"GOGC": "off", "GOMAXPROCS": "1"}
"""For kubectl: it collects no garbage, a sixth of what a start costs, and runs on one thread, which saves as much."""
