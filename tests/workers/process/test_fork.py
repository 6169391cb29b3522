"""With which code a forked process of ours ends, and that it does."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

from oarlock.workers.process.exit_code import NO_BLAME, ExitCode

FORKS = """
import json, os, sys
from oarlock.workers.process.fork import fork_process

def ends(*leaves):
    child = fork_process("test", lambda: sys.exit(*leaves))
    return os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1])

print(json.dumps([ends(), ends(None), ends(0), ends(3), ends("bad input")]))
"""


def test_who_leaves_with_a_text_has_failed() -> None:
    """As Python itself has it. Only a worker that says why it leaves bears no blame."""
    done = subprocess.run([sys.executable, "-c", FORKS], capture_output=True, text=True, check=True, timeout=60)
    assert json.loads(done.stdout) == [0, 0, 0, 3, ExitCode.FAILED]
    assert ExitCode.FAILED not in NO_BLAME
    assert "bad input" in done.stderr


PRINTS = """
import os, sys
from oarlock.workers.process.fork import fork_process

sys.stdout.reconfigure(write_through=False)  # whatever the tests' environment says of buffers
child = fork_process("test", lambda: print("what the disk has no room for") or 3)
print(os.getpid(), os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]), file=sys.stderr)
"""


def test_who_could_not_write_all_it_said_ends_all_the_same() -> None:
    """It must not go on with its parent's code, as the flush at its end raises."""
    with Path("/dev/full").open("w") as full:
        done = subprocess.run(
            [sys.executable, "-c", PRINTS], check=False, stdout=full, stderr=subprocess.PIPE, text=True, timeout=60
        )
    assert [line.split()[1:] for line in done.stderr.splitlines()] == [["3"]], done.stderr


NO_FILES = """
import os, resource
from oarlock.workers.process.fork import fork_process

most = resource.getrlimit(resource.RLIMIT_NOFILE)[1]
resource.setrlimit(resource.RLIMIT_NOFILE, (3, most))
child = fork_process("test", lambda: 7)
print(os.waitstatus_to_exitcode(os.waitpid(child.pid, 0)[1]))
"""


def test_who_can_open_no_file_lives_under_its_parents_name() -> None:
    done = subprocess.run([sys.executable, "-c", NO_FILES], capture_output=True, text=True, check=True, timeout=60)
    assert (done.stdout.strip(), done.stderr) == ("7", "")
