"""A flag for every setting: the names of kube-controller-manager's where the meaning is the same.

A value comes from its flag, else from its environment variable, else it is the default. `given` says what flags gave.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import click
from click.core import ParameterSource

from oarlock.cli.options.options import Option, together
from oarlock.cli.problems import InputProblem
from oarlock.controllers.registry import CONTROLLERS
from oarlock.workers.process.settings import BadSetting, Settings, setting_names

_META = "oarlock.settings"


@dataclass(frozen=True, slots=True)
class Told:
    """``upstream``: kube-controller-manager's flag with the same meaning. ``own_flag``: a flag that another module
    declares. ``named``: the flag, if it is not the setting's name with dashes. ``default``: what the default is, if it
    is not the same for all commands.
    """

    help: str
    upstream: str = ""
    own_flag: str = ""
    named: str = ""
    default: str = ""


SETTINGS: Mapping[str, Told] = {
    "controllers": Told(
        'Controllers to run: "*" is all, "foo" foo, "-foo" all but foo; such as "*,-daemonset".', "--controllers"
    ),
    "operator": Told(
        "File or dotted module of your own controllers; default: the built-in ones.", own_flag="--operator"
    ),
    "kube_api_qps": Told("Requests a second of one process to the API server; 0: no limit.", "--kube-api-qps"),
    "kube_api_burst": Told("Requests at once before that limit counts.", "--kube-api-burst"),
    "fleet_api_qps": Told("Requests a second of all workers together, in place of that limit; 0: no such budget."),
    "fleet_api_qps_min": Told("Down to which 429s and slow answers may bring it; 0: a tenth of it."),
    "fleet_api_in_flight": Told("Requests that all workers together have under way; 0: no such limit."),
    "kubeconfig": Told(
        "Path; default: in a pod its service account, else $KUBECONFIG, else ~/.kube/config.",
        "--kubeconfig",
        "--kubeconfig",
    ),
    "redis_url": Told("Where queues, locks, expectations and cache live.", own_flag="--redis"),
    "rq_redis_url": Told("URL of where RQ keeps its own keys; default: the same server.", named="--rq-redis"),
    "redis_tls_ca": Told("Certificates to trust with rediss://.", own_flag="--redis-tls-ca"),
    "redis_tls_cert": Told("Client certificate for Redis.", own_flag="--redis-tls-cert"),
    "redis_tls_key": Told("Its key.", own_flag="--redis-tls-key"),
    "signing_key_file": Told(
        "Keys that sign the cached objects; default: they are not signed.", own_flag="--signing-key-file"
    ),
    "shards": Told("Into how many fleets the namespaces are divided; the same everywhere.", own_flag="--shards"),
    "shard": Told("The one that this process serves; default: all.", own_flag="--shard"),
    "metrics_bind_address": Told("Where /metrics, /livez and /readyz are served.", own_flag="--metrics-bind-address"),
    "dry_run": Told(
        "Decide and record, and write nothing; give --fleet-id, too (docs/shadow.md).", own_flag="--dry-run"
    ),
    "alongside_upstream": Told(
        "Work on although kube-controller-manager is seen at work on the same kinds.", own_flag="--alongside-upstream"
    ),
    "fleet_id": Told(
        "Name of the fleet, in its Lease and in requests.",
        default="oarlock; with controllers of your own the name of their file",
    ),
    "lease_namespace": Told("Namespace of the Lease in which epochs are numbered."),
    "terminating_replicas": Told("Whether statuses say terminatingReplicas where the server keeps it; false: nowhere."),
    "lease_ms": Told("How long a lock lasts that is not renewed."),
    "renew_every_ms": Told("How often a supervisor renews its workers' locks."),
    "request_timeout_ms": Told("How long a request to the API server may take; then it counts as unanswered."),
    "send_margin_ms": Told("No write is sent when less than this is left of its lease."),
    "turn_limit_ms": Told("A turn that takes longer ends."),
    "stall_ms": Told("A worker that makes no progress in a turn for so long is killed."),
    "batch_keys": Told("Most keys in a claim."),
    "batch_keys_quick": Told("Most keys in a claim after a full one with nothing to do."),
    "batch_bytes": Told("Most bytes of objects in a claim of more than one key."),
    "slow_turn_ms": Told("After a turn that computed longer, a worker claims one key, unless another queue is quick."),
    "view_age_max_ms": Told("Before a delete that was decided on an older cache, a live list is read."),
    "writes_in_flight": Told("Most concurrent requests of a worker."),
    "failed_after": Told("Failed turns in a row before a key enters RQ's failed-job registry."),
}
"""field of Settings -> its flag and its help; ``told`` has those of concurrent_syncs"""


def told(name: str) -> Told:
    """The flag and the help of a setting."""
    bounded = {each.concurrent_syncs: each.flavour.kind for each in CONTROLLERS.values()}
    if name not in bounded:  # or of a controller that is not there: --operator has others
        return SETTINGS.get(name, Told(""))
    text = f"{bounded[name]}s that this process syncs at once at most, one a worker; 0: a batch a worker."
    return Told(text, f"--{name.replace('_', '-')}")


def variable(name: str) -> str:
    """The environment variable of a setting."""
    return f"OARLOCK_{name.upper()}"


def flag(name: str) -> str:
    """Its flag."""
    about = told(name)
    return about.own_flag or about.named or "--" + name.replace("_", "-")


def setting_options(function: Any) -> Any:
    """Adds the flags of all settings, except those that another option declares."""
    return together(*(_option(name) for name in setting_names() if not told(name).own_flag))(function)


def every_setting_option(function: Any) -> Any:
    """Adds the flags of all settings."""
    return together(*map(_option, setting_names()))(function)


def _option(name: str) -> Option:
    default = Settings().value(name)

    def keep(context: click.Context, _: click.Parameter, value: Any) -> None:
        if value is not None:
            given(context)[name] = value

    kinds: Mapping[type, Any] = {bool: click.BOOL, int: click.INT, float: click.FLOAT, str: click.STRING}
    about = told(name)
    text = about.default or (str(default).lower() if isinstance(default, bool) else str(default))
    shown = f"  [default: {text}]" if text else ""
    return click.option(
        flag(name), name, type=kinds[type(default)], callback=keep, expose_value=False, help=about.help + shown
    )


def given(context: click.Context) -> dict[str, Any]:
    """field -> value, for every setting that a flag of this command gave."""
    found: dict[str, Any] = context.meta.setdefault(_META, {})
    return found


def settings_in_force(env: Mapping[str, str] | None = None) -> Settings:
    """The settings of the environment, or of ``env``; the flags of this command replace them.

    Raises InputProblem that names the flag or the variable.
    """
    context = click.get_current_context(silent=True)
    by_flag = {} if context is None else given(context)
    try:
        settings = Settings.from_env(env)
    except BadSetting as error:
        raise InputProblem(str(error)) from None
    try:
        return settings.given(by_flag)
    except BadSetting as error:
        raise InputProblem(in_words_of_flags(str(error), by_flag)) from None


def in_words_of_flags(text: str, by_flag: Mapping[str, Any]) -> str:
    """The message with flags in place of variables, for settings that flags gave."""
    for name in by_flag:
        text = text.replace(f"{variable(name)}=", f"{flag(name)}=")
    return text


def as_given(text: str, name: str) -> str:
    """A message that begins with the setting's flag: with its variable there, where the environment gave it."""
    by_flag = click.get_current_context().get_parameter_source(name) is ParameterSource.COMMANDLINE
    if by_flag or not os.environ.get(variable(name)) or not text.startswith(flag(name)):
        return text
    return variable(name) + text.removeprefix(flag(name))
