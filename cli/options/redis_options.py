"""--redis and the TLS files, and the client that they lead to: of a Redis that answers and can be used."""

from __future__ import annotations

import os
from dataclasses import dataclass, replace
from pathlib import Path

import click
import redis
from redis.exceptions import AuthenticationError, InvalidResponse, NoPermissionError, RedisError, ResponseError
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker.connection import fitness
from oarlock.broker.connection.client import BadRedisUrl, connect
from oarlock.broker.connection.redis_url import Kind, parse, without_password
from oarlock.cli.options.options import together
from oarlock.cli.options.setting_options import given, settings_in_force
from oarlock.cli.options.which_up import found_up
from oarlock.cli.problems import InputProblem
from oarlock.sandbox.up.state_dir import StateDir, StateDirUnusable
from oarlock.workers.process.settings import Settings

DEFAULT_REDIS_URL = Settings().redis_url

_TLS_HELP = {
    "ca": "PEM file of the authorities to trust with rediss://. Default: the system's.",
    "cert": "PEM file of our certificate, where the Redis asks for one.",
    "key": "PEM file of its key. Default: in the file of the certificate.",
}


def _keep(context: click.Context, parameter: click.Parameter, value: str | None) -> None:
    if value:
        given(context)[str(parameter.name)] = value


tls_options = together(
    *(
        click.option(
            f"--redis-tls-{word}",
            f"redis_tls_{word}",
            metavar="FILE",
            envvar=f"OARLOCK_REDIS_TLS_{word.upper()}",
            expose_value=False,
            callback=_keep,
            help=text,
        )
        for word, text in _TLS_HELP.items()
    )
)
"""--redis-tls-ca, --redis-tls-cert and --redis-tls-key, which become settings."""

redis_option = together(
    click.option(
        "--redis",
        "redis_url",
        metavar="URL",
        envvar="OARLOCK_REDIS_URL",
        help="redis://user:password@host:6379/0, rediss:// with TLS, unix:///path,"
        " redis+sentinel://user:password@host:26379,host:26379/mymaster/0, redis+cluster://user:password@host:6379/."
        f" Default: that of the running `oarlock up`, else {DEFAULT_REDIS_URL}.",
    ),
    tls_options,
)
"""--redis, and the files for TLS."""


@dataclass(frozen=True, slots=True)
class Source:
    """A Redis URL and where it came from, for messages."""

    url: str
    given_by: str
    shards: int = 1
    """The number of shards of the `oarlock up` that runs on it."""
    found: str = ""
    """What was found, if nothing was named: "`oarlock up` in DIR" or "Redis at HOST:PORT"."""
    up: StateDir | None = None
    """The `oarlock up` that was found."""

    @property
    def from_user(self) -> bool:
        """Whether a person wrote the URL, not an `oarlock up`."""
        return self.given_by in ("--redis", "OARLOCK_REDIS_URL")

    @property
    def place(self) -> str:
        """Host and port, or the socket; never the password."""
        try:
            return parse(self.url).place
        except BadRedisUrl:
            return "?"


def redis_source(redis_url: str | None, state_dir: Path | None, *, only_read: bool = False) -> Source:
    """--redis (or its environment variable), else --state-dir, else the running `oarlock up`, else localhost.

    ``only_read``: of an `oarlock up` take the user that may only read. Raises InputProblem.
    """
    if redis_url is not None:
        given = "OARLOCK_REDIS_URL" if os.environ.get("OARLOCK_REDIS_URL") == redis_url else "--redis"
        return Source(redis_url, given)
    if state_dir is not None:
        try:
            source = _source_of(StateDir(state_dir), state_dir, only_read)
        except StateDirUnusable as error:
            raise InputProblem(f"{error}; start one with: oarlock up --state-dir {state_dir}") from None
        if not StateDir(state_dir).owner_pid():
            raise InputProblem(f"--state-dir {state_dir}: its `oarlock up` is gone; start one there again")
        return source
    state = found_up()
    if state is None:
        place = parse(DEFAULT_REDIS_URL).place
        return Source(DEFAULT_REDIS_URL, "", found=f"Redis at {place}")
    try:
        return replace(_source_of(state, state.root, only_read), found=f"`oarlock up` in {state.root}", up=state)
    except StateDirUnusable:
        raise InputProblem(f"the `oarlock up` in {state.root} is still starting; ask again") from None


def _source_of(state: StateDir, named: Path, only_read: bool) -> Source:
    url, shards = state.read_redis_url(only_read=only_read), int(state.read_up().get("shards", 1))
    return Source(url, f"--state-dir {named}", shards)


def open_redis(source: Source, *, timeout_s: float = 4.0, shard: str = "0", for_data: bool = False) -> redis.Redis:
    """A client of a Redis that was checked. ``for_data``: also for whether the fleet may keep its data there.

    Raises InputProblem with one line that names the input and the remedy.
    """
    given, place = source.given_by or "--redis was not given", source.place
    tls = settings_in_force().redis_tls
    try:
        url = parse(source.url)
        if tls and not url.tls and source.from_user:
            raise BadRedisUrl(
                f"--redis {without_password(source.url)!r} does not speak TLS, for which --redis-tls-... was given:"
                " write rediss:// in place of redis://, or leave the files out"
            )
        client = connect(source.url, timeout_s=timeout_s, shard=shard, tls=tls)
    except BadRedisUrl as error:
        told = str(error)
        renamed = told.startswith("--redis ") and given != "--redis"
        raise InputProblem(told.replace("--redis", given, 1) if renamed else told) from None
    try:
        client.ping()
        (fitness.check_for_data if for_data else fitness.check)(client, url)
    except fitness.UnfitServer as error:
        raise InputProblem(f"{given}: the Redis at {place} cannot be used: {error}") from None
    except AuthenticationError as error:
        said = " ".join(str(error).split()).rstrip(".")
        mend = "put the right ones into the URL: redis://user:password@host:port/0"
        if url.kind is Kind.SENTINEL:
            mend = "those before the @ are the servers'; the Sentinels' own are ?sentinel_user= and sentinel_password="
        raise InputProblem(f"{given}: the Redis at {place} refuses the user or password ({said}); {mend}") from None
    except NoPermissionError as error:
        raise InputProblem(f"{given}: the Redis at {place} lets this user in but not do this: {error}") from None
    except (RedisConnectionError, RedisTimeoutError) as error:
        reason = _reason(error)
        usual = "is it running? `oarlock up` starts one" if not source.given_by else "is it running, and the URL right?"
        mend = next((told for sign, told in _MENDS.items() if sign in reason), usual)
        raise InputProblem(f"{given}: no Redis answers at {place} ({reason}); {mend}") from None
    except (InvalidResponse, ResponseError) as error:
        mend = "give the URL of a Redis"
        if "NOAUTH" in str(error):
            mend = "put user and password into the URL: redis://user:password@host:port/0"
        elif "DB index" in str(error):
            mend = "use database 0: redis://.../0"
        raise InputProblem(f"{given}: the server at {place} says: {error}; {mend}") from None
    except (RedisError, OSError, ValueError) as error:
        raise InputProblem(f"{given}: the server at {place} cannot be used: {error}") from None
    return client


_MENDS = {
    "max number of clients": "raise its maxclients, or end connections that nobody needs (CLIENT LIST)",
    "unknown command 'SENTINEL'": "no Sentinel is there: give the port of one, usually 26379, or redis:// for a server",
    "cluster support disabled": "it is no cluster: write redis:// in place of redis+cluster://",
    "knows no master": "write the name that `sentinel monitor` in its configuration gives the master into the URL",
    "Hostname mismatch": "its certificate is for another name: write that one into the URL",
    "IP address mismatch": "its certificate is not for this address: write a name it is for into the URL",
    "CERTIFICATE_VERIFY_FAILED": "name the authority that signed its certificate: --redis-tls-ca FILE",
    "certificate required": "it asks for a certificate of ours: --redis-tls-cert FILE --redis-tls-key FILE",
    "unknown ca": "it does not know the authority of our certificate: give another with --redis-tls-cert",
    "WRONG_VERSION_NUMBER": "it does not speak TLS there: is it another port, or redis:// in place of rediss://?",
    "EOF occurred": "it hung up: does it ask for a certificate of ours, or not know the authority of the one given?",
    "Connection closed by server": "it hung up: does it speak TLS (rediss://) and ask for a certificate of ours?",
    "Connection reset": "it hung up: does it speak TLS (rediss://) and ask for a certificate of ours?",
}


def _reason(error: Exception) -> str:
    """The error without redis-py's prefix, which repeats host and port."""
    text = " ".join(str(error).split()).rstrip(".")
    for mark in (". ", ": "):
        if text.startswith("Error ") and mark in text:
            text = text.partition(mark)[2] or text
    return text
