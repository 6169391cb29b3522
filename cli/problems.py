"""Problems that the user can solve: one line each on stderr, and exit code 2 or 1."""

from __future__ import annotations

import sys
from collections.abc import Iterable
from typing import IO, Any

import click


class InputProblem(click.ClickException):
    """The input cannot be used. Each line names the input and the remedy. Nothing was started or changed."""

    exit_code = 2

    def __init__(self, *lines: str) -> None:
        super().__init__("\n".join(lines))
        self.lines = lines

    def show(self, file: IO[Any] | None = None) -> None:
        """Print the lines, each behind the program's name."""
        say(self.lines, file)


class NotDone(InputProblem):
    """The input is fine, but the command did not succeed: exit code 1."""

    exit_code = 1


def say(lines: Iterable[str], file: IO[Any] | None = None) -> None:
    """One line each on stderr, behind the program's name."""
    for line in lines:
        click.echo(f"oarlock: {' '.join(line.split())}", file=file or sys.stderr)
