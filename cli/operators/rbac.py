"""`oarlock rbac`: what the API server has to allow the controllers in a file."""

from __future__ import annotations

import re
from typing import Any

import click

from oarlock.cli.operators.manifests import manifest_option, write
from oarlock.cli.options.setting_options import in_words_of_flags
from oarlock.cli.problems import InputProblem
from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.loading import fleet_of, load
from oarlock.sdk.rights import manifests
from oarlock.workers.process.settings import BadSetting, Settings

LABEL = r"[a-z0-9]([a-z0-9-]{0,61}[a-z0-9])?"
ALWAYS_THERE = frozenset({"default", "kube-system", "kube-public", "kube-node-lease"})


@click.command(
    epilog="\b\nExamples:\n  oarlock rbac website.py | kubectl apply -f -\n"
    "  oarlock rbac website.py --namespace web-system -o json | jq '.items[] | select(.rules).rules'"
)
@click.argument("what", metavar="FILE|MODULE")
@click.option("--namespace", default="oarlock", show_default=True, help="Where the operator's processes run.")
@click.option("--fleet-id", help="Name of the fleet.  [default: the file's name]")
@click.option("--lease-namespace", default="kube-system", show_default=True, help="Where the fleet keeps its Lease.")
@click.option(
    "--create-namespace/--no-create-namespace",
    default=True,
    show_default=True,
    help="Print the namespaces first, but for those that every cluster has.",
)
@manifest_option
def rbac(
    what: str, namespace: str, fleet_id: str | None, lease_namespace: str, create_namespace: bool, output: str
) -> None:
    """Print the least rights of the controllers in FILE or MODULE: two service accounts, their roles and bindings, and
    before them the namespace of the accounts.

    They follow from what the controllers declare: their kind, children=, watches=. The ingestor reads, and writes
    nothing but its Lease and events. The worker reads nothing but single objects, and writes children, the status of
    its own objects, and events.

    `kubectl delete -f` of all this deletes the namespace with all that is in it: use --no-create-namespace there.
    """
    for option, value in (("--namespace", namespace), ("--lease-namespace", lease_namespace)):
        if not re.fullmatch(LABEL, value):
            raise InputProblem(
                f"{option}={value} cannot name a namespace: small letters, digits and dashes, at most 63"
            )
    try:
        definitions = load(what)
        fleet = Settings(operator=what, fleet_id=fleet_of(what) if fleet_id is None else fleet_id).fleet_id
        found = manifests(definitions, fleet, namespace, lease_namespace)
    except BadDefinition as error:
        raise InputProblem(str(error)) from None
    except BadSetting as error:
        raise InputProblem(in_words_of_flags(str(error), {"fleet_id": fleet_id})) from None
    missing = [each for each in dict.fromkeys((namespace, lease_namespace)) if each not in ALWAYS_THERE]
    write([*(_namespace(each) for each in missing if create_namespace), *found], output)


def _namespace(name: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "Namespace", "metadata": {"name": name}}
