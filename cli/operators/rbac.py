"""`oarlock rbac`: what the API server has to allow the controllers in a file."""

from __future__ import annotations

import click

from oarlock.cli.operators.manifests import manifest_option, write
from oarlock.cli.problems import InputProblem
from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.loading import fleet_of, load
from oarlock.sdk.rights import manifests


@click.command(
    epilog="\b\nExamples:\n  oarlock rbac website.py | kubectl apply -f -\n"
    "  oarlock rbac website.py --namespace web-system -o json | jq '.items[] | select(.rules).rules'"
)
@click.argument("what", metavar="FILE|MODULE")
@click.option("--namespace", default="oarlock", show_default=True, help="Where the operator's processes run.")
@click.option("--fleet-id", default="", help="Name of the fleet.  [default: the file's name]")
@click.option("--lease-namespace", default="kube-system", show_default=True, help="Where the fleet keeps its Lease.")
@manifest_option
def rbac(what: str, namespace: str, fleet_id: str, lease_namespace: str, output: str) -> None:
    """Print the least rights of the controllers in FILE or MODULE: two service accounts, their roles and bindings.

    They follow from what the controllers declare: their kind, children=, watches=. The ingestor only reads. The worker
    reads nothing but single objects, and writes children, the status of its own objects, and events.
    """
    try:
        definitions = load(what)
        found = manifests(definitions, fleet_id or fleet_of(what), namespace, lease_namespace)
    except BadDefinition as error:
        raise InputProblem(str(error)) from None
    write(found, output)
