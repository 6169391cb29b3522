"""`python -m cluster.embedded`, as compose files of the last release say it: `python -m oarlock.sandbox.apiserver`."""

import runpy
import sys

OLD, NEW = "cluster.embedded", "oarlock.sandbox.apiserver"

print(f"oarlock: {OLD} is {NEW} now; the next release drops the old name", file=sys.stderr)
runpy.run_module(NEW, run_name="__main__", alter_sys=True)
