"""``python -m oarlock.cli``: the command ``oarlock`` of this environment; `oarlock up` starts its children with it."""

from oarlock.cli import cli

if __name__ == "__main__":
    cli(prog_name="oarlock")
