"""Health checks and how their results are written, as the API server writes its own.

Upstream: staging/src/k8s.io/apiserver/pkg/server/healthz/healthz.go.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from urllib.parse import parse_qs

from oarlock.workers.metrics.serving.http_server import Response

Check = Callable[[], str]
"""Returns why it fails, in a few words without secrets; "" where all is well."""


@dataclass(frozen=True, slots=True)
class Endpoint:
    """``name``: without the slash. ``checks``: in the order of the answer."""

    name: str
    checks: Mapping[str, Check]

    def answer(self, below: str, query: str) -> Response:
        """``below``: what stands after "/<name>/", one check, or "". ``query``: ``verbose``, ``exclude=<check>``."""
        asked = parse_qs(query, keep_blank_values=True)
        excluded = set(asked.get("exclude", ()))
        if below:
            if below not in self.checks:
                return Response(404, f"no check {below!r}; there are: {', '.join(self.checks)}\n".encode())
            chosen = {below: self.checks[below]}
        else:
            chosen = {name: check for name, check in self.checks.items() if name not in excluded}
        results = {name: check() for name, check in chosen.items()}
        well = not any(results.values())
        if well and "verbose" not in asked:
            return Response(200, b"ok")
        lines = [f"[-]{name} failed: {why}" if why else f"[+]{name} ok" for name, why in results.items()]
        lines += [f"[+]{name} excluded: ok" for name in self.checks if name in excluded and name not in chosen]
        lines += [f"warn: no check named {name!r}" for name in sorted(excluded - set(self.checks))]
        lines.append(f"{self.name} check {'passed' if well else 'failed'}")
        return Response(200 if well else 500, "".join(f"{each}\n" for each in lines).encode())
