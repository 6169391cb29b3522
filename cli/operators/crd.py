"""`oarlock crd`: the CustomResourceDefinitions of the types in a file of controllers."""

from __future__ import annotations

import click

from oarlock.cli.operators.manifests import manifest_option, write
from oarlock.cli.problems import InputProblem
from oarlock.sdk.kinds import BadDefinition
from oarlock.sdk.loading import load
from oarlock.sdk.types.crd import crds_of, models_of


@click.command(
    epilog="\b\nExamples:\n  oarlock crd website.py | kubectl apply -f -\n  oarlock crd shop.controllers -o json | jq ."
)
@click.argument("what", metavar="FILE|MODULE")
@manifest_option
def crd(what: str, output: str) -> None:
    """Print the CustomResourceDefinitions of the kinds that FILE or MODULE defines with @oarlock.resource.

    A type gives the schema: descriptions, defaults, limits, choices. What the type refuses, the API server refuses
    too, as far as a schema of Kubernetes can say it.
    """
    try:
        found = crds_of(models_of(load(what)))
    except BadDefinition as error:
        raise InputProblem(str(error)) from None
    if not found:
        raise InputProblem(f"{what}: no kinds of its own; they are classes below @oarlock.resource")
    write(found, output)
