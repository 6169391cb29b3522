"""--redis-tls-ca, --redis-tls-cert and --redis-tls-key: files for rediss://, of every command that opens a Redis."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, TypeVar

import click

from oarlock.broker.connection.tls import TlsFiles
from oarlock.cli.options.setting_options import given, with_flags
from oarlock.cli.problems import InputProblem
from oarlock.workers.process.settings import BadSetting, Settings

F = TypeVar("F", bound=Callable[..., Any])

_HELP = {
    "ca": "PEM file of the authorities to trust with rediss://. Default: the system's.",
    "cert": "PEM file of our certificate, where the Redis asks for one.",
    "key": "PEM file of its key. Default: in the file of the certificate.",
}


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value:
        given(context)[str(parameter.name)] = value


def tls_options(command: F) -> F:
    """The three, kept where ``tls_files`` and the settings find them."""
    for word, text in reversed(_HELP.items()):
        option = click.option(
            f"--redis-tls-{word}",
            f"redis_tls_{word}",
            metavar="FILE",
            envvar=f"OARLOCK_REDIS_TLS_{word.upper()}",
            expose_value=False,
            callback=_keep,
            help=text,
        )
        command = option(command)
    return command


def tls_files() -> TlsFiles:
    """Those of the command that runs, or of the environment. Raises InputProblem."""
    try:
        return with_flags(Settings.from_env()).redis_tls
    except BadSetting as error:
        raise InputProblem(str(error)) from None
