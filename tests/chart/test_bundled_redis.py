"""The bundled Redis: its configuration and its users, on a real server, as its containers are told to."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path

import pytest
import redis

from oarlock.broker.connection.acl import USERS, acl_file
from oarlock.sandbox.redis import redis_binary
from oarlock.workers.process.death_signal import command_dying_with_this_process
from tests.chart.engine import CHART, NEEDED, ROOT, Obj, ci_values, merged, render

PASSWORDS = {user: f"{user}-0123456789abcdef" for user in USERS}
START_LIMIT_S = 30.0
pytestmark = pytest.mark.real


def made_acl(into: Path, passwords: dict[str, str]) -> subprocess.CompletedProcess[str]:
    """Runs the init container: its command, with its variables from the Secret."""
    init = render().pod("redis")["initContainers"][0]
    script = into.parent / "make_acl.py"
    script.write_text(render().one("ConfigMap", "oarlock-redis")["data"]["make_acl.py"])
    assert init["command"] == ["python", "/etc/oarlock/redis/make_acl.py", "/run/acl/users.acl"]
    keys = {each["name"]: each["valueFrom"]["secretKeyRef"]["key"] for each in init["env"]}
    secret = {f"{user}-password": password for user, password in passwords.items()}
    environment = {name: secret[key] for name, key in keys.items()}
    command = [sys.executable, str(script), str(into)]
    return subprocess.run(
        command,
        env={"PATH": os.environ.get("PATH", ""), "PYTHONPATH": str(ROOT / "src"), **environment},
        capture_output=True,
        text=True,
        timeout=60,
        check=False,
    )


def test_the_users_are_those_of_the_fleet(tmp_path: Path) -> None:
    done = made_acl(tmp_path / "users.acl", PASSWORDS)
    assert done.returncode == 0, done.stderr
    assert (tmp_path / "users.acl").read_text() == acl_file(PASSWORDS)


@pytest.mark.parametrize("password", ["", "short", "with:sign/of@urls?and#more", "ünïcödé-0123456789"])
def test_a_password_that_fits_no_url_is_refused(tmp_path: Path, password: str) -> None:
    done = made_acl(tmp_path / "users.acl", PASSWORDS | {"worker": password})
    assert done.returncode == 1
    assert done.stderr.startswith("the password of worker in redis.existingSecret")
    assert len(done.stderr.splitlines()) == 1
    assert not password or password not in done.stderr
    assert not (tmp_path / "users.acl").exists()


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Path]:
    """Its socket. Paths of the container become paths of this folder; a Unix socket stands for the port."""
    folder = tmp_path_factory.mktemp("r")
    done = made_acl(folder / "users.acl", PASSWORDS)
    assert done.returncode == 0, done.stderr
    text: str = render().one("ConfigMap", "oarlock-redis")["data"]["redis.conf"]
    text = text.replace("/run/acl", str(folder)).replace("dir /data", f"dir {folder}")
    text = text.replace("port 6379", f"port 0\nunixsocket {folder}/s")
    (folder / "redis.conf").write_text(text)
    command = [str(redis_binary.find().path), str(folder / "redis.conf")]
    with (folder / "log").open("wb") as log:
        process = subprocess.Popen(command_dying_with_this_process(command), stdout=log, stderr=log)
    try:
        ends_s = time.monotonic() + START_LIMIT_S
        while not is_up(folder / "s"):
            assert process.poll() is None, (folder / "log").read_text()
            assert time.monotonic() < ends_s
            time.sleep(0.02)
        yield folder / "s"
    finally:
        process.kill()
        process.wait()


def is_up(server: Path) -> bool:
    """Its socket is there before it listens."""
    try:
        return bool(as_user(server, "admin").ping())
    except redis.exceptions.ConnectionError:
        return False


def as_user(server: Path, user: str) -> redis.Redis:
    return redis.Redis(unix_socket_path=str(server), username=user, password=PASSWORDS[user], protocol=2)


def test_nothing_is_kept_and_nothing_is_evicted(server: Path) -> None:
    admin = as_user(server, "admin")
    told = {name: admin.config_get(name)[name] for name in ("save", "appendonly", "maxmemory", "maxmemory-policy")}
    assert told == {
        "save": "",
        "appendonly": "no",
        "maxmemory": str(256 * 1024 * 1024),
        "maxmemory-policy": "noeviction",
    }


def test_nobody_enters_without_a_password(server: Path) -> None:
    with pytest.raises(redis.exceptions.AuthenticationError):
        redis.Redis(unix_socket_path=str(server), protocol=2).get("oarlock:{0}:epoch")


@pytest.mark.parametrize("user", ["ingestor", "worker", "metrics"])
def test_users_are_let_in_and_held_to_their_keys(server: Path, user: str) -> None:
    client = as_user(server, user)
    assert client.ping()  # what the probes ask, as metrics
    assert client.get("oarlock:{0}:epoch") is None
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.get("elsewhere")
    with pytest.raises(redis.exceptions.NoPermissionError):
        client.flushall()


def test_probes_ask_as_a_user_who_may() -> None:
    container: Obj = render().pod("redis")["containers"][0]
    (entry,) = container["env"]
    assert entry["name"] == "REDISCLI_AUTH"
    assert entry["valueFrom"]["secretKeyRef"]["key"] == "metrics-password"
    for probe in ("livenessProbe", "readinessProbe"):
        assert "redis-cli --user metrics ping" in container[probe]["exec"]["command"][2]


def test_a_new_configuration_starts_it_anew() -> None:
    def annotations(maxmemory: str) -> Obj:
        rendered = render(merged(NEEDED, {"redis": {"bundled": {"maxmemory": maxmemory}}}))
        template: Obj = rendered.one("StatefulSet", "oarlock-redis")["spec"]["template"]
        return dict(template["metadata"]["annotations"])

    assert annotations("1gb") != annotations("2gb")


def test_a_redis_of_ones_own_leaves_it_out() -> None:
    for path in sorted((CHART / "ci").glob("redis-*-values.yaml")):
        rendered = render(ci_values(path))
        assert not [each for each in rendered.objects if each["metadata"]["name"].endswith("-redis")]
