"""`kubectl oarlock`: names as kubectl takes them, which fleet is meant, what the help says."""

from __future__ import annotations

import json
import re
import shlex
from collections.abc import Iterator
from pathlib import Path

import click
import pytest
import yaml
from click.testing import CliRunner, Result

from oarlock.broker import epoch
from oarlock.broker.connection.client import connect
from oarlock.broker.redis_broker import RedisBroker
from oarlock.cli.kubectl.names import keys_of
from oarlock.cli.kubectl.plugin import EXAMPLES, complete, plugin
from oarlock.controllers.objects.model import OwnerRef, Pod
from oarlock.controllers.registry import WATCHED
from oarlock.sandbox.redis.embedded_redis import EmbeddedRedis
from tests import ROOT
from tests.cli.cli_helpers import call as oarlock
from tests.cli.cli_helpers import problems, stored

PAGE = ROOT / "docs" / "kubectl.md"


def call(*arguments: str, **env: str) -> Result:
    clean = {"OARLOCK_REDIS_URL": "", "OARLOCK_STATE_DIR": "", "OARLOCK_KUBECONFIG": "", "KUBECONFIG": "", "HOME": "/"}
    return CliRunner().invoke(plugin, list(arguments), prog_name="kubectl oarlock", env={**clean, **env})


@pytest.mark.parametrize(
    ("words", "keys"),
    [
        (["deploy/web"], ["deploy/shop/web"]),
        (["deployments.apps", "web"], ["deployments.apps/shop/web"]),
        (["rs", "a", "b"], ["rs/shop/a", "rs/shop/b"]),
        (["rs/a", "ds/b"], ["rs/shop/a", "ds/shop/b"]),
        (["node", "n1"], ["node//n1"]),
        (["pod/a"], ["pod/shop/a"]),
    ],
)
def test_names(words: list[str], keys: list[str]) -> None:
    assert keys_of(words, "shop") == keys


@pytest.mark.parametrize(
    ("words", "problem"),
    [
        (["web"], "'web': of which type? Write TYPE/NAME, such as deploy/web"),
        (["shop/web"], "'shop' is no type that the fleet looks after: rs, rc, ds, deploy"),
        (["deploy/shop/web"], "'deploy/shop/web' is no TYPE/NAME, such as deploy/web; name the namespace with -n"),
        (["deploy/"], "'deploy/' is no TYPE/NAME, such as deploy/web; name the namespace with -n"),
        (["deploy/a", "web"], "'web' is no TYPE/NAME, such as deploy/web; name the namespace with -n"),
        (["deploy/a", "deploy/b"], "deploy/shop/a and deploy/shop/b: one at a time; call the command once for each"),
    ],
)
def test_names_that_lead_nowhere(words: list[str], problem: str) -> None:
    result = call("explain", *words, "-n", "shop")
    assert (result.exit_code, problems(result)) == (2, [f"oarlock: {problem}"])


@pytest.mark.parametrize("name", EXAMPLES)
def test_the_help_is_kubectls(name: str) -> None:
    text = call(name, "--help").stdout
    assert text.startswith(f"Usage: kubectl oarlock {name}")
    assert f"  kubectl oarlock {name}" in text
    assert " oarlock " not in text.partition("Examples:")[2].replace("kubectl oarlock", "")
    assert "(namespace/name" not in text


def calls_of_the_page() -> list[str]:
    return re.findall(r"kubectl oarlock ([a-z][^`\n#&|]*)", PAGE.read_text())


@pytest.mark.parametrize("text", [*(f"{name} {each}" for name in EXAMPLES for each in EXAMPLES[name])])
def test_examples_parse(text: str) -> None:
    name, *arguments = shlex.split(text)
    command = plugin.get_command(None, name)  # type: ignore[arg-type]
    assert command is not None
    command.make_context(name, arguments, resilient_parsing=False)


def test_the_page_names_commands_and_flags_that_there_are() -> None:
    assert len(calls_of_the_page()) > 5
    for text in calls_of_the_page():
        test_examples_parse(text)


def test_without_a_redis_it_says_how_to_reach_one() -> None:
    result = call("queue")
    assert result.exit_code == 2
    assert "kubectl port-forward" in problems(result)[0]
    assert "--redis" in problems(result)[0]


def test_another_fleet_on_this_machine_is_not_meant(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def found() -> None:
        raise AssertionError("the only `oarlock up` is not what a kubeconfig of another cluster means")

    monkeypatch.setattr("oarlock.cli.options.redis_options.found_up", found)
    result = call("queue", "--kubeconfig", str(kubeconfig(tmp_path)))
    assert "which Redis is the fleet's?" in problems(result)[0]


def kubeconfig(directory: Path, **namespaces: str) -> Path:
    contexts = [{"name": name, "context": {"cluster": "c", "namespace": of}} for name, of in namespaces.items()]
    cluster = {"name": "c", "cluster": {"server": "http://127.0.0.1:1"}}
    path = directory / "config"
    config = {"clusters": [cluster], "contexts": contexts, "current-context": next(iter(namespaces), "")}
    path.write_text(yaml.safe_dump({"apiVersion": "v1", "kind": "Config", **config}))
    return path


def owned(name: str, kind: str, owner: str) -> Pod:
    return Pod("shop", name, owner_refs=(OwnerRef("v1", kind, owner, "u", True),) if kind else (), uid=f"uid-{name}")


@pytest.fixture(scope="module")
def redis_url(tmp_path_factory: pytest.TempPathFactory) -> Iterator[str]:
    """Of a Redis that caches pods of the namespace shop: of a ReplicaSet, of a Job, of nobody."""
    pods = [owned("web-1", "ReplicaSet", "web"), owned("job-1", "Job", "job"), owned("bare", "", "")]
    with EmbeddedRedis(tmp_path_factory.mktemp("redis")) as server:
        client = connect(server.url("admin"))
        epoch.bootstrap(client, 1)
        broker = RedisBroker(client, 1)
        broker.stage("pods", "g1", [stored(WATCHED["pods"], each) for each in pods])
        assert broker.commit_list("pods", "g1", "12").verdict == "OK"
        broker.open([])
        yield server.url("admin")
        client.close()


def test_the_namespace_is_that_of_the_context(redis_url: str, tmp_path: Path) -> None:
    config = str(kubeconfig(tmp_path, here="shop", there="audit"))
    asked = ("explain", "rs", "cart", "-o", "json", "--redis", redis_url, "--kubeconfig", config)
    assert json.loads(call(*asked).stdout)["key"] == "shop/cart"
    assert json.loads(call(*asked, "--context", "there").stdout)["key"] == "audit/cart"
    assert json.loads(call(*asked, "-n", "mine").stdout)["key"] == "mine/cart"
    assert json.loads(call(*asked[:-2], KUBECONFIG=config).stdout)["key"] == "shop/cart"
    lost = call(*asked, "--context", "nowhere")
    assert (lost.exit_code, "no context named 'nowhere'; there are: here, there" in problems(lost)[0]) == (2, True)


def test_a_pod_stands_for_its_owner(redis_url: str) -> None:
    found = json.loads(call("explain", "po/web-1", "-n", "shop", "-o", "json", "--redis", redis_url).stdout)
    assert (found["queue"], found["key"]) == ("replicaset", "shop/web")
    for program, name in ((call, ("pod", "web-1", "-n", "shop")), (oarlock, ("pod/shop/web-1",))):
        requeued = program("requeue", *name, "--force", "--redis", redis_url)
        assert requeued.stdout.startswith("shop/web: "), requeued.output


@pytest.mark.parametrize(
    ("pod", "problem"),
    [
        ("job-1", "shop/job-1: none of the fleet's: its controller is a Job"),
        ("bare", "shop/bare: none of the fleet's: it has no controller"),
        ("gone", "shop/gone: not among the cached pods; name its owner, or look again"),
    ],
)
def test_a_pod_of_nobody_of_the_fleet(redis_url: str, pod: str, problem: str) -> None:
    result = call("explain", f"pod/{pod}", "-n", "shop", "--redis", redis_url)
    assert (result.exit_code, problems(result)) == (2, [f"oarlock: {problem}"])


def test_a_node(redis_url: str) -> None:
    found = json.loads(call("explain", "node/n1", "-n", "shop", "-o", "json", "--redis", redis_url).stdout)
    assert (found["queue"], found["key"]) == ("daemonset-node-updates", "n1")


def test_a_namespace_is_paused_and_resumed_as_a_whole(redis_url: str) -> None:
    where = ("-n", "shop", "--redis", redis_url)
    assert call("pause", *where, "--not-kept").stdout.startswith("namespace shop is paused")
    assert call("resume", *where).stdout == "namespace shop is resumed\n"


def test_completion() -> None:
    def of(*words: str) -> list[str]:
        with pytest.MonkeyPatch.context() as patch:
            patch.setattr("sys.argv", ["kubectl_complete-oarlock", *words])
            return CliRunner().invoke(click.command()(complete), []).stdout.splitlines()

    assert [each.partition("\t")[0] for each in of("ex")] == ["explain", "expectations", ":4"]
    assert of("explain", "d") == ["ds/", "deploy/", ":4"]
    assert "--context" in [each.partition("\t")[0] for each in of("queue", "--con")]
