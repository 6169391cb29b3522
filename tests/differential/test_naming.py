"""What stands for the names of a Deployment's ReplicaSets: the same on both sides, whatever their hashes."""

from __future__ import annotations

from tests.differential.naming import Naming
from tests.differential.reading import POD_HASH
from tests.differential.recorded import replicaset


def naming(*learnt: tuple[str, str]) -> Naming:
    """Of ReplicaSets by name and image."""
    made = Naming()
    for name, image in learnt:
        made.learn(replicaset(name, image))
    return made


def test_a_name_is_that_of_the_deployment_and_its_contents() -> None:
    one, other = naming(("web-5d", "nginx:1")), naming(("web-77f", "nginx:1"))
    assert one.of("web-5d") == other.of("web-77f")
    assert one.of("web-5d").startswith("web:nginx:1~")
    assert one.of("web-5d") != naming(("web-5d", "nginx:2")).of("web-5d")
    assert one.of("web-5d") != naming(("api-5d", "nginx:1")).of("api-5d")


def test_the_second_of_one_template_is_told_apart() -> None:
    made = naming(("web-a", "nginx:1"), ("web-b", "nginx:1"), ("web-a", "nginx:1"))
    assert made.of("web-b") == f"{made.of('web-a')}#2"


def test_labels_and_messages() -> None:
    made = naming(("web-a", "nginx:1"), ("web-ab", "nginx:2"))
    called = made.of("web-ab")
    assert made.labelled({"app": "web", POD_HASH: "ab"}) == {"app": "web", POD_HASH: called.partition(":")[2]}
    assert made.labelled({POD_HASH: "never seen"}) == {POD_HASH: "unknown"}
    assert (
        made.told('ReplicaSet "web-ab" and web-a of web-abc')
        == f'ReplicaSet "{called}" and {made.of("web-a")} of web-abc'
    )


def test_any_other_name_stands_for_itself() -> None:
    assert (naming().of("web"), naming().told("web-a")) == ("web", "web-a")
    bare = replicaset("web-a", "nginx:1")
    del bare["metadata"]["labels"][POD_HASH]
    made = Naming()
    made.learn(bare)
    assert made.of("web-a") == "web-a"
