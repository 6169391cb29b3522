"""`oarlock board`: a page that shows a running fleet."""

from __future__ import annotations

import os
import re
import socket
from pathlib import Path

import click
from aiohttp import web

from oarlock.cli.board.access import TOKEN_MIN, Access
from oarlock.cli.board.server import Board, Options
from oarlock.cli.look.view import Where, looking, verbose_option, where_options
from oarlock.cli.problems import InputProblem, say
from oarlock.cli.top.fleet import Fleet
from oarlock.cli.top.sources import metrics_addresses, metrics_option, rq_client, which_addresses
from oarlock.workers.metrics.serving.bind_address import REMEDY, BadBindAddress, listen, url

TOKEN_VARIABLE = "OARLOCK_BOARD_TOKEN"  # noqa: S105 - its name
STOP_WITHIN_S = 1.0
BIND_REMEDY = "give HOST:PORT that is free, such as 127.0.0.1:8088, or :8088 for all addresses"


@click.command(
    epilog="\b\nExamples:\n  oarlock board\n  oarlock board --bind :8088 --host board.example --path-prefix /oarlock\n"
    "  oarlock board --redis redis://metrics:secret@redis:6379/0 --metrics http://worker-0:8080\n"
    "  oarlock board --write --token-file token --redis redis://worker:secret@redis:6379/0"
)
@click.option(
    "--bind", default="127.0.0.1:8088", show_default=True, metavar="HOST:PORT", help="Where to serve; :8088 for all."
)
@click.option("--path-prefix", default="", metavar="/PATH", help="Serve below this path, for a proxy that keeps it.")
@click.option(
    "--host",
    "hosts",
    multiple=True,
    metavar="NAME",
    help="A name that browsers know this server by, besides localhost and addresses; can be repeated.",
)
@click.option("--write", is_flag=True, help="Let a page change something, with the token: requeue a key.")
@click.option(
    "--token-file",
    type=click.Path(path_type=Path),
    help=f"File with the token that a page has to give; or ${TOKEN_VARIABLE}. Without one everybody may look.",
)
@click.option(
    "--interval-s", type=click.FloatRange(0.2, 3_600), default=1.0, show_default=True, help="Seconds between looks."
)
@metrics_option
@where_options
@verbose_option
def board(
    bind: str,
    path_prefix: str,
    hosts: tuple[str, ...],
    write: bool,
    token_file: Path | None,
    interval_s: float,
    metrics_urls: tuple[str, ...],
    where: Where,
) -> None:
    """Serve a page that shows a running fleet, live: what keeps it from its work, queue depth and throughput, processes
    coming and going; keys, workers, failing and parked keys, namespaces, Redis; and of a key why nothing happens, its
    last turns, its traceback, its rollout. It looks once a second for all who watch, and not at all while nobody does.

    It only reads, as the user "metrics", unless it is started with --write and a token. Where there is a token, the
    page asks for it and shows nothing without it.
    """
    given = metrics_addresses(metrics_urls)
    prefix, token, names = _prefix(path_prefix), _token(token_file, write), _names(hosts)
    try:
        listening = listen(bind)
    except BadBindAddress as error:
        told = str(error).replace("--metrics-bind-address", "--bind")
        raise InputProblem(f"{told.removesuffix(REMEDY)}{BIND_REMEDY}") from None
    if not listening:
        raise InputProblem(f"--bind {bind!r} is no address; {BIND_REMEDY}")
    with looking(where, only_read=not write, needs_epoch=False) as views:
        fleet = Fleet(views, rq_client(views), which_addresses(given, where))
        options = Options(prefix, interval_s, write)
        app = Board(fleet, Access(names, token), options).app()
        _serve(app, listening[0], f"{url(listening[0])}{prefix}/")


def _serve(app: web.Application, listening: socket.socket, address: str) -> None:
    say([f"the board is at {address} ; Ctrl-C ends it"])
    web.run_app(app, sock=listening, print=None, access_log=None, shutdown_timeout=STOP_WITHIN_S)


def _prefix(text: str) -> str:
    """ "" or /path. Raises InputProblem."""
    prefix = text.rstrip("/")
    if prefix and not re.fullmatch(r"(/[A-Za-z0-9._~-]+)+", prefix):
        raise InputProblem(f"--path-prefix {text!r} is no path; write /oarlock, of letters, digits and . _ ~ -")
    return prefix


def _names(hosts: tuple[str, ...]) -> list[str]:
    """As browsers send them, without the dot at the end. Raises InputProblem for what no browser sends as a name."""
    for host in hosts:
        if not re.fullmatch(r"[A-Za-z0-9_-]+(\.[A-Za-z0-9_-]+)*\.?", host):
            raise InputProblem(f"--host {host!r} is no name; write board.example, without scheme, port and path")
    return [host.rstrip(".") for host in hosts]


def _token(file: Path | None, write: bool) -> str:
    """Raises InputProblem."""
    try:
        token = file.read_text().strip() if file is not None else os.environ.get(TOKEN_VARIABLE, "").strip()
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else "it is no text"
        raise InputProblem(f"--token-file {file}: it cannot be read: {reason}") from None
    given = f"--token-file {file}" if file is not None else TOKEN_VARIABLE
    if (token or file is not None) and not (len(token) >= TOKEN_MIN and token.isascii() and token.isprintable()):
        raise InputProblem(f"{given}: a token has {TOKEN_MIN} characters or more; make one with: openssl rand -hex 24")
    if write and not token:
        raise InputProblem(f"--write needs a token: give --token-file FILE, or set {TOKEN_VARIABLE}")
    return token
