"""Tests, in folders as the code's. Modules name one another in full: `from tests.controllers.builders import pod`."""

from pathlib import Path

ROOT = Path(__file__).resolve().parents[1]
