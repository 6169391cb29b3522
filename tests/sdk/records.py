"""Controllers of the steps style, as a user would write them, with what they do outside kept in memory."""

from __future__ import annotations

import asyncio
import threading
from collections import Counter, defaultdict
from concurrent.futures import Future
from typing import Any

import msgspec

import oarlock


class Spec(oarlock.Struct):
    value: str = ""
    wants: tuple[str, ...] = ()
    seconds: float = 0.0


@oarlock.resource("dns.example.com/v1", plural="dnsrecords")
class DnsRecord(oarlock.Object):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: dict[str, Any] = {}


class Provider:
    """A service outside. It keeps each record under its name, and what it was told under which key."""

    def __init__(self) -> None:
        self.records: dict[str, str] = {}
        self.told: dict[str, Counter[str]] = defaultdict(Counter)
        """By object: how often each idempotency key was used."""

    def put(self, name: str, value: str, key: str) -> None:
        self.told[name][key] += 1
        self.records[name] = value

    def remove(self, name: str) -> None:
        self.records.pop(name, None)


provider = Provider()
deletion_fails = threading.Event()


@oarlock.steps(DnsRecord, children=["v1 ConfigMap"], finalizer="dns.example.com/record", name="dns")
def dns(record: DnsRecord, ctx: oarlock.Context) -> None:
    assert "dns.example.com/record" in record.metadata.finalizers
    ctx.still_mine()
    provider.put(ctx.key, record.spec.value, ctx.idempotency_key)
    ctx.apply(
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{record.name}-record"},
            "data": {"value": record.spec.value},
        }
    )
    mine = ctx.list("ConfigMap")
    assert [each["metadata"]["name"] for each in mine] == [f"{record.name}-record"]
    assert mine[0]["data"] == {"value": record.spec.value}  # past our own write
    ctx.status({"value": record.spec.value})
    ctx.event("RecordWritten", record.spec.value)


@dns.finalize
def remove_record(record: DnsRecord, ctx: oarlock.Context) -> None:
    if deletion_fails.is_set():
        raise RuntimeError("the provider is down")
    provider.remove(ctx.key)


@oarlock.resource("test.example.com/v1")
class Check(oarlock.Object):
    spec: Spec = msgspec.field(default_factory=Spec)
    status: dict[str, Any] = {}


runs: Counter[str] = Counter()
"""By key, how often the function of a Check was begun."""
outside: dict[str, list[str]] = defaultdict(list)
gates: dict[str, threading.Event] = defaultdict(threading.Event)


@oarlock.steps(Check, children=["v1 ConfigMap"], name="check", retry=oarlock.Retry(base_s=0.02, max_s=0.05))
def check(obj: Check, ctx: oarlock.Context) -> None:
    """Does what the object wants, one by one."""
    runs[ctx.key] += 1
    for word in obj.spec.wants:
        match word.split():
            case ["raise"]:
                raise KeyError("what was looked for")
            case ["raise", times]:
                if runs[ctx.key] <= int(times):
                    raise KeyError("what was looked for")
            case ["never"]:
                raise oarlock.Never("there is no such region")
            case ["later"]:
                if runs[ctx.key] == 1:
                    raise oarlock.Later(seconds=60, reason="it is being made")
            case ["again"]:
                ctx.again(seconds=obj.spec.seconds)
            case ["wait"]:
                outside[ctx.key].append("waits")
                gates[ctx.key].wait(40)
            case ["mine"]:
                try:
                    ctx.still_mine()
                    outside[ctx.key].append("mine")
                except oarlock.LostClaim:
                    outside[ctx.key].append("lost")
                    raise
            case ["generate"]:
                ctx.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"generateName": "x-"}})
            case ["create", name]:
                made = ctx.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
                assert ctx.get("ConfigMap", name) == made
            case ["patch", name]:
                ctx.patch("ConfigMap", name, {"data": {"by": "patch"}})
            case ["delete", name]:
                ctx.delete("ConfigMap", name)
                assert ctx.get("ConfigMap", name) is None
                assert ctx.list("ConfigMap") == []
            case ["conflict", name]:
                try:
                    ctx.create({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}})
                except oarlock.ApiError as error:
                    ctx.status({"done": True, "refused": error.code})
                    return
    ctx.status({"done": True})


@oarlock.resource("test.example.com/v1")
class Watchman(oarlock.Object):
    status: dict[str, Any] = {}


@oarlock.steps(Watchman, every_s=3600)
def watchman(obj: Watchman, ctx: oarlock.Context) -> None:
    runs[ctx.key] += 1


@oarlock.resource("test.example.com/v1")
class Poll(oarlock.Object):
    status: dict[str, Any] = {}


together: set[str] = set()
met: Future[None] = Future()
"""Done when two functions of Polls have been under way at once."""


@oarlock.steps(Poll, finalizer="test.example.com/poll", children=["v1 ConfigMap"])
async def poll(obj: Poll, ctx: oarlock.AsyncContext) -> None:
    together.add(ctx.key)
    if len(together) == 2 and not met.done():
        met.set_result(None)
    await asyncio.shield(asyncio.wrap_future(met))  # the first one ends only beside another
    await ctx.still_mine()
    await ctx.apply({"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": obj.name}, "data": {"a": "b"}})
    assert (await ctx.get("ConfigMap", obj.name)) is not None
    await ctx.status({"polled": True})


@poll.finalize
async def stop_polling(obj: Poll, ctx: oarlock.AsyncContext) -> None:
    await asyncio.sleep(0)
    outside[ctx.key].append("stopped")
