"""Credentials from a program that the kubeconfig names (cloud log-ins work this way).

The program is run without a terminal, prints an ExecCredential, and is run again a minute before that expires, or when
the server answers 401. A cloud's log-in takes seconds, so while what it printed last is good, no request waits for it.
Protocol: client.authentication.k8s.io/v1 and v1beta1 (upstream: client-go/plugin/pkg/client/auth/exec/exec.go).
"""

import asyncio
import logging
import math
import os
import subprocess
import time
from collections.abc import Callable, Mapping
from contextlib import suppress
from dataclasses import dataclass, field
from datetime import UTC, datetime
from pathlib import Path
from shutil import which
from typing import Any

import msgspec
import orjson

from oarlock.cluster.access.credentials import Auth, ConfigError, bearer

log = logging.getLogger("oarlock.cluster.access.exec_plugin")

API_VERSIONS = ("client.authentication.k8s.io/v1", "client.authentication.k8s.io/v1beta1")
RUN_TIMEOUT_S = 60.0
RERUN_AFTER_401_S = 5.0  # a revoked account must not start the program for every request
EARLY_S = 10.0  # not used for so long before the stated end, so that no write gets a 401
RENEW_S = 60.0  # renewed for so long before the stated end; of one that lives shortly, for its last fifth
RENEW_AGAIN_S = 15.0  # a renewal that failed, or brought the same again, as some programs keep what they fetched
STDERR_SHOWN = 400


@dataclass(frozen=True, slots=True)
class ExecSpec:
    """The `exec` entry of a kubeconfig user.

    command: a path, or a name looked up in PATH; env: what is set on top of our own environment;
    cluster: the entry handed over when `provideClusterInfo` is set, else None.
    """

    api_version: str
    command: str
    args: tuple[str, ...] = ()
    env: tuple[tuple[str, str], ...] = field(default=(), repr=False)
    install_hint: str = ""
    cluster: Mapping[str, Any] | None = None
    source: str = "kubeconfig"


class _Printed(msgspec.Struct, rename="camel"):
    token: str | None = None
    client_certificate_data: str | None = None
    client_key_data: str | None = None
    expiration_timestamp: datetime | None = None


class _ExecCredential(msgspec.Struct, rename="camel"):
    kind: str = ""
    api_version: str = ""
    status: _Printed | None = None


class ExecCredentials:
    """Runs the plugin when needed, never twice at once. Wall clock in seconds (expiry is a wall-clock time)."""

    def __init__(
        self, spec: ExecSpec, base: Auth | None = None, *, wall_clock: Callable[[], float] = time.time
    ) -> None:
        self._spec, self._base = spec, base or Auth()
        self._wall_clock = wall_clock
        self._auth: Auth | None = None
        self._stale_at_s = self._renew_at_s = 0.0
        self._ran_at_s = self._end_s = 0.0
        self._running = asyncio.Lock()
        self._renewal: asyncio.Task[None] | None = None

    def current(self) -> Auth | None:
        now_s = self._wall_clock()
        if now_s >= self._stale_at_s:
            return None
        if now_s >= self._renew_at_s and not self._running.locked():
            with suppress(RuntimeError):  # no loop runs here: nothing is asked either
                loop = asyncio.get_running_loop()
                self._renewal, self._renew_at_s = loop.create_task(self._renew()), now_s + RENEW_AGAIN_S
        return self._auth

    async def fetch(self) -> Auth:
        async with self._running:
            auth = self.current()
            return self._keep(*await self._run()) if auth is None else auth  # fetched while this one waited

    async def _renew(self) -> None:
        """Beside the requests. What fails here, or brings nothing that lives longer, is tried again, and at last by a
        request that waits for it.
        """
        async with self._running:
            try:
                auth, end_s = await self._run()
            except ConfigError as error:
                log.warning("the credentials are good for a while, and were not renewed: %s", error)
                return
            if end_s is None or end_s > self._end_s:
                self._keep(auth, end_s)

    async def _run(self) -> tuple[Auth, float | None]:
        # In a thread: the loop may run outside the main thread, where it must not fork by itself.
        return await asyncio.to_thread(run_plugin, self._spec, self._base)

    def _keep(self, auth: Auth, end_s: float | None) -> Auth:
        now_s = self._wall_clock()
        if auth != self._auth:  # the same object while nothing changed: the TLS context is kept per Auth
            self._auth = auth
        assert self._auth is not None
        self._ran_at_s, self._end_s = now_s, math.inf if end_s is None else end_s
        left_s = max(0.0, self._end_s - now_s)
        self._stale_at_s = self._end_s - min(EARLY_S, left_s / 10)
        self._renew_at_s = self._end_s - min(RENEW_S, left_s / 5)
        return self._auth

    def suspect(self, auth: Auth) -> None:
        if auth is self._auth and self._wall_clock() - self._ran_at_s >= RERUN_AFTER_401_S:
            self._stale_at_s = 0.0


def run_plugin(spec: ExecSpec, base: Auth) -> tuple[Auth, float | None]:
    """Run the program once; returns the Auth and its end (unix seconds), or None if it names none.

    Blocks. Raises ConfigError: not found (with the install hint), failed (with its stderr), bad output.
    """
    name = f"the exec plugin {spec.command!r} of the {spec.source}"
    environment = {**os.environ, **dict(spec.env), "KUBERNETES_EXEC_INFO": _exec_info(spec)}
    program = which(spec.command, path=environment.get("PATH"))
    if program is None:
        hint = spec.install_hint.strip() or "install it, or put it on PATH"
        raise ConfigError(f"{name} was not found: {hint}")
    try:
        done = subprocess.run(
            [program, *spec.args],
            env=environment,
            stdin=subprocess.DEVNULL,
            capture_output=True,
            timeout=RUN_TIMEOUT_S,
            check=False,
        )
    except subprocess.TimeoutExpired as error:
        raise ConfigError(f"{name} did not end within {RUN_TIMEOUT_S:.0f} s") from error
    except OSError as error:
        raise ConfigError(f"{name} could not be started: {error.strerror}") from error
    if done.returncode != 0:
        said = done.stderr.decode("utf-8", "replace").strip()[-STDERR_SHOWN:] or "it said nothing"
        raise ConfigError(f"{name} failed with code {done.returncode}: {said}")
    return _parse(done.stdout, spec, base, name)


def _exec_info(spec: ExecSpec) -> str:
    told = {"interactive": False} | ({"cluster": dict(spec.cluster)} if spec.cluster is not None else {})
    return orjson.dumps({"apiVersion": spec.api_version, "kind": "ExecCredential", "spec": told}).decode()


def _parse(printed: bytes, spec: ExecSpec, base: Auth, name: str) -> tuple[Auth, float | None]:
    try:
        credential = msgspec.json.decode(printed, type=_ExecCredential)
    except msgspec.ValidationError as error:
        raise ConfigError(f"{name} printed an ExecCredential with a wrong field: {error}") from error
    except (msgspec.DecodeError, UnicodeDecodeError, RecursionError):
        # The output may hold a secret, so the message shows neither it nor the parser's excerpt.
        raise ConfigError(f"{name} printed something that is not JSON") from None
    if credential.kind != "ExecCredential" or credential.api_version != spec.api_version:
        raise ConfigError(
            f"{name} printed {credential.api_version or 'no version'} {credential.kind or 'of no kind'}; "
            f"the kubeconfig asks for {spec.api_version} ExecCredential"
        )
    status = credential.status
    if status is None:
        raise ConfigError(f"{name} printed an ExecCredential without a status")
    certificate, key = status.client_certificate_data, status.client_key_data
    if bool(certificate) != bool(key):
        raise ConfigError(f"{name} printed a certificate without its key, or a key without its certificate")
    if not status.token and not certificate:
        raise ConfigError(f"{name} printed neither a token nor a client certificate")
    end = status.expiration_timestamp
    if end is not None and end.tzinfo is None:
        end = end.replace(tzinfo=UTC)
    auth = Auth(
        headers=(*base.headers, bearer(status.token.strip())) if status.token else base.headers,
        certificate_pem=certificate.encode() if certificate else base.certificate_pem,
        key_pem=key.encode() if key else base.key_pem,
    )
    return auth, end.timestamp() if end is not None else None


def resolve_command(command: str, folder: Path) -> str:
    """A command with a slash is relative to the kubeconfig's folder; a bare name is left to PATH."""
    if os.sep not in command or os.path.isabs(command):
        return command
    return str(folder / command)
