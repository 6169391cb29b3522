"""``python -m cli``: the command ``oarlock`` of this very environment, as `oarlock up` starts its children."""

from oarlock.cli import cli

if __name__ == "__main__":
    cli(prog_name="oarlock")
