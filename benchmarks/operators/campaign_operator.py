"""The operators that are killed: a Bundle has the ConfigMaps that it asks for, an Effect is told outside."""

from __future__ import annotations

import json
import os
import urllib.error
import urllib.request

import oarlock

TIMEOUT_S = 3.0


class BundleSpec(oarlock.Struct):
    children: int
    text: str = ""


class BundleStatus(oarlock.Struct):
    generation: int = 0
    there: int = 0


@oarlock.resource("bench.example.com/v1")
class Bundle(oarlock.Object):
    spec: BundleSpec
    status: BundleStatus | None = None


@oarlock.desired(Bundle, children=["v1 ConfigMap"])
def bundle(mine: Bundle, children: oarlock.Children) -> oarlock.Result:
    wanted = [
        {
            "apiVersion": "v1",
            "kind": "ConfigMap",
            "metadata": {"name": f"{mine.name}-{number}"},
            "data": {"text": mine.spec.text},
        }
        for number in range(mine.spec.children)
    ]
    return oarlock.Result(wanted, status=BundleStatus(generation=mine.metadata.generation, there=len(children)))


class EffectSpec(oarlock.Struct):
    value: str


class EffectStatus(oarlock.Struct):
    generation: int = 0


@oarlock.resource("bench.example.com/v1")
class Effect(oarlock.Object):
    spec: EffectSpec
    status: EffectStatus | None = None


@oarlock.steps(Effect, finalizer="bench.example.com/told")
def effect(mine: Effect, ctx: oarlock.Context) -> None:
    if mine.status is not None and mine.status.generation == mine.metadata.generation:
        return
    ctx.still_mine()
    tell("PUT", mine, ctx.idempotency_key)
    ctx.status(EffectStatus(generation=mine.metadata.generation))


@effect.finalize
def untell(mine: Effect, ctx: oarlock.Context) -> None:
    ctx.still_mine()
    tell("DELETE", mine, ctx.idempotency_key)


def tell(verb: str, mine: Effect, key: str) -> None:
    """Raises Later where nobody answers."""
    about = {"uid": mine.metadata.uid, "generation": mine.metadata.generation, "value": mine.spec.value}
    request = urllib.request.Request(
        f"{os.environ['OUTSIDE']}/{mine.name}",
        method=verb,
        data=json.dumps(about).encode(),
        headers={"Idempotency-Key": key},
    )
    try:
        urllib.request.urlopen(request, timeout=TIMEOUT_S).close()
    except OSError as error:
        raise oarlock.Later(seconds=0.2, reason=str(error)) from error
