"""A keyed queue in a Cluster, and with Sentinels through a failover."""

from __future__ import annotations

import threading

from oarlock.broker.connection.finders import slot_of
from oarlock.queue import Context, KeyedQueue, QueueUnreachable
from tests.redis.cluster_rig import ClusterRig
from tests.redis.real_servers import until
from tests.redis.sentinel_rig import SentinelRig


def test_each_queue_is_on_the_node_of_its_slot(cluster: ClusterRig) -> None:
    nodes = set()
    for name in ("invoices", "pages", "q3", "q4"):
        queue = KeyedQueue(name, cluster.url("admin"))
        queue.add("eu/a", "b")
        node = cluster.master_of(name)
        nodes.add(node.port)
        found = node.client().execute_command("CLUSTER GETKEYSINSLOT", slot_of(name), 100)
        assert f"oarlock:queue:{{{name}}}:state" in found
        assert queue.run(lambda key, ctx: None, burst=True) == 2
    assert len(nodes) > 1


def test_a_consumer_goes_on_with_the_new_master(sentinels: SentinelRig) -> None:
    queue, theirs = (KeyedQueue("invoices", sentinels.url("admin")) for _ in range(2))
    seen: list[str] = []

    def sync(key: str, ctx: Context) -> None:
        seen.append(key)

    stop = threading.Event()
    consumer = threading.Thread(target=lambda: queue.worker()(sync).run(should_stop=stop.is_set, own_signals=False))
    consumer.start()

    def added(key: str) -> bool:
        try:
            theirs.add(key)
        except QueueUnreachable:
            return False
        return True

    try:
        assert added("before")
        until(lambda: "before" in seen, what="the first key")
        sentinels.order_failover()
        until(lambda: added("after"), what="the new master")
        until(lambda: "after" in seen, what="the second key")
    finally:
        stop.set()
        consumer.join()
