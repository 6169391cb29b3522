"""The programs of the real server go with it, kubectl among them."""

from __future__ import annotations

import os

from tests.realserver.programs import put_on_path

if os.environ.get("OARLOCK_TEST_SERVER") == "real":
    put_on_path("kubectl")
