"""The writes that workers sent to the API server, by the server's own account."""

from __future__ import annotations

import json
from pathlib import Path

from benchmarks.audited import whole_lines


class WorkerWrites:
    """Reads the audit log on from where it stood. Reads of the API are not in it: a turn makes none in the usual case,
    but for one look at the owner before a revision of its template is written down.
    """

    def __init__(self, audit_log: Path) -> None:
        self._path = audit_log
        self._from = audit_log.stat().st_size

    def since(self) -> dict[str, int]:
        """By verb and resource, such as "create pods"; answered in whatever way."""
        counts: dict[str, int] = {}
        for line in whole_lines(self._path, self._from):
            if b'(worker)"' not in line:
                continue
            event = json.loads(line)
            meant = event["objectRef"]
            parts = (meant["resource"], meant.get("subresource"))
            what = f"{event['verb']} {'/'.join(part for part in parts if part)}"
            counts[what] = counts.get(what, 0) + 1
        return counts
