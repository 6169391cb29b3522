"""Scripts go over one kept connection: whatever happens to it, no call gets another's answer, none is sent twice."""

from __future__ import annotations

import os
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any
from unittest.mock import Mock

import pytest
import redis
from redis.exceptions import ConnectionError as RedisConnectionError
from redis.exceptions import NoScriptError, ResponseError
from redis.exceptions import TimeoutError as RedisTimeoutError

from oarlock.broker.connection import client as client_module
from oarlock.broker.connection.client import RunGuard, connect, in_one_go, send
from oarlock.broker.values.errors import EpochOver
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.broker.broker_servers import held

COUNT = "return redis.call('INCR', KEYS[1])"
SLOW = "redis.call('SET', 'slow', 'done') return 'slow'"
"""Slow, where the server is held."""


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    with EmbeddedRedis(tmp_path_factory.mktemp("kept") / "redis") as running:
        yield running


def connected(admin: redis.Redis, server: EmbeddedRedis) -> redis.Redis:
    """A client that does not wait for long, and has its connection."""
    client = connect(server.url("admin"), timeout_s=0.3)
    assert client.execute_command("EVALSHA", admin.script_load("return 1"), 0) == 1
    return client


@pytest.fixture
def admin(server: EmbeddedRedis) -> redis.Redis:
    client = connect(server.url("admin"))
    client.flushall()
    return client


def test_one_connection_serves_all_calls(admin: redis.Redis, server: EmbeddedRedis) -> None:
    sha = admin.script_load(COUNT)
    client = connect(server.url("admin"))
    assert [client.execute_command("EVALSHA", sha, 1, "n") for _ in range(3)] == [1, 2, 3]
    assert len([each for each in admin.client_list() if each["cmd"] == "evalsha"]) == 1


def test_a_connection_that_was_closed_is_replaced_before_anything_is_sent(
    admin: redis.Redis, server: EmbeddedRedis
) -> None:
    sha = admin.script_load(COUNT)
    client = connect(server.url("admin"))
    assert client.execute_command("EVALSHA", sha, 1, "n") == 1
    (kept,) = [each for each in admin.client_list() if each["cmd"] == "evalsha"]
    admin.client_kill_filter(_id=kept["id"])
    assert client.execute_command("EVALSHA", sha, 1, "n") == 2
    assert admin.get("n") == b"2"


def test_the_new_connection_proves_itself(admin: redis.Redis, server: EmbeddedRedis) -> None:
    guard = RunGuard()
    sha = admin.script_load(COUNT)
    client = connect(server.url("admin"), guard=guard)
    assert client.execute_command("EVALSHA", sha, 1, "n") == 1
    (kept,) = [each for each in admin.client_list() if each["cmd"] == "evalsha"]
    guard.expected = "another run"
    admin.client_kill_filter(_id=kept["id"])
    with pytest.raises(EpochOver):
        client.execute_command("EVALSHA", sha, 1, "n")
    assert admin.get("n") == b"1"


def test_an_answer_nobody_waited_for_is_nobody_s(admin: redis.Redis, server: EmbeddedRedis) -> None:
    slow, count = admin.script_load(SLOW), admin.script_load(COUNT)
    client = connected(admin, server)
    with held(server.pid), pytest.raises(RedisTimeoutError):
        client.execute_command("EVALSHA", slow, 0)
    while admin.get("slow") != b"done":
        pass
    assert client.execute_command("EVALSHA", count, 1, "n") == 1


def test_an_exception_that_breaks_in_leaves_no_answer_behind(
    admin: redis.Redis, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Such as a death penalty, between the sending and the reading."""
    sha = admin.script_load(COUNT)
    client = connect(server.url("admin"))
    assert client.execute_command("EVALSHA", sha, 1, "n") == 1
    connection = client._kept  # type: ignore[attr-defined]

    def struck(*_: object, **__: object) -> None:
        raise KeyboardInterrupt

    with monkeypatch.context() as patched:
        patched.setattr(connection, "read_response", struck)
        with pytest.raises(KeyboardInterrupt):
            client.execute_command("EVALSHA", sha, 1, "n")
    assert client.execute_command("EVALSHA", sha, 1, "n") == 3


def test_an_error_is_an_answer(admin: redis.Redis, server: EmbeddedRedis) -> None:
    client = connect(server.url("admin"))
    sha = admin.script_load(COUNT)
    client.execute_command("EVALSHA", sha, 1, "n")
    before = client._kept.__dict__["_sock"]  # type: ignore[attr-defined]
    with pytest.raises(NoScriptError):
        client.execute_command("EVALSHA", "0" * 40, 0)
    admin.set("word", "x")
    with pytest.raises(ResponseError):
        client.execute_command("EVALSHA", sha, 1, "word")
    assert client.execute_command("EVALSHA", sha, 1, "n") == 2
    assert client._kept.__dict__["_sock"] is before  # type: ignore[attr-defined]


def test_a_client_that_was_closed_holds_no_connection(admin: redis.Redis, server: EmbeddedRedis) -> None:
    client = connect(server.url("admin"))
    send(client, [("PING",), ("GET", "n")])()
    in_one_go(client, [("GET", "n")])
    pooled = client.connection_pool.get_connection()
    client.connection_pool.release(pooled)
    kept = client._kept  # type: ignore[attr-defined]
    client.close()
    assert (kept._sock, pooled._sock) == (None, None)
    assert in_one_go(client, [("GET", "n")]) == [None], "it may be used again"


def test_several_calls_go_out_together(
    admin: redis.Redis, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch
) -> None:
    """An error in place of one answer leaves the others theirs."""
    client, count = connect(server.url("admin")), ("EVALSHA", admin.script_load(COUNT), 1, "n")
    assert client.execute_command(*count) == 1
    kept, sent = client._kept, list[object]()  # type: ignore[attr-defined]
    send = kept.send_packed_command

    def sending(*args: object, **options: object) -> None:
        sent.append(args)
        send(*args, **options)

    monkeypatch.setattr(kept, "send_packed_command", sending)
    first, unknown, last = in_one_go(client, [count, ("EVALSHA", "0" * 40, 0), count])
    assert (first, last, len(sent)) == (2, 3, 1)
    assert isinstance(unknown, NoScriptError)
    assert client.execute_command(*count) == 4


def test_where_an_answer_does_not_come_those_after_it_do_not_either(admin: redis.Redis, server: EmbeddedRedis) -> None:
    slow, count = ("EVALSHA", admin.script_load(SLOW), 0), ("EVALSHA", admin.script_load(COUNT), 1, "n")
    client = connected(admin, server)
    with held(server.pid), pytest.raises(RedisTimeoutError):
        in_one_go(client, [count, slow])
    client = connected(admin, server)
    with held(server.pid), pytest.raises(RedisTimeoutError):
        in_one_go(client, [slow, count])
    while admin.get("n") != b"2":  # the second one comes behind all else
        pass
    assert client.execute_command(*count) == 3


def test_many_commands_are_asked_over_it(admin: redis.Redis, server: EmbeddedRedis) -> None:
    sha = admin.script_load(COUNT)
    client = connect(server.url("admin"))
    admin.hset("hash", mapping={"a": 1, "b": 2})
    assert in_one_go(client, [("SET", "word", "x"), ("HMGET", b"hash", b"a", "z"), ("HGETALL", "hash")]) == [
        b"OK",
        [b"1", None],
        [b"a", b"1", b"b", b"2"],
    ]
    before = client._kept.__dict__["_sock"]  # type: ignore[attr-defined]
    wrong, done = in_one_go(client, [("HGET", "word", "a"), ("SET", "word", "y")])
    assert isinstance(wrong, ResponseError)
    assert done == b"OK"
    assert client.execute_command("EVALSHA", sha, 1, "n") == 1
    assert client._kept.__dict__["_sock"] is before  # type: ignore[attr-defined]
    assert admin.get("word") == b"y"


@pytest.mark.parametrize("at", ["between the calls and the answers", "an answer"])
def test_an_exception_leaves_none_of_many_answers_behind(
    admin: redis.Redis, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, at: str
) -> None:
    sha = admin.script_load(COUNT)
    client = connect(server.url("admin"))
    assert client.execute_command("EVALSHA", sha, 1, "n") == 1

    def struck(*_: object) -> None:
        raise KeyboardInterrupt

    kept: Any = client._kept  # type: ignore[attr-defined]
    with monkeypatch.context() as patched:
        patched.setattr(*(kept, "read_response") if at == "an answer" else (client_module, "_answers"), struck)
        with pytest.raises(KeyboardInterrupt):
            in_one_go(client, [("GET", "n"), ("GET", "n")])
    assert kept._sock is None
    assert client.execute_command("EVALSHA", sha, 1, "n") == 2


def test_threads_do_not_share_it(admin: redis.Redis, server: EmbeddedRedis) -> None:
    sha = admin.script_load("return {KEYS[1], KEYS[1]}")
    client = connect(server.url("admin"))
    wrong: list[object] = []

    def ask(word: bytes) -> None:
        for _ in range(300):
            answer = client.execute_command("EVALSHA", sha, 1, word)
            if answer != [word, word]:
                wrong.append(answer)

    threads = [threading.Thread(target=ask, args=(b"k%d" % number,)) for number in range(4)]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert wrong == []


def test_a_fork_does_not_share_it(admin: redis.Redis, server: EmbeddedRedis) -> None:
    sha = admin.script_load(COUNT)
    client = connect(server.url("admin"))
    assert client.execute_command("EVALSHA", sha, 1, "n") == 1
    pid = os.fork()
    if pid == 0:
        code = 1
        try:
            code = 0 if client.execute_command("EVALSHA", sha, 1, "n") == 2 else 2
        finally:
            os._exit(code)
    assert os.waitstatus_to_exitcode(os.waitpid(pid, 0)[1]) == 0
    assert client.execute_command("EVALSHA", sha, 1, "n") == 3


def test_a_server_that_is_gone_is_said_to_be(tmp_path: Path) -> None:
    with EmbeddedRedis(tmp_path / "redis") as own:
        client = connect(own.url("admin"))
        sha = client.script_load(COUNT)
        client.execute_command("EVALSHA", sha, 1, "n")
        own.kill()
        with pytest.raises(RedisConnectionError):
            client.execute_command("EVALSHA", sha, 1, "n")


def test_answers_are_waited_for_while_others_call(admin: redis.Redis, server: EmbeddedRedis) -> None:
    sha = admin.script_load(COUNT)
    client, count = connect(server.url("admin")), ("EVALSHA", sha, 1, "n")
    later = send(client, [count, ("EVALSHA", "0" * 40, 0), count])
    while admin.get("n") != b"2":  # both are done, and nobody has read the answers
        pass
    assert client.execute_command(*count) == 3
    first, unknown, last = later()
    assert (first, last) == (1, 2)
    assert isinstance(unknown, NoScriptError)
    assert client.connection_pool._in_use_connections == {client._kept}  # type: ignore[attr-defined]


@pytest.mark.parametrize("when", ["sent", "answered"])
def test_a_connection_that_breaks_meanwhile_is_used_again_by_nobody(
    admin: redis.Redis, server: EmbeddedRedis, monkeypatch: pytest.MonkeyPatch, when: str
) -> None:
    sha = admin.script_load(COUNT)
    client, count = connect(server.url("admin")), ("EVALSHA", sha, 1, "n")
    pool = client.connection_pool

    def struck(*_: object, **__: object) -> None:
        raise TimeoutError("struck") if when == "sent" else RedisTimeoutError("struck")

    connection = pool.get_connection()
    pool.release(connection)
    if when == "sent":
        monkeypatch.setattr(connection, "_sock", Mock(wraps=connection._sock, sendall=struck))
    else:
        monkeypatch.setattr(connection, "read_response", struck)
    with pytest.raises(RedisTimeoutError):
        send(client, [count])()
    assert not pool._in_use_connections  # type: ignore[attr-defined]
    assert connection._sock is None
    monkeypatch.undo()
    counted = int(admin.get("n") or 0)
    assert send(client, [count, count])() == [counted + 1, counted + 2]
