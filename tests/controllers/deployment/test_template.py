"""Templates compared without their hash label. Numbers are those of section 23 of the upstream cases."""

import json
import subprocess
import sys
from typing import Any

import pytest

from oarlock.controllers.deployment.find import new_and_old, replicaset_name
from oarlock.controllers.history.digest import template_digest
from oarlock.controllers.history.model import revision_hash
from oarlock.controllers.objects.model import HASH_LABEL
from tests.controllers.deployment.deployment_builders import owned
from tests.controllers.deployment.sizes_builders import dep


def template(node: str = "", annotations: dict[str, str] | None = None, **labels: str) -> dict[str, Any]:
    labels = {key.replace("hash", HASH_LABEL): value for key, value in labels.items()}
    spec = {"nodeName": node} if node else {}
    return {"metadata": {"labels": labels, "annotations": annotations or {}}, "spec": spec}


@pytest.mark.parametrize("reverse", [False, True], ids=["", "the other way round"])
@pytest.mark.parametrize(
    ("former", "latter", "equal"),
    [
        pytest.param(
            template(hash="1", a="1", b="2"), template(hash="1", a="1", b="2"), True, id="same spec, same labels"
        ),
        pytest.param(
            template(hash="1", a="1", b="2"), template(hash="2", a="1", b="2"), True, id="only the hash differs"
        ),
        pytest.param(template(hash="1", a="1", b="2"), template(a="1", b="2"), True, id="the latter without a hash"),
        pytest.param(template(a="1", b="2"), template(a="1", b="2"), True, id="neither with a hash"),
        pytest.param(template(hash="1", a="1"), template(hash="1", a="1", b="2"), False, id="same hash, new labels"),
        pytest.param(template(hash="1", a="1"), template(hash="2", a="1", b="2"), False, id="other hash, new labels"),
        pytest.param(template(hash="1", a="1"), template(a="1", b="2"), False, id="without a hash, other labels"),
        pytest.param(template(a="1"), template(b="2"), False, id="neither with a hash, other labels"),
        pytest.param(template("n1", hash="1"), template("n2", hash="1"), False, id="other spec"),
        pytest.param(template("n1", {"x": "1"}), template("n1", {"x": "2"}), False, id="other annotations"),
        pytest.param(template(hash="1"), {"metadata": {}, "spec": {}}, True, id="only a hash, and no labels at all"),
        pytest.param(template(hash="1"), {"metadata": None, "spec": {}}, True, id="nil is empty"),
    ],
)
def test_23_5_1_equal_but_for_the_hash(former, latter, equal, reverse):
    """23.5.1, in both orders. What is given stays as it is, for it is JSON."""
    one, other = (latter, former) if reverse else (former, latter)
    digests = [template_digest(json.dumps(each).encode(), HASH_LABEL) for each in (one, other)]
    assert (digests[0] == digests[1]) == equal


@pytest.mark.parametrize(
    ("replicasets", "new", "old"),
    [
        pytest.param([], None, [], id="none"),
        pytest.param([owned("old", 1)], None, ["old"], id="23.5.2 none has the template"),
        pytest.param([owned("old", 1), owned("new-x")], "new-x", ["old"], id="23.5.2 whatever its hash"),
        pytest.param(
            [owned("new-b", age_s=1), owned("new-a", age_s=9)], "new-a", ["new-b"], id="23.5.2 the oldest of two"
        ),
        pytest.param(
            [owned("new-b", 1, age_s=1), owned("old", age_s=5), owned("new-a", age_s=9)],
            "new-a",
            ["old", "new-b"],
            id="23.5.3 the younger twin is an old one, in order of creation",
        ),
        pytest.param([owned("new-b"), owned("new-a")], "new-a", ["new-b"], id="of the same second, by name"),
    ],
)
def test_new_and_old(replicasets, new, old):
    """Which ReplicaSet has the template, in any order of the list."""
    for given in (replicasets, replicasets[::-1]):
        found, others = new_and_old(dep(), given)
        assert (found and found.name, [each.name for each in others]) == (new, old)


@pytest.mark.parametrize(
    ("deployment", "hash_chars", "name"),
    [
        pytest.param("web", 10, "web-" + "h" * 10, id="a short one"),
        pytest.param("d" * 242, 10, "d" * 242 + "-" + "h" * 10, id="23.1.21 it fits"),
        pytest.param("d" * 250, 10, "d" * 242 + "-" + "h" * 10, id="23.1.21 it is cut"),
        pytest.param("d" * 250, 8, "d" * 244 + "-" + "h" * 8, id="23.1.21 as little as needed"),
        pytest.param("d" * 20, 245, "d" * 7 + "-" + "h" * 245, id="23.1.21 a long hash"),
        pytest.param("d" * 20, 260, "d" * 20 + "-" + "h" * 260, id="23.1.21 no room at all"),
        pytest.param("d" * 241 + "." + "e" * 8, 10, "d" * 241 + "-" + "h" * 10, id="no part begins with a hyphen"),
    ],
)
def test_names(deployment, hash_chars, name):
    """At most 253 characters where that can be."""
    assert replicaset_name(deployment, "h" * hash_chars) == name


def test_the_name_is_the_same_in_every_process():
    """Two workers that create the ReplicaSet of one template meet at its name."""
    code = "from oarlock.controllers.history.model import revision_hash as h; print(h('digest', None), h('digest', 1))"
    found = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout.split()
    assert found == [revision_hash("digest", None), revision_hash("digest", 1)]
    assert len({*found, revision_hash("digest", 0)}) == 3, "no collision count is not one of 0"
