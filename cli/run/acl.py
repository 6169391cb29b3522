"""`oarlock acl`: the users of the fleet's Redis, as its ACL file."""

from __future__ import annotations

import os
from collections.abc import Mapping
from pathlib import Path

import click

from oarlock.broker.connection.acl import SERVERS, USERS, acl_file
from oarlock.cli.problems import InputProblem

LEAST_LENGTH = 16
"""Redis stores a password as one SHA-256, from which a short password or a word can be guessed."""


@click.command(
    epilog="\b\nExamples:\n  oarlock acl --passwords /run/secrets/redis --file /etc/redis/users.acl\n"
    "  OARLOCK_INGESTOR_PASSWORD=... OARLOCK_WORKER_PASSWORD=... OARLOCK_METRICS_PASSWORD=... \\\n"
    "    OARLOCK_ADMIN_PASSWORD=... oarlock acl > users.acl\n"
    "\b\nThen in redis.conf: aclfile /etc/redis/users.acl (docs/redis.md)."
)
@click.option(
    "--passwords",
    type=click.Path(path_type=Path, exists=True, file_okay=False),
    help="A directory with a file for each user, named like it. Default: OARLOCK_<USER>_PASSWORD.",
)
@click.option("--file", "path", type=click.Path(path_type=Path, dir_okay=False), help="Default: standard output.")
def acl(passwords: Path | None, path: Path | None) -> None:
    """Write the ACL file of the fleet's Redis: ingestor, worker, metrics and admin, each with its own rights.

    The users replica and sentinel are added where they have a password: for servers with replicas. The file holds
    digests of the passwords only. The default user is switched off.
    """
    given = {user: _from_file(passwords, user) if passwords else _from_env(user) for user in (*USERS, *SERVERS)}
    text = acl_file(_checked(given, f"--passwords {passwords}" if passwords else ""))
    if path is None:
        click.echo(text, nl=False)
        return
    try:
        _write(path, text)
    except OSError as error:
        raise InputProblem(f"--file {path} cannot be written: {error.strerror}") from None


def _from_file(folder: Path, user: str) -> str:
    try:
        return (folder / user).read_text().removesuffix("\n")
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as error:
        raise InputProblem(f"--passwords {folder}: the file {user} cannot be read: {error}") from None


def _from_env(user: str) -> str:
    return os.environ.get(_variable(user), "")


def _variable(user: str) -> str:
    return f"OARLOCK_{user.upper()}_PASSWORD"


def _checked(given: Mapping[str, str], folder: str) -> dict[str, str]:
    """The passwords that are set. Raises InputProblem with a line for each missing or weak password."""
    problems = []
    for user, password in given.items():
        where = f"{folder}: the file {user}" if folder else _variable(user)
        if not password and user in USERS:
            problems.append(f"{where} is missing or empty: it holds the password of the user {user}")
        elif password and (len(password) < LEAST_LENGTH or not password.isprintable() or " " in password):
            problems.append(f"{where}: a password has {LEAST_LENGTH} signs or more and no blanks; openssl rand -hex 24")
    if problems:
        raise InputProblem(*problems)
    return {user: password for user, password in given.items() if password}


def _write(path: Path, text: str) -> None:
    """Write the file completely or not at all, readable by its owner only."""
    draft = path.with_name(f"{path.name}.{os.getpid()}")
    try:
        with os.fdopen(os.open(draft, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600), "w") as file:
            file.write(text)
        draft.rename(path)
    finally:
        draft.unlink(missing_ok=True)
