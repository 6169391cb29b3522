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

FLEET = "shops"
FILE = Path(__file__).with_name("shops.py")


def listed(name: str, namespace: str = "shop", **parts: Any) -> dict[str, Any]:
    """An object as the API server lists it."""
    meta = {"namespace": namespace, "name": name, "uid": f"uid-{name}", "resourceVersion": "10", "generation": 1}
    return {"metadata": {**meta, **parts.pop("metadata", {})}, **parts}


APPLIED = "kubectl.kubernetes.io/last-applied-configuration"
GOING = {"deletionTimestamp": "2026-01-05T08:00:00Z"}
PLANTED = {
    "websites.example.com": (
        listed("web", spec={"image": "nginx", "hosts": ["a.example.com", "b.example.com"]}),
        listed("other", spec={"image": "nginx"}),
        listed("older", spec={"image": 7}),
    ),
    "configmaps.v1": (listed("page"),),
    "teams.example.com": (listed("red", "", spec={"size": 3}), listed("blue", "", spec={"size": 0})),
    "records.example.com": (
        listed("held", metadata={**GOING, "finalizers": ["example.com/record", "example.com/entry"]}),
        listed("others", metadata={**GOING, "finalizers": ["example.com/other"]}),
    ),
    "secrets.v1": (
        listed(
            "tls",
            data={"key": "aGlkZGVu", "cert": "aGlkZGVu"},
            type="Opaque",
            metadata={"annotations": {APPLIED: '{"data": {"key": "aGlkZGVu"}}', "note": "seen"}},
        ),
        listed("empty"),
    ),
}


@pytest.fixture(scope="module")
def planted(tmp_path_factory: pytest.TempPathFactory) -> Iterator[EmbeddedRedis]:
    """The fleet's Redis: two Secrets are queued, and shop/other is requeued by one test."""
    watched = {each.resource: each for each in entries_of(load(FILE)) if isinstance(each, Watched)}
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
        broker.register("w-a", "s", ["site", "audit", "rotate", "team", "later", "publish", "enroll"])
        broker.add("rotate", ["shop/first", "shop/tls"])
        yield server
        client.close()


@pytest.fixture
def said(planted: EmbeddedRedis) -> Any:
    """What a command prints."""

    def of(*arguments: str, user: str = "metrics") -> str:
        result = call(*arguments, "--operator", str(FILE), "--redis", planted.url(user))
        assert (result.exit_code, result.stderr) == (0, "")
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


MISFIT = "It does not fit its type, so nothing is done for it: spec: is required."
HELD = (
    "So nothing is undone, and the finalizer example.com/record stays: mend the object, or have its finalize function"
    " take any object, by finalize(raw=True)."
)
UNDONE = "It does not fit its type; what undoes it takes it all the same: spec: is required."


@pytest.mark.parametrize(
    ("key", "told"),
    [
        ("publish/shop/held", [MISFIT, HELD]),
        ("publish/shop/others", [MISFIT]),
        ("enroll/shop/held", [UNDONE]),
    ],
)
def test_what_holds_an_object_that_does_not_fit_its_type(said: Any, key: str, told: list[str]) -> None:
    lines = said("explain", key).splitlines()
    assert [line for line in lines if "fit its type" in line or "undone" in line] == told


@pytest.mark.parametrize(
    ("key", "told"), [("shop/web", "Website shop/web"), ("shop/none", "No Website shop/none"), ("red", "Team red")]
)
def test_a_key_with_a_namespace_is_of_a_kind_that_has_them(planted: EmbeddedRedis, key: str, told: str) -> None:
    of = ("--operator", str(FILE.with_name("teams_first.py")), "--fleet-id", FLEET)
    result = call("explain", key, *of, "--redis", planted.url("metrics"))
    assert (result.exit_code, problems(result)) == (0, [])
    assert result.stdout.startswith(told)


def test_a_controller_of_another_kind_is_no_way_to_a_key(planted: EmbeddedRedis) -> None:
    result = call("explain", "site/shop/web", "-c", "audit", "--operator", str(FILE), "--redis", planted.url("metrics"))
    assert result.exit_code == 2
    assert problems(result) == ["oarlock: 'site/shop/web' is no key of --controller audit; leave one of them out"]


def test_requeue_is_for_all_controllers_of_a_kind(said: Any) -> None:
    assert said("requeue", "shop/other", user="admin").splitlines() == [
        "shop/other of site: queued",
        "shop/other of audit: queued",
    ]
    assert said("requeue", "audit/shop/other", user="admin") == "shop/other: nothing to add, it is queued already\n"


def test_explain_says_why_an_object_does_not_fit_its_type(said: Any) -> None:
    told = "It does not fit its type, so nothing is done for it: spec.image: has to be a text, not a whole number."
    lines = said("explain", "shop/older").splitlines()
    assert {f"site: {told}", f"audit: {told}"} <= set(lines)
    assert "All is as it should be" not in " ".join(lines)
    of_steps = said("explain", "blue").splitlines()
    assert "It does not fit its type, so nothing is done for it: spec.size: has to be at least 1." in of_steps
    assert "All is as it should be" not in " ".join(of_steps)
    assert json.loads(said("explain", "blue", "-o", "json"))["misfit"] == "spec.size: has to be at least 1"


def test_explain_says_that_a_key_waits_for_a_rate(said: Any) -> None:
    of_first, of_next = said("explain", "shop/first", "-c", "rotate"), said("explain", "rotate/shop/tls")
    assert "It is queued: it is the next one." in of_first
    assert "rate_per_s" not in of_first
    told = "It waits for the rate of its controller, rate_per_s=0.01 in the whole fleet: its turn begins in 1m40s"
    assert told in of_next
    assert json.loads(said("explain", "rotate/shop/tls", "-o", "json"))["rate_wait_ms"] == 100_000


def test_explain_says_that_a_function_asks_for_a_later_look(said: Any) -> None:
    told = said("explain", "later/shop/page")
    assert "Its controller looks at it again later: there is no page yet." in told
    assert "All is as it should be" not in told


def test_get_says_which_objects_do_not_fit_their_type(said: Any) -> None:
    head, *lines = said("get", "teams").splitlines()
    assert head.endswith("DOES NOT FIT")
    assert [line.split()[0] for line in lines] == ["blue", "red"]
    assert lines[0].endswith("spec.size: has to be at least 1")
    assert lines[1].endswith("-")
    misfits = {each["name"]: each["misfit"] for each in json.loads(said("get", "teams", "-o", "json"))}
    assert misfits == {"blue": "spec.size: has to be at least 1", "red": ""}
    assert "DOES NOT FIT" not in said("get", "secrets")


def test_get_has_the_columns_of_the_type(said: Any) -> None:
    head, *lines = [line.split() for line in said("get", "websites").splitlines()]
    assert head[:5] == ["NAMESPACE", "NAME", "IMAGE", "HOSTS", "AGE"]
    assert lines[1][:4] == ["shop", "other", "nginx", "-"]
    assert lines[2][:4] == ["shop", "web", "nginx", "a.example.com,b.example.com"]
    assert said("get", "teams").split()[:2] == ["NAME", "GENERATION"]


@pytest.mark.parametrize("words", [["get", "secrets"], ["get", "secret", "shop/tls"], ["explain", "rotate/shop/tls"]])
@pytest.mark.parametrize("output", ["table", "json"])
def test_values_of_secrets_are_not_shown(said: Any, words: list[str], output: str) -> None:
    assert "aGlkZGVu" not in said(*words, "-o", output)


def test_the_names_in_a_secret_are_shown(said: Any) -> None:
    body = json.loads(said("get", "secret", "shop/tls", "-o", "json"))["body"]
    assert body["data"] == {"key": "(redacted)", "cert": "(redacted)"}
    assert body["metadata"]["annotations"] == {APPLIED: "(redacted)", "note": "seen"}
    assert body["type"] == "Opaque"
    assert "data" not in json.loads(said("get", "secret", "shop/empty", "-o", "json"))["body"]
