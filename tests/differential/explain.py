"""Differences that are meant, each with the id of its line in docs/differences.md. Pure.

An explanation knows the one difference it is about: which field, in which direction, after which steps, beside which
versions of upstream.
"""

from __future__ import annotations

from tests.differential import meant_daemons, meant_deployments, meant_replicas
from tests.differential.compare import Difference
from tests.differential.moment import Moment

EXPLANATIONS = (*meant_replicas.MEANT, *meant_daemons.MEANT, *meant_deployments.MEANT)


def explain(difference: Difference, moment: Moment) -> str:
    """The id of the first explanation that covers it, or an empty string."""
    return next((each.id for each in EXPLANATIONS if each.explains(difference, moment)), "")
