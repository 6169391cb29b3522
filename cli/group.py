"""The command group: it loads a command's module on use, and reports every misuse in one line."""

from __future__ import annotations

import sys
from collections.abc import Collection, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib import import_module
from typing import Any

import click

from oarlock.cli.problems import say
from oarlock.cli.streams import drop_output, open_what_is_closed, takes_no_more
from oarlock.controllers.builtin import register_builtin
from oarlock.controllers.registry import as_before


class LazyGroup(click.Group):
    """``table``: name -> (folder, line of help); the command is ``name`` in the module ``oarlock.cli.folder.name``.

    ``without_kinds``: the commands for which the built-in kinds are not registered.
    """

    def __init__(
        self, name: str, table: Mapping[str, tuple[str, str]], text: str, without_kinds: Collection[str] = ()
    ) -> None:
        super().__init__(name, help=text, context_settings={"help_option_names": ["-h", "--help"]})
        self._table, self._without_kinds = table, without_kinds

    def list_commands(self, ctx: click.Context) -> list[str]:
        return list(self._table)

    def get_command(self, ctx: click.Context, cmd_name: str) -> click.Command | None:
        if cmd_name not in self._table:
            return None
        if cmd_name not in self._without_kinds:
            register_builtin()  # before the import: a command's flags are made from the kinds
        with _without_opentelemetry():
            module = import_module(f"oarlock.cli.{self._table[cmd_name][0]}.{cmd_name}")
        command = getattr(module, cmd_name)
        assert isinstance(command, click.Command)
        return command

    def format_commands(self, ctx: click.Context, formatter: click.HelpFormatter) -> None:
        with formatter.section("Commands"):
            formatter.write_dl([(name, line) for name, (_, line) in self._table.items()])

    def main(
        self,
        args: Sequence[str] | None = None,
        prog_name: str | None = None,
        complete_var: str | None = None,
        standalone_mode: bool = True,
        **extra: Any,
    ) -> Any:
        """Like click's, but a misuse is one line (exit 2), and the integer that a command returns is the exit code."""
        if not standalone_mode:
            return super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        open_what_is_closed()
        try:
            with as_before():  # a test calls one command after another
                result = super().main(args, prog_name, complete_var, standalone_mode=False, **extra)
        except click.exceptions.NoArgsIsHelpError as error:
            error.show()
            sys.exit(2)
        except click.UsageError as error:
            path = error.ctx.command_path if error.ctx is not None else "oarlock"
            say([f"{error.format_message().rstrip('.')}; see {path} --help"])
            sys.exit(2)
        except click.ClickException as error:
            error.show()
            sys.exit(error.exit_code)
        except (click.Abort, KeyboardInterrupt):
            sys.exit(130)
        except BrokenPipeError:  # whoever reads our output has closed it, such as `head`
            sys.stderr.close()
            sys.exit(141)
        except OSError as error:
            if not takes_no_more(error):
                raise
            drop_output()
            say([f"cannot write: {error.strerror}; make room, and try again"])
            sys.exit(1)
        sys.exit(result if isinstance(result, int) else 0)


@contextmanager
def _without_opentelemetry() -> Iterator[None]:
    """redis-py loads OpenTelemetry's SDK wherever it is installed, for metrics of its own that nobody here asks for: 60
    modules and 3 MB of each process. Our traces load what they need when they are asked for.
    """
    if "opentelemetry" in sys.modules:
        yield
        return
    sys.modules["opentelemetry"] = None  # type: ignore[assignment]  # an import of it fails, as if it were not there
    try:
        yield
    finally:
        sys.modules.pop("opentelemetry", None)
