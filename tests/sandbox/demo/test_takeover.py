"""What Redis's own account says of claims."""

from __future__ import annotations

from pathlib import Path

from oarlock.broker.keys import Keys
from oarlock.sandbox.demo.takeover import Monitor
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests.broker.broker_cases import QUEUE, RedisCase, claim, clients_of, opened
from tests.redis.real_servers import until


def test_each_key_of_a_claim_is_told(tmp_path: Path) -> None:
    server = EmbeddedRedis(tmp_path).start()
    try:
        case = RedisCase("redis", clients_of(server))
        opened(case)
        monitor = Monitor(case.admin, (QUEUE,), Keys(case.epoch))
        keys = ["a/1", "a/2", "b/1"]
        case.worker.add(QUEUE, keys, why="due")  # a lock tells that, in one word here and in more elsewhere
        nonces = {each.nonce for each in claim(case, "w1")}
        until(lambda: len(monitor.claims) >= len(keys), limit_s=10.0, what="three claims")
        monitor.close()
        assert [(task, holder) for _, task, _, holder in monitor.claims] == [(f"{QUEUE}:{key}", "w1") for key in keys]
        assert {nonce for _, _, nonce, _ in monitor.claims} == nonces
    finally:
        server.stop()
