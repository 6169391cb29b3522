"""Words and rigs of other folders' tests, which stand beside theirs."""

from __future__ import annotations

import sys
from pathlib import Path

TESTS = Path(__file__).parents[1]
for folder in ("workers/turn/turn", "workers/ingest", "workers/supervisor/supervisor", "e2e", "broker"):
    if str(TESTS / folder) not in sys.path:
        sys.path.append(str(TESTS / folder))
