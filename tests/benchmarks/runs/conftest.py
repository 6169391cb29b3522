"""These take minutes: `make test-benchmarks` runs them, `make test` does not."""

from __future__ import annotations

import os

collect_ignore_glob = [] if os.environ.get("OARLOCK_TEST_BENCHMARKS") else ["test_*.py"]
