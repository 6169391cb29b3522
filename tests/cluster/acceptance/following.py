"""What happens to the pods of a namespace, without a gap: the API's own watch, read by kubectl, line by line."""

from __future__ import annotations

import json
import subprocess
import threading
import time
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass

from tests.e2e.e2e_kubectl import Kubectl, Obj, until


@dataclass(frozen=True)
class Moment:
    """A change of one pod as it was heard of. `at_s`: Unix time."""

    at_s: float
    gone: bool
    pod: Obj


class Following:
    """`before`: the pods there are in the beginning; `moments`: what came then, in the order of the API."""

    def __init__(self, kubectl: Kubectl) -> None:
        self._kubectl = kubectl
        pods = f"{kubectl.root}/api/v1/namespaces/{kubectl.namespace}/pods"
        found = json.loads(kubectl.run("get", "--raw", pods))
        self.before: list[Obj] = found["items"]
        rv = found["metadata"]["resourceVersion"]
        self.process = subprocess.Popen(
            ["kubectl", "get", "--raw", f"{pods}?watch=1&resourceVersion={rv}&timeoutSeconds=900"],
            stdout=subprocess.PIPE,
            text=True,
            env=kubectl.environment,
        )
        self.moments: list[Moment] = []
        self._reader = threading.Thread(target=self._read, daemon=True)
        self._reader.start()

    def _read(self) -> None:
        assert self.process.stdout is not None
        for line in self.process.stdout:
            event = json.loads(line)
            if event["type"] == "ERROR":
                return
            self.moments.append(Moment(time.time(), event["type"] == "DELETED", event["object"]))

    def catch_up(self) -> None:
        """Wait until everything that has happened so far has been heard of."""
        mark = f"{time.time_ns()}"
        marked = ""

        def heard() -> bool:
            nonlocal marked
            assert self.process.poll() is None, "the watch has ended"
            marks = (each.pod["metadata"].get("annotations", {}) for each in reversed(self.moments))
            if any(each.get("example.com/mark") == mark for each in marks):
                return True
            if not marked or self._has_gone(marked):
                marked = self._mark(mark)
            return False

        until(heard, 15, "the watch comes to the present")

    def _mark(self, mark: str) -> str:
        """Annotate a pod: its name, or "" if it has gone since it was listed. Of a pod that is to go at once an API
        server says that it was changed, and takes it away.
        """
        name = str(self._kubectl.items("pods")[0]["metadata"]["name"])
        words = ("annotate", "pod", name, f"example.com/mark={mark}", "--overwrite")
        command, env = self._kubectl.command(*words), self._kubectl.environment
        return "" if subprocess.run(command, env=env, capture_output=True, check=False).returncode else name

    def _has_gone(self, name: str) -> bool:
        return any(each.gone and each.pod["metadata"]["name"] == name for each in self.moments)


@contextmanager
def following(kubectl: Kubectl) -> Iterator[Following]:
    """From now on."""
    made = Following(kubectl)
    try:
        yield made
    finally:
        made.process.kill()
        made.process.wait()
