"""URLs of each kind, and what is wrong with others."""

from __future__ import annotations

import pytest

from oarlock.broker.connection.redis_url import BadRedisUrl, Kind, RedisUrl, parse, without_password

READ = {
    "redis://h": RedisUrl(Kind.STANDALONE, False, (("h", 6379),)),
    "redis://u:p%40ss@h:1/2": RedisUrl(Kind.STANDALONE, False, (("h", 1),), "", "u", "p@ss", 2),
    "redis://:p@h/?db=3": RedisUrl(Kind.STANDALONE, False, (("h", 6379),), "", None, "p", 3),
    "rediss://[::1]:7/0": RedisUrl(Kind.STANDALONE, True, (("::1", 7),)),
    "redis://u:p@[fe80::1%25eth0]:7/0": RedisUrl(Kind.STANDALONE, False, (("fe80::1%eth0", 7),), "", "u", "p"),
    "redis+sentinel://[fe80::1%eth0],[fe80::2%251]:7/m": RedisUrl(
        Kind.SENTINEL, False, (("fe80::1%eth0", 26379), ("fe80::2%1", 7)), master="m"
    ),
    "unix://u:p@/run/redis.sock?db=1": RedisUrl(Kind.STANDALONE, False, (), "/run/redis.sock", "u", "p", 1),
    "unix:///run/a%20b.sock": RedisUrl(Kind.STANDALONE, False, (), "/run/a b.sock"),
    "redis+sentinel://u:p@a:1,b/mymaster/4": RedisUrl(
        Kind.SENTINEL, False, (("a", 1), ("b", 26379)), "", "u", "p", 4, "mymaster"
    ),
    "rediss+sentinel://a/m?sentinel_user=s&sentinel_password=t": RedisUrl(
        Kind.SENTINEL, True, (("a", 26379),), "", None, None, 0, "m", "s", "t"
    ),
    "redis+cluster://u:p@a:1,b:2,[::1]/": RedisUrl(
        Kind.CLUSTER, False, (("a", 1), ("b", 2), ("::1", 6379)), "", "u", "p"
    ),
    "rediss+cluster://a/0": RedisUrl(Kind.CLUSTER, True, (("a", 6379),)),
}
REFUSED = {
    "http://h": "unknown scheme 'http'",
    "unix+cluster:///x": "unknown scheme",
    "redis+ring://h": "unknown scheme",
    "redis://": "a host is missing",
    "redis://h:port/0": "'port' is no port",
    "redis://h:70000": "70000 is no port",
    "redis://h/zero": "'zero' is no database",
    "redis://a,b/0": "several servers need redis+sentinel:// or redis+cluster://",
    "redis://h/0/1": "one word too many",
    "redis://h?retry_on_timeout=yes": "unknown option 'retry_on_timeout', known: db",
    "rediss://h?ssl_ca_certs=/x": "--redis-tls-ca",
    "unix://": "the path of the socket is missing",
    "redis+sentinel://h": "the name of the master is missing",
    "redis+sentinel://h/m/0/1": "one word too many",
    "redis+cluster://h/1": "a cluster has database 0 only",
    "redis+cluster://a,,b/": "a host is missing",
}


@pytest.mark.parametrize("url", READ)
def test_what_a_url_says(url: str) -> None:
    assert parse(url) == READ[url]


@pytest.mark.parametrize("url", REFUSED)
def test_what_is_wrong_is_one_line_without_the_password(url: str) -> None:
    secret = url.replace("://", "://user:secret@", 1) if not url.startswith("unix") else url
    with pytest.raises(BadRedisUrl) as caught:
        parse(secret)
    told = str(caught.value)
    assert REFUSED[url] in told
    assert told.startswith("--redis '")
    assert "\n" not in told
    assert "secret" not in told


@pytest.mark.parametrize("sign", ["/", "?", "#", "/0/"])
@pytest.mark.parametrize(
    "form", ["redis://user:s3cr{}et@h:1/0", "redis://:s3cr{}et@h/0", "redis+cluster://u:s3cr{}et@h"]
)
def test_a_password_with_a_sign_that_ends_it_is_not_shown_in_parts(form: str, sign: str) -> None:
    url = form.format(sign)
    with pytest.raises(BadRedisUrl, match="%2F %3F %23") as refused:
        parse(url)
    assert "s3cr" not in str(refused.value)
    assert "et@" not in str(refused.value)


def test_a_url_that_was_read_does_not_tell_its_passwords() -> None:
    told = repr(parse("redis+sentinel://u:s3cret@h/m/0?sentinel_user=s&sentinel_password=s3cret"))
    assert "s3cret" not in told


def test_what_may_be_shown() -> None:
    assert without_password("redis+sentinel://u:p@a,b/m?sentinel_password=x") == "redis+sentinel://u:***@a,b/m?***"
    assert without_password("redis://h/0") == "redis://h/0"
    assert parse("redis+sentinel://u:p@a:1,b:2/m").place == "m of a:1,b:2"
    assert parse("unix://u:p@/run/x").place == "/run/x"


@pytest.mark.parametrize("word", ["a[b", "a]b", "[::1]", "a,b", "a:b"])
def test_other_signs_may_stand_in_a_password(word: str) -> None:
    assert parse(f"redis+cluster://u:{word}@h:1,[::1]:2/").password == word
    assert parse(f"redis://:{word}@h/3").places == (("h", 6379),)


@pytest.mark.parametrize(
    "url",
    [
        "redis+sentinel://:hidden@a:26379/m/0?sentinel_pasword=hidden",
        "redis+sentinel://:hidden@a:26379/m/0;sentinel_password=hidden",
        "redis+sentinel://a:26379/m?password=hidden",
        "redis://h:6379/0?x=hidden",
        ":hidden@a:6379",
        "hidden@a:6379",
        "user:hidden@a:6379/0",
        "redis:user:hidden@a:6379/0",
    ],
)
def test_no_password_is_told_of_a_url_that_cannot_be_used(url: str) -> None:
    assert "hidden" not in without_password(url)
    with pytest.raises(BadRedisUrl) as told:
        parse(url)
    assert "hidden" not in str(told.value)


def test_a_url_without_a_scheme_is_told_that() -> None:
    with pytest.raises(BadRedisUrl, match=r"'\*\*\*@a:6379': it begins with no redis://; it looks like redis://user"):
        parse(":hidden@a:6379")


def test_the_database_of_a_socket_is_shown() -> None:
    assert without_password("unix://u:p@/a.sock?db=3") == "unix://u:***@/a.sock?db=3"
