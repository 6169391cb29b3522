"""What a Redis URL says: one server, the master that Sentinels name, or a cluster.

    redis://user:password@host:6379/0                                    one server
    rediss://user:password@host:6379/0                                   the same with TLS
    unix://user:password@/path/to.sock?db=0                              the same on this machine
    redis+sentinel://user:password@host1:26379,host2:26379/mymaster/0    whichever server the Sentinels call the master
    redis+cluster://user:password@host1:6379,host2:6379/                 the master of the shard's slot

``rediss+sentinel`` and ``rediss+cluster`` speak TLS to every server named or found. The Sentinels' own password, where
they have one, is ``?sentinel_password=...`` (and ``?sentinel_user=...``): user and password in front are the server's.
"""

from __future__ import annotations

import re
from dataclasses import dataclass, field
from enum import StrEnum
from typing import NamedTuple
from urllib.parse import parse_qsl, unquote

LOOKS_LIKE = "redis://user:password@host:6379/0"
_PORTS = {"standalone": 6379, "sentinel": 26379, "cluster": 6379}


class BadRedisUrl(Exception):
    """The URL, or what goes with it, cannot be used; the text is one line with the mend."""


class Kind(StrEnum):
    """What answers at the URL."""

    STANDALONE = "standalone"
    SENTINEL = "sentinel"
    CLUSTER = "cluster"


@dataclass(frozen=True, slots=True)
class RedisUrl:
    """``places``: (host, port), in the order given; none for a Unix socket, which is ``path``. ``master``: its name."""

    kind: Kind
    tls: bool
    places: tuple[tuple[str, int], ...]
    path: str = ""
    username: str | None = None
    password: str | None = field(default=None, repr=False)
    db: int = 0
    master: str = ""
    sentinel_username: str | None = None
    sentinel_password: str | None = field(default=None, repr=False)

    @property
    def place(self) -> str:
        """Where it leads, for messages: never a password."""
        named = ",".join(f"[{host}]:{port}" if ":" in host else f"{host}:{port}" for host, port in self.places)
        return self.path or (f"{self.master} of {named}" if self.master else named)


def parse(url: str) -> RedisUrl:
    """Read a URL. Raises BadRedisUrl."""
    try:
        return _parse(url)
    except ValueError as error:
        why = str(error)
        if "@" in url and "://" not in url:
            why = "it begins with no redis://"
        elif _cut_short(url):
            why = CUT_SHORT  # the error would quote a part of the password
        why = _NAMED_SECRET.sub(r"\1***", why)
        raise BadRedisUrl(f"--redis {without_password(url)!r}: {why}; it looks like {LOOKS_LIKE}") from None


_NAMED_SECRET = re.compile(r"([^?&;/=]*pass[^?&;/=]*=)[^&;#'\"]+", re.IGNORECASE)
CUT_SHORT = "it ends before its @: write / ? # in a password as %2F %3F %23"


class _Parts(NamedTuple):
    scheme: str
    netloc: str
    path: str
    query: str


def _split(url: str) -> _Parts:
    """As urllib's urlsplit, whose newer versions refuse a list of hosts with an IPv6 address in it."""
    scheme, mark, rest = url.partition("://")
    if not mark:
        scheme, _, rest = url.partition(":") if ":" in url else ("", "", url)
    rest, _, query = rest.partition("#")[0].partition("?")
    netloc, slash, path = rest.partition("/") if mark else ("", "", rest)
    return _Parts(scheme.lower(), netloc, slash + path, query)


def _cut_short(url: str) -> bool:
    """Whether a sign in the password has ended what stands before the host."""
    return "@" in url and "@" not in _split(url).netloc


def without_password(url: str) -> str:
    """The same URL, fit to be shown. It may be one that cannot be used, with a password in a wrong place."""
    head, at, rest = url.rpartition("@")
    scheme, slashes, user = head.partition("://")
    shown = url
    if at and not slashes:
        shown = f"***@{rest}"
    elif at and ":" in user:
        shown = f"{scheme}{slashes}{user.partition(':')[0]}:***@{rest}"
    front, mark, options = shown.partition("?")
    hidden = mark and not re.fullmatch(r"db=\d*", options)
    return _NAMED_SECRET.sub(r"\1***", f"{front}?***" if hidden else shown)


def _parse(url: str) -> RedisUrl:
    parts = _split(url)
    scheme, _, suffix = parts.scheme.partition("+")
    if scheme not in ("redis", "rediss", "unix") or (suffix and (scheme == "unix" or suffix not in _PORTS)):
        raise ValueError(
            f"unknown scheme {parts.scheme!r}: redis, rediss (TLS), unix,"
            " or redis or rediss with +sentinel or +cluster behind it"
        )
    kind = Kind(suffix or "standalone")
    credentials, _, hosts = parts.netloc.rpartition("@")
    user, _, word = credentials.partition(":")
    username, password = unquote(user) or None, unquote(word) or None
    tls = scheme == "rediss"
    options = _options(parts.query, kind)
    if scheme == "unix":
        path = unquote(hosts + parts.path)
        if not path:
            raise ValueError("the path of the socket is missing")
        return RedisUrl(kind, False, (), path, username, password, _number(options.get("db", "0"), "database"))
    places = tuple(_place(each, _PORTS[kind]) for each in hosts.split(","))
    words = [unquote(word) for word in parts.path.split("/") if word]
    master = ""
    if kind is Kind.SENTINEL:
        if not words:
            raise ValueError("the name of the master is missing: redis+sentinel://user:password@host:26379/mymaster/0")
        master, *words = words
    elif kind is Kind.STANDALONE and len(places) > 1:
        raise ValueError("several servers need redis+sentinel:// or redis+cluster://")
    if len(words) > 1:
        raise ValueError(f"{words[1]!r} is one word too many behind the host")
    db = _number(words[0] if words else options.get("db", "0"), "database")
    if kind is Kind.CLUSTER and db:
        raise ValueError("a cluster has database 0 only")
    return RedisUrl(
        kind,
        tls,
        places,
        "",
        username,
        password,
        db,
        master,
        options.get("sentinel_user"),
        options.get("sentinel_password"),
    )


def _options(query: str, kind: Kind) -> dict[str, str]:
    known = {"sentinel_user", "sentinel_password"} if kind is Kind.SENTINEL else {"db"}
    options = dict(parse_qsl(query, keep_blank_values=True))
    for name in options:
        if name not in known:
            mend = "; TLS files are given by --redis-tls-ca, --redis-tls-cert, --redis-tls-key" if "ssl" in name else ""
            raise ValueError(f"unknown option {name!r}, known: {', '.join(sorted(known))}{mend}")
    return options


def _place(text: str, port: int) -> tuple[str, int]:
    host, given = text, ""
    if text.startswith("["):
        host, _, rest = text[1:].partition("]")
        address, _, zone = host.partition("%25")  # as a URL writes the % before a zone (RFC 6874)
        host = f"{address}%{zone}" if zone else host
        given = rest.removeprefix(":")
    elif ":" in text:
        host, _, given = text.partition(":")
    if not host:
        raise ValueError("a host is missing")
    number = _number(given, "port") if given else port
    if not 0 < number < 65_536:
        raise ValueError(f"{number} is no port")
    return host, number


def _number(text: str, what: str) -> int:
    if not text.isdecimal():
        raise ValueError(f"{text!r} is no {what}: it is a number")
    return int(text)
