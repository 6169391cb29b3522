"""Annotations of the new ReplicaSet. Numbers are those of section 23.5 of the upstream cases."""

import pytest

from oarlock.controllers.deployment.annotations import (
    DESIRED_REPLICAS,
    MAX_REPLICAS,
    REVISION,
    REVISION_HISTORY,
    ROLLBACK_TO,
    on_creation,
    size_in,
    sizes,
    to_change,
)
from oarlock.controllers.deployment.find import refresh
from oarlock.controllers.deployment.model import RECREATE
from oarlock.controllers.deployment.sizing.sizes import UNKNOWN
from tests.controllers.builders import with_fields
from tests.controllers.deployment.deployment_builders import owned
from tests.controllers.deployment.sizes_builders import dep, writes

CAUSE = {"kubernetes.io/change-cause": "why"}
APART = dict.fromkeys([REVISION, REVISION_HISTORY, DESIRED_REPLICAS, MAX_REPLICAS, ROLLBACK_TO], "9")


@pytest.mark.parametrize(
    ("text", "size"),
    [
        pytest.param(None, None, id="23.5.13 none"),
        pytest.param("", None, id="23.5.13 empty"),
        pytest.param("invalid", None, id="23.5.13 text"),
        pytest.param("-1", None, id="23.5.13 negative"),
        pytest.param("0", 0, id="23.5.13 zero"),
        pytest.param("13", 13, id="23.5.13 a number"),
        pytest.param("2147483647", 2147483647, id="23.5.13 the largest"),
        pytest.param("2147483648", None, id="23.5.13 one more"),
        pytest.param("4294967297", None, id="23.5.13 more than 32 bits"),
        pytest.param("9" * 5000, None, id="more digits than int() takes"),
        pytest.param("1_0", None, id="as Python has it"),
    ],
)
def test_a_remembered_size(text, size):
    """23.5.13: only what a 32-bit count may be."""
    assert size_in({} if text is None else {DESIRED_REPLICAS: text}, DESIRED_REPLICAS) == size


def test_23_5_14_a_history_of_revisions():
    """23.5.14: of the numbers 11 to 20 a history of 5 characters has the last two, without the present one."""
    present: dict[str, str] = {}
    for revision in range(11, 21):
        present |= to_change(dep(), present, revision, history_chars=5)
    assert present == {REVISION: "20", REVISION_HISTORY: "18,19"}


@pytest.mark.parametrize(
    ("present", "revision", "changes"),
    [
        pytest.param({}, 1, CAUSE | {REVISION: "1"}, id="the first one"),
        pytest.param(CAUSE | {REVISION: "2"}, 2, {}, id="nothing to change"),
        pytest.param({"own": "x", REVISION: "2"}, 2, CAUSE, id="what was removed from the Deployment stays"),
        pytest.param(CAUSE | {REVISION: "5"}, 3, {}, id="never lowered"),
        pytest.param(CAUSE | {REVISION: "1"}, 4, {REVISION: "4", REVISION_HISTORY: "1"}, id="a rollback"),
        pytest.param(
            CAUSE | {REVISION: "4", REVISION_HISTORY: "1"}, 6, {REVISION: "6", REVISION_HISTORY: "1,4"}, id="another"
        ),
        pytest.param({REVISION: "text"}, 4, {}, id="no number: nothing, not even the annotations"),
        pytest.param(CAUSE | {REVISION: ""}, 4, {REVISION: "4"}, id="an empty one is none"),
    ],
)
def test_23_5_14_application(present, revision, changes):
    """Section 9.2. Those that each object has for itself are not copied."""
    assert to_change(dep(annotations=CAUSE | APART), present, revision) == changes


def test_a_history_that_cannot_be_appended_to():
    """Where even the last number is too long, the history stays."""
    present = {REVISION: "12345678", REVISION_HISTORY: "1"}
    assert to_change(dep(), present, 12345679, history_chars=5) == {REVISION: "12345679"}


@pytest.mark.parametrize(
    ("surge", "strategy", "expected"),
    [
        pytest.param(3, "RollingUpdate", ("10", "13"), id="with a surge"),
        pytest.param("25%", "RollingUpdate", ("10", "13"), id="rounded up"),
        pytest.param(3, RECREATE, ("10", "10"), id="Recreate has none"),
    ],
)
def test_23_5_15_sizes(surge, strategy, expected):
    """23.5.15: what a ReplicaSet remembers of the Deployment when its size is decided."""
    deployment = dep(max_surge=surge, strategy=strategy)
    assert sizes(deployment) == dict(zip((DESIRED_REPLICAS, MAX_REPLICAS), expected, strict=True))
    created = on_creation(with_fields(deployment, annotations=CAUSE | APART), 7)
    assert created == CAUSE | {REVISION: "7"} | sizes(deployment)


@pytest.mark.parametrize(
    ("fields", "remembered", "expected"),
    [
        pytest.param({"revision": 1}, {}, None, id="up to date"),
        pytest.param({}, {}, (5, 5, {REVISION: "1"}, None), id="a revision"),
        pytest.param({"revision": 1, "min_ready_seconds": 3}, {}, (5, 5, {}, 0), id="minReadySeconds"),
        pytest.param(
            {"revision": 1, "min_ready_seconds": 3}, {"new": (2, 9)}, (2, 9, {}, 0), id="other sizes are remembered"
        ),
        pytest.param(
            {"revision": 1, "min_ready_seconds": 3, "generation": 2},
            {},
            (0, UNKNOWN, {}, 0),
            id="nobody knows its sizes",
        ),
        pytest.param({"min_ready_seconds": 3}, {}, (5, 5, {REVISION: "1"}, 0), id="both in one"),
    ],
)
def test_refresh(fields, remembered, expected):
    """Section 7.2, step 2: an update that leaves the size as it is."""
    update = refresh(dep(), owned("new", 5, **fields), 1, writes(**remembered))
    found = update and (update.low, update.high, update.annotations, update.min_ready_seconds)
    assert found == expected
    assert update is None or (update.replicas, update.event) == (5, None)
