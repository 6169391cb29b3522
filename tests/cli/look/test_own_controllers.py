"""The inspection commands with --operator: two controllers of one kind, over a real Redis with a planted state."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.controllers.entries import Watched
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from oarlock.sdk.entries import entries_of
from oarlock.sdk.loading import load
from tests.cli.cli_helpers import call, problems, stored

FLEET = "planted"
CODE = """
import oarlock


class Spec(oarlock.Struct):
    image: str


@oarlock.resource("example.com/v1")
class Website(oarlock.Object):
    spec: Spec


@oarlock.desired(Website, children=["v1 ConfigMap"])
def site(obj, children):
    return oarlock.Result([])


@oarlock.desired(Website)
def audit(obj, children):
    raise RuntimeError("no auditor")
"""


def website(name: str, **spec: Any) -> dict[str, Any]:
    """A Website in namespace shop, as the API server would list it."""
    meta = {"namespace": "shop", "name": name, "uid": f"uid-{name}", "resourceVersion": "10", "generation": 1}
    return {"metadata": meta, "spec": spec}


WEBSITES = (website("web", image="nginx"), website("other", image="nginx"))
PLANTED = {"websites.example.com": WEBSITES, "configmaps.v1": ()}


@pytest.fixture(scope="module")
def file(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The file of the controllers."""
    path = tmp_path_factory.mktemp("operator") / f"{FLEET}.py"
    path.write_text(CODE)
    return path


@pytest.fixture(scope="module")
def planted(file: Path, tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """The fleet's Redis: all keys are idle, and shop/other is requeued by one test."""
    watched = {each.resource: each for each in entries_of(load(file)) if isinstance(each, Watched)}
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        client = connect(server.url("admin"))
        epoch.bootstrap(client, 3, FLEET)
        broker = RedisBroker(client, 3, shard=FLEET)
        for resource, objects in PLANTED.items():
            kind = watched[resource]
            events = [stored(kind, kind.from_json(json.dumps(each).encode())[1]) for each in objects]
            broker.stage(resource, "g1", events)
            assert broker.commit_list(resource, "g1", "12").verdict == "OK"
        assert broker.open(list(PLANTED)) == ""
        broker.register("w-a", "s", ["site", "audit"])
        yield server
        client.close()


@pytest.fixture
def said(planted: EmbeddedRedis, file: Path) -> Any:
    """What a command prints."""

    def of(*arguments: str, user: str = "metrics") -> str:
        result = call(*arguments, "--operator", str(file), "--redis", planted.url(user))
        assert result.exit_code == 0, result.stderr
        return result.stdout

    return of


BOTH, SITE, AUDIT = {"site", "audit"}, {"site"}, {"audit"}


@pytest.mark.parametrize(
    ("words", "told"),
    [
        (["shop/web"], BOTH),
        (["web", "-n", "shop"], BOTH),
        (["website/shop/web"], BOTH),
        (["websites.example.com/web", "-n", "shop"], BOTH),
        (["website/shop/none"], BOTH),
        (["shop/none"], BOTH),
        (["site/shop/web"], SITE),
        (["audit/shop/web"], AUDIT),
        (["audit/web", "-n", "shop"], AUDIT),
        (["website/shop/web", "-c", "audit"], AUDIT),
        (["shop/web", "-c", "audit"], AUDIT),
        (["audit/shop/web", "-c", "audit"], AUDIT),
    ],
    ids=lambda each: " ".join(each) if isinstance(each, list) else "",
)
def test_explain_is_of_all_controllers_of_a_kind_or_of_the_one_that_is_named(
    said: Any, words: list[str], told: set[str]
) -> None:
    found = json.loads(said("explain", *words, "-o", "json"))
    assert {each["queue"] for each in (found if isinstance(found, list) else [found])} == told


def test_each_sentence_of_several_controllers_says_of_which_it_is(said: Any) -> None:
    lines = said("explain", "shop/web").splitlines()
    assert "site: All is as it should be: there is nothing to do." in lines
    assert "audit: Its controller cannot use it: audit: RuntimeError: no auditor." in lines
    assert {line.partition(": ")[0] for line in lines} == BOTH
    assert all(not line.startswith("audit: ") for line in said("explain", "audit/shop/web").splitlines())


def test_a_controller_of_another_kind_is_no_way_to_a_key(planted: EmbeddedRedis, file: Path) -> None:
    result = call("explain", "site/shop/web", "-c", "audit", "--operator", str(file), "--redis", planted.url("metrics"))
    assert result.exit_code == 2
    assert problems(result) == ["oarlock: 'site/shop/web' is no key of --controller audit; leave one of them out"]


def test_requeue_is_for_all_controllers_of_a_kind(said: Any) -> None:
    assert said("requeue", "shop/other", user="admin").splitlines() == [
        "shop/other of site: queued",
        "shop/other of audit: queued",
    ]
    assert said("requeue", "audit/shop/other", user="admin") == "shop/other: nothing to add, it is queued already\n"
