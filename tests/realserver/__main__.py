"""`python -m tests.realserver [PROGRAM...]`: obtain programs of a real control plane and print where they are.

Without PROGRAM: what the acceptance suite needs. Of programs that the environment gives, the versions are told on
stderr. Exit 2 with one line when something is missing.
"""

from __future__ import annotations

import signal
import sys

from tests.realserver.given import given
from tests.realserver.programs import PROGRAMS, obtain
from tests.realserver.telling import ENDING, CannotObtain, tell
from tests.realserver.versions import asked

NEEDED = ("etcd", "kubectl", "kube-apiserver", "kube-controller-manager")


def main(names: list[str]) -> int:
    if unknown := [name for name in names if name not in PROGRAMS]:
        print(f"realserver: {', '.join(unknown)}: unknown; there are: {', '.join(PROGRAMS)}", file=sys.stderr)
        return 2
    for signum in ENDING:  # the former is ignored where a shell started us in the background
        signal.signal(signum, signal.default_int_handler)  # so that a build that is ended leaves nothing running
    try:
        for name, path in obtain(*(names or NEEDED)).items():
            print(f"{name}\t{path}")
        for name, path in given(names or NEEDED).items():
            tell(f"{name} {asked(path)}: {path}")
    except CannotObtain as error:
        print(f"realserver: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("realserver: stopped; what was begun is thrown away", file=sys.stderr)
        return 130
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
