"""A script's header is its contract; unread headers go stale, so they are compared with the text."""

from __future__ import annotations

import hashlib
import re
from pathlib import Path

import pytest

from oarlock import broker
from oarlock.broker import epoch, keys
from oarlock.broker.connection.client import connect
from oarlock.broker.steps import script_texts
from oarlock.sandbox.redis import redis_binary
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.broker import lua_reading
from tests.broker.broker_servers import server_binaries

every_script = pytest.mark.parametrize("name", script_texts.NAMES)
PARTS = (
    *("prelude", "cache", "changes", "queue", "lanes", "locks", "reads", "history", "pauses", "audit", "summary"),
    *("wakings", "waiters", "scopes", "weights", "limits", "returns"),
)

# What the scripts may call: commands of Redis 6.2 or older. A new one is added here with the version it came with.
_COMMANDS = """
    INFO GET SET INCRBY TIME PEXPIRE DEL UNLINK EXISTS
    HGET HSET HSETNX HDEL HLEN HKEYS HMGET HGETALL HEXISTS HINCRBY HSCAN
    SADD SREM SCARD SMEMBERS SISMEMBER SSCAN
    ZADD ZINCRBY ZREM ZCARD ZCOUNT ZSCORE ZRANGE ZRANGEBYSCORE ZREVRANGEBYSCORE ZRANGEBYLEX
    ZREMRANGEBYSCORE ZREMRANGEBYRANK
    LPUSH RPUSH LPOP LLEN LINDEX LSET
    XADD XLEN XRANGE XREADGROUP XTRIM XDEL XGROUP
"""
COMMANDS = set(_COMMANDS.split())


def table_name(pattern: str) -> str:
    """A pattern of ``keys.TABLE`` as the headers spell it."""
    return pattern.replace("<holder>", "name").replace("<", "").replace(">", "")


def test_every_file_is_a_script_or_a_part() -> None:
    folder = Path(broker.__file__).with_name("scripts")
    assert {path.stem for path in folder.glob("*.lua")} == set(script_texts.NAMES)
    assert {path.stem for path in folder.glob("lib/*.lua")} == set(PARTS)


@every_script
def test_the_header_is_complete(name: str) -> None:
    head = lua_reading.header(name)
    assert script_texts.source(name).startswith(f"-- {name}: ")
    assert head["KEYS"][0] == "[1] epoch  KEYS[2] base"
    for word in ("Returns", "Invariant"):
        assert len(head[word]) == 1, word
        assert head[word][0], word
    assert "STALE" in script_texts.source(name).partition("\nlocal")[0], "every script may answer STALE"


@every_script
def test_every_argument_is_listed(name: str) -> None:
    """ARGV[n] as used at the top of the body, and the open end where there is one."""
    text = script_texts.source(name)
    comments = "\n".join(line for line in text.splitlines() if line.startswith("-- ARGV"))
    listed = {int(number) for number in re.findall(r"ARGV\[(\d+)(?:\.\.)?\]", comments)}
    body = lua_reading.code_of(text)
    used = {int(number) for number in re.findall(r"ARGV\[(\d+)\]", body)}
    assert used <= listed | {max(listed, default=0)}
    assert listed == set(range(1, len(listed) + 1)) or name == "finish"


@every_script
def test_derived_keys_are_those_used(name: str) -> None:
    derived = [key for line in lua_reading.header(name).get("DERIVED", []) for key in line.split()]
    assert len(derived) == len(set(derived)), "named twice"
    assert set(derived) == lua_reading.keys_used(name)


@every_script
def test_every_key_is_in_the_table(name: str) -> None:
    assert lua_reading.keys_used(name) <= {table_name(spec.pattern) for spec in keys.TABLE}


def test_the_type_check_covers_every_key_that_moves_a_key() -> None:
    """Redis does not roll back: whatever a step writes after it took a key out of somewhere must be of its type."""
    checked = lua_reading.keys_in(lua_reading.functions("lib/queue")["check"])
    per_queue = {table_name(spec.pattern) for spec in keys.TABLE if spec.pattern.startswith("<queue>")}
    of_claim_alone = {"queue:rate", "queue:passed"}  # read before it writes (test_rate_contract); for people
    assert checked == per_queue - {"queue:expect:key"} - of_claim_alone | {"leases", "waiters", "timer"}


@pytest.mark.parametrize("name", ["add", "add_after", "announce", "finish", "release", "reclaim", "due", "ingest"])
def test_types_are_checked(name: str) -> None:
    """Before the first write of the body. claim reads, or measures, all it will write; test_bad_servers tries both."""
    body = lua_reading.code_of(script_texts.source(name))
    first_write = re.search(r"redis\.call\('(?:HSET|HDEL|ZADD|ZREM|XADD|XREADGROUP|DEL|SET)'", body)
    assert "check(" in (body[: first_write.start()] if first_write else body)


def test_what_a_repetition_compares_with_is_written_last() -> None:
    """A batch is repeated after a failure in its midst; then an object already written counts as unchanged."""
    body = lua_reading.code_of(script_texts.source("ingest"))
    rest = body[body.index("local same =") :]
    steps = ("add_all(", "log_change(", "reindex(", "redis.call('HSET', objects", "redis.call('HDEL', objects")
    places = [rest.index(step) for step in (*steps, "watermarks, resource, to)")]
    assert places == sorted(places)
    assert all(rest.count(step) == 1 for step in steps)


def test_every_key_of_the_table_is_used() -> None:
    used = set().union(*(lua_reading.keys_used(name) for name in script_texts.NAMES))
    set_in_python = {"run", "fleet", "shadow:queue", "shadow_windows", "shadow_differences"}
    assert {table_name(spec.pattern) for spec in keys.TABLE} - used == set_in_python


@every_script
def test_needs_name_the_parts_called(name: str) -> None:
    assert set(script_texts.parts_of(name)) == lua_reading.parts_called(name)


@every_script
def test_only_commands_of_old_servers(name: str) -> None:
    assert lua_reading.commands_used(name) <= COMMANDS


@pytest.mark.parametrize("name", [*script_texts.NAMES, *(f"lib/{part}" for part in PARTS)])
def test_no_line_that_old_servers_refuse(name: str) -> None:
    """#!lua is a compile error on 6.2; goto and // are not of Lua 5.1; redis.setresp is not in fakeredis."""
    text = script_texts.source(name)
    assert "#!" not in text
    assert not re.search(r"\bgoto\b|[^:]//|redis\.setresp|cjson|cmsgpack|\bloadstring\b", lua_reading.code_of(text))
    assert all(len(line) <= 160 for line in text.splitlines())
    assert text.endswith("\n")


SCRIPTS_OF_PROTOCOL = {
    2: "a11333e43557d855cd7f0d582577c61298ac2388ac3a848c67d559f59cb03c4d",
    3: "f8d92c1cfa4ab53835e06316bea5f42ccedb38f155d625ec34714e2ac14cd118",
    4: "f83f66cfc4fdde15b371b9f5ffdb6b850289fae2dca6e31e113faf2785b55504",
}
"""SHA-256 of the texts of all scripts, by the protocol they speak.

That of 4, which no release has yet, was taken anew time and again: when comments and local names changed; when
expectations with an open write or an answered delete came to live for eight days and a finish to ask whose a hash is;
when an answered scale came to live as long; when a claim came to take a rate; when keys came to remember what queued
them and their turns, and came to be paused; when pauses came to end by themselves, workers to be drained and acts to be
told; when ingestors came to say what they hear, and a release how its holder ended; when pods came to be counted by
class; when the newest turns of a key came to lie apart; when a claim came to cost less; when a budget came to be lent;
when keys that find the front of their queue full came to wait in a backlog, and there in lanes; when a claim came to
hand over less of a key at rest, and scripts came without the functions that they do not call; when each queue came to
have a wake list; when namespaces came to have rates, and they and controllers weights; when what the pods of a class
have in common came to lie with the class; when an ingest came to be exact on demand; when lanes came to be four; when a
claim beside turns came to say that others wait; when a finish came to look first at what is to wait for the cache. Of
what there was the wake list and the values of pods did change, and of the results that of a claim.
"""


def test_a_script_changes_with_the_protocol_only() -> None:
    """A fleet may run two versions at once; only the protocol's number keeps their scripts apart."""
    text = "\n".join(script_texts.stamped(name, 0) for name in script_texts.NAMES)
    digest = hashlib.sha256(text.encode()).hexdigest()
    assert SCRIPTS_OF_PROTOCOL.get(keys.PROTOCOL) == digest, (
        f"the scripts are not those of protocol {keys.PROTOCOL}: raise PROTOCOL in broker/keys.py by one, unless no"
        f" release has this number yet, and write {{number: {digest!r}}} into SCRIPTS_OF_PROTOCOL"
    )


@every_script
def test_the_released_text(name: str) -> None:
    """Epoch and protocol are in the text itself, the clock is Redis's own, and no mark is left unstamped."""
    text = script_texts.stamped(name, 4711)
    assert "local EPOCH = '4711'" in text
    assert f"protocol {keys.PROTOCOL}" in text
    assert (script_texts.REDIS_TIME in text) == ("now_ms()" in text)
    assert "@" not in text
    assert "test" not in text
    assert "clock" not in text
    first = [line for line in text.splitlines() if line.strip()][1]
    assert first == "if redis.call('GET', KEYS[1]) ~= EPOCH then return {'STALE'} end"
    assert script_texts.sha(name, 4711) != script_texts.sha(name, 4712)
    assert len(script_texts.sha(name, 4711)) == 40


def test_a_clock_of_a_test_is_another_text() -> None:
    ours = script_texts.stamped("claim", 1, "return 5")
    assert "return 5" in ours
    assert script_texts.sha("claim", 1, "return 5") != script_texts.sha("claim", 1)


@pytest.mark.parametrize("binary", server_binaries(), ids=str)
def test_every_server_compiles_them(binary: redis_binary.ServerBinary, tmp_path: Path) -> None:
    """SCRIPT LOAD compiles; the SHA is the one EVALSHA is called with; the commands exist."""
    with EmbeddedRedis(tmp_path / "redis", binary=binary) as server:
        ingestor = connect(server.url("ingestor"))
        for name in script_texts.NAMES:
            assert ingestor.script_load(script_texts.stamped(name, 7)) == script_texts.sha(name, 7)
        epoch.bootstrap(ingestor, 7)
        known = connect(server.url("admin")).execute_command("COMMAND INFO", *sorted(COMMANDS))
        assert len(known) == len(COMMANDS)
        assert None not in known
