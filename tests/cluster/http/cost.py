"""What the client costs: CPU ms per POST of a 2 KB pod, and watch events a second. Not a test; run by hand:

    python -m tests.cluster.http.cost

The server is a trivial aiohttp one in its own process; CPU is that of this process (user + system), which is
steadier than requests a second. The last line is one JSON object.
"""

import asyncio
import gc
import json
import multiprocessing
import os
import sys
import time
from multiprocessing.connection import Connection

import orjson
import uvloop
from aiohttp import web

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.client import Client
from oarlock.cluster.http.frames import Lines, decode_event
from oarlock.cluster.resources import PODS

POD = {
    "apiVersion": "v1",
    "kind": "Pod",
    "metadata": {"name": "web-bcdfg", "namespace": "default", "labels": {f"label-{n}": "x" * 20 for n in range(10)}},
    "spec": {
        "containers": [
            {
                "name": f"c{n}",
                "image": "registry/app:1",
                "env": [{"name": f"V{m}", "value": "y" * 20} for m in range(14)],
            }
            for n in range(2)
        ]
    },
}
EVENTS = 50_000
WAYS = [1, 64, 500]


def stored_pod(rv: int) -> bytes:
    metadata = {
        **POD["metadata"],
        "uid": "0a1b2c3d-0000-4000-8000-000000000000",
        "resourceVersion": str(rv),
        "managedFields": [{"manager": "oarlock", "fieldsV1": {"f:x" + "y" * 20: {}}}],
    }
    return orjson.dumps(
        {
            **POD,
            "metadata": metadata,
            "status": {"phase": "Pending", "conditions": [{"type": "Ready", "status": "False"}] * 3},
        }
    )


async def serve(pipe: Connection) -> None:
    answer = stored_pod(1)
    burst = b"".join(b'{"type":"MODIFIED","object":' + stored_pod(rv) + b"}\n" for rv in range(1, 101))

    async def handle(request: web.Request) -> web.StreamResponse:
        if request.method == "GET":
            response = web.StreamResponse()
            await response.prepare(request)
            for _ in range(EVENTS // 100):
                await response.write(burst)
            return response
        orjson.loads(await request.read())
        return web.Response(status=201, body=answer, content_type="application/json")

    app = web.Application()
    app.router.add_route("*", "/{tail:.*}", handle)
    runner = web.AppRunner(app, access_log=None)
    await runner.setup()
    await web.TCPSite(runner, "127.0.0.1", 0).start()
    pipe.send(runner.addresses[0][1])
    await asyncio.Event().wait()


def serve_process(pipe: Connection) -> None:
    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        runner.run(serve(pipe))


def cpu_s() -> float:
    spent = os.times()
    return spent.user + spent.system


async def post(client: Client, in_flight: int, total: int) -> tuple[float, float]:
    """(CPU ms a request, requests a second)."""
    body = orjson.dumps(POD)
    left = total

    async def lane() -> None:
        nonlocal left
        while left > 0:
            left -= 1
            answer = await client.create(PODS, "default", body, deadline_s=client.clock() + 4, prepaid=True)
            assert answer.ok, answer
            assert answer.resource_version

    begun_cpu_s, begun_s = cpu_s(), time.monotonic()
    await asyncio.gather(*(lane() for _ in range(in_flight)))
    return (cpu_s() - begun_cpu_s) / total * 1000, total / (time.monotonic() - begun_s)


async def watch_all(client: Client) -> tuple[float, float]:
    """(CPU µs an event, events a second), through HTTP."""
    count, begun_cpu_s, begun_s = 0, cpu_s(), time.monotonic()
    async for batch in client.watch_batches(PODS, "1"):
        count += len(batch)
    assert count == EVENTS
    return (cpu_s() - begun_cpu_s) / count * 1e6, count / (time.monotonic() - begun_s)


def decode_only() -> float:
    """CPU µs an event for cutting and decoding alone."""
    stream = b"".join(b'{"type":"MODIFIED","object":' + stored_pod(rv) + b"}\n" for rv in range(1, 1001))
    begun_cpu_s = cpu_s()
    for _ in range(20):
        for line in Lines().feed(stream):
            decode_event(line)
    return (cpu_s() - begun_cpu_s) / 20_000 * 1e6


async def measure(port: int) -> None:
    result: dict[str, object] = {"pod_bytes": len(orjson.dumps(POD)), "stored_bytes": len(stored_pod(1))}
    async with Client(ClusterConfig(server=f"http://127.0.0.1:{port}"), role="bench") as client:
        for in_flight in WAYS:
            await post(client, in_flight, 1500)
            runs = sorted([await post(client, in_flight, 5000) for _ in range(3)])
            result[f"post_cpu_ms_at_{in_flight}"] = round(runs[1][0], 4)
            result[f"post_per_s_at_{in_flight}"] = round(runs[1][1])
            print(f"POST, {in_flight} in flight: {runs[1][0]:.3f} ms CPU, {runs[1][1]:.0f}/s")
        runs = sorted([await watch_all(client) for _ in range(3)])
        result["watch_cpu_us_per_event"], result["watch_events_per_s"] = round(runs[1][0], 2), round(runs[1][1])
        print(f"watch: {runs[1][0]:.1f} µs CPU an event, {runs[1][1]:.0f}/s")
    result["decode_us_per_event"] = round(sorted(decode_only() for _ in range(5))[2], 2)
    print(f"cutting and decoding alone: {result['decode_us_per_event']} µs an event")
    print(json.dumps(result))


def main() -> None:
    gc.freeze()
    ours, theirs = multiprocessing.Pipe()
    server = multiprocessing.get_context("spawn").Process(target=serve_process, args=(theirs,), daemon=True)
    server.start()
    try:
        with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
            runner.run(measure(ours.recv()))
    finally:
        server.terminate()
        server.join()


if __name__ == "__main__":
    sys.exit(main())
