"""The controllers of a kind without namespaces stand first in this file."""

from tests.cli.look.shops import site, team

__all__ = ["site", "team"]
