"""One step of a rolling update: which old pods go, and where new ones come beside them.

A case is a word a node, as `rollout.parsed` reads it: N n new, O o old (small: not ready), s S ready for ten seconds,
T t being deleted, f failed, p unassigned; `!` the node should not run one any more, `?` the node is gone.
"""

import pytest

from oarlock.controllers.daemonset.model import ON_DELETE
from oarlock.controllers.daemonset.plan import DaemonSnapshot
from oarlock.controllers.daemonset.podmap import GENERATION_LABEL
from oarlock.controllers.daemonset.rolling import Rolling, rolling
from tests.controllers.builders import NOW_MS, with_fields
from tests.controllers.daemonset.daemon_builders import NEW, ds
from tests.controllers.daemonset.rollout import parsed


def step(words: str, **fields: object) -> Rolling:
    known, podmap, eligible = parsed(words)
    pods = tuple(pod for on_node in podmap.values() for pod in on_node)
    before = {node: list(on_node) for node, on_node in podmap.items()}
    result = rolling(DaemonSnapshot(ds(**fields), pods, known, NEW), podmap, eligible, NOW_MS)
    assert podmap == before, "the map is the caller's"
    return result


def deletes(result: Rolling) -> str:
    """Such as `0O 3o`: number of the node and letter of the pod."""
    return " ".join(f"{int(pod.target_node[1:])}{pod.name[-1]}" for pod in result.delete)


def creates(result: Rolling) -> str:
    """Such as `0 3`: numbers of the nodes."""
    return " ".join(str(int(node[1:])) for node in result.create_on)


@pytest.mark.parametrize(
    ("words", "limit", "expected"),
    [
        pytest.param("O O O", 1, "0O", id="the first of the available ones"),
        pytest.param("O O O O O", 2, "0O 1O", id="26.2.1 as many as the limit"),
        pytest.param("O O", 5, "0O 1O", id="no more than there are"),
        pytest.param("N N N", 3, "", id="26.2.7 nothing is old"),
        pytest.param("N O N", 1, "1O", id="an available new one costs nothing"),
        pytest.param("n O N", 1, "", id="an unavailable new one uses up the limit"),
        pytest.param("n O O", 2, "1O", id="and leaves the rest of it"),
        pytest.param("n n n O O", 3, "", id="26.2.4 new ones that are never ready stop it"),
        pytest.param("n n O O O", 1, "", id="nor do more of them than the limit"),
        pytest.param("o o o o o", 3, "0o 1o 2o 3o 4o", id="26.2.5 all that are unavailable, beyond the limit"),
        pytest.param("o O O", 1, "0o", id="an unavailable old one goes and uses up the limit"),
        pytest.param("O O o", 1, "2o", id="wherever it stands"),
        pytest.param("o O O", 2, "0o 1O", id="an available one beside it within the limit"),
        pytest.param("O n O n", 2, "", id="the count is that of the whole walk"),
        pytest.param("O - O", 1, "", id="a node without a pod is unavailable"),
        pytest.param("O - O", 2, "0O", id="within the limit"),
        pytest.param("O t O", 1, "", id="being deleted only: unavailable, though it is still ready"),
        pytest.param("O T O", 1, "", id="a new one being deleted too"),
        pytest.param("NO O", 1, "", id="new and old: unavailable until the surplus is gone"),
        pytest.param("NO O", 2, "1O", id="and neither is touched here"),
        pytest.param("NN O", 1, "", id="two new ones: unavailable"),
        pytest.param("OO O", 1, "", id="two old ones: unavailable, none is touched"),
        pytest.param("tO O", 1, "0O", id="one being deleted beside an old one does not count"),
        pytest.param("tN O", 1, "1O", id="nor beside a new one"),
        pytest.param("!O O", 1, "0O", id="a node that should not run one is walked as well"),
        pytest.param("!n O", 1, "", id="and counts"),
        pytest.param("!- O", 1, "1O", id="without a pod it counts nowhere"),
        pytest.param("?n O", 1, "", id="a node that is gone counts"),
        pytest.param("?O N", 1, "0O", id="and its pod is replaced"),
        pytest.param("?o O", 1, "0o", id="also when that is unavailable"),
        pytest.param("f O", 1, "0f", id="a failed old one is unavailable"),
        pytest.param("p O", 1, "0p", id="an unassigned old one too"),
        pytest.param("O O O", 0, "0O", id="limit 0 is 1"),
        pytest.param("O O O", "50%", "0O 1O", id="26.2.8 50 % of 3"),
        pytest.param("O O !O", "50%", "0O", id="a percentage is of the nodes that should run one"),
        pytest.param("!O !O", "50%", "", id="none of them: 0 stays 0"),
        pytest.param("!o !O", "50%", "0o", id="what is unavailable goes all the same"),
        pytest.param("", 1, "", id="no nodes"),
    ],
)
def test_without_surge(words, limit, expected):
    """Deletes, in order. Nothing is created: presence is another step's."""
    result = step(words, max_unavailable=limit)
    assert deletes(result) == expected
    assert not result.create_on
    assert not result.error


@pytest.mark.parametrize(
    ("words", "limit", "created", "deleted"),
    [
        pytest.param("O O O O O", 2, "0 1", "", id="26.2.2 as many as the limit"),
        pytest.param("On On O", 2, "", "", id="26.2.2 no more until those are ready"),
        pytest.param("On On O O O", 1, "", "", id="nor when the limit is lower by now"),
        pytest.param("ON O", 1, "1", "0O", id="26.2.2 the old one goes, the next comes"),
        pytest.param("N N N", 2, "", "", id="26.2.7 nothing is old"),
        pytest.param("o o o o o", 3, "0 1 2 3 4", "", id="26.2.6 beside all unavailable ones, beyond the limit"),
        pytest.param("On o O", 1, "1", "", id="beside an unavailable one though the limit is used up"),
        pytest.param("O o O", 1, "1 0", "", id="unavailable ones first; they do not count"),
        pytest.param("O On O", 2, "0", "", id="the count is that of the whole walk"),
        pytest.param("O OO O", 1, "", "", id="two old ones: counts as surging, nothing else"),
        pytest.param("O nn O", 2, "0", "", id="two new ones: counts as surging"),
        pytest.param("on o", 1, "1", "", id="new and old unavailable: waits here, presence decides"),
        pytest.param("oN O", 1, "1", "0o", id="an available new one ends the old one in any state"),
        pytest.param("- O", 1, "1", "", id="a node without a pod is no concern of this step"),
        pytest.param("n O", 1, "1", "", id="new alone and unavailable is not surging"),
        pytest.param("t O", 1, "1", "", id="26.1.45 an old one being deleted: presence creates"),
        pytest.param("On t O O O", 1, "", "", id="26.1.45 at the limit nothing else is created"),
        pytest.param("tO O O", 1, "1", "", id="a node that is full for one being deleted gives its place to the next"),
        pytest.param("tO O O", 2, "1 2", "", id="to as many as there are places"),
        pytest.param("to O", 1, "1", "", id="full and unavailable: waits as well"),
        pytest.param("TO On O", 1, "", "", id="a full node does not count as surging, another does"),
        pytest.param("tO", 1, "", "", id="nowhere else: it waits"),
        pytest.param("T O", 1, "1", "", id="a new one being deleted is none"),
        pytest.param("!O O O", 1, "1", "0O", id="26.2.3 one that should not run goes while enough are available"),
        pytest.param("!O o O", 1, "1 2", "", id="26.2.3 it stays while they are not"),
        pytest.param("!O !O o o o N", 1, "2 3 4", "", id="nor do two of them"),
        pytest.param("!O On N", 1, "", "0O", id="of two the old one counts as available"),
        pytest.param("!O on N", 1, "", "", id="not if it is unavailable, even with a new one"),
        pytest.param("!O oN N", 1, "", "1o", id="nor if the new one is available"),
        pytest.param("!O !O N", 1, "", "0O 1O", id="all that are to spare"),
        pytest.param("!O !O o N", 1, "2", "0O", id="as many as are to spare"),
        pytest.param("!o N", 1, "", "0o", id="unavailable and should not run: goes"),
        pytest.param("!o o", 1, "1", "0o", id="even if nothing else is available"),
        pytest.param("!N O", 1, "1", "", id="a new one where none should run stays"),
        pytest.param("!ON", 1, "", "0O", id="new and old where none should run: the old one goes"),
        pytest.param("f O", 1, "0 1", "", id="a failed old one is unavailable"),
        pytest.param("p O", 1, "0 1", "", id="an unassigned old one too"),
        pytest.param("O O O", "50%", "0 1", "", id="a percentage rounds up"),
        pytest.param("O O O", "1%", "0", "", id="to 1 at least"),
        pytest.param("", 1, "", "", id="no nodes"),
    ],
)
def test_with_surge(words, limit, created, deleted):
    """Nodes to create on and deletes, in order."""
    result = step(words, max_unavailable=0, max_surge=limit)
    assert (creates(result), deletes(result)) == (created, deleted)
    assert not result.error


@pytest.mark.parametrize(
    ("words", "surge", "expected"),
    [
        pytest.param("S O", None, "0S", id="an old one that is not yet available is replaced first"),
        pytest.param("s O", None, "", id="a new one uses up the limit until its time is over"),
        pytest.param("Os O", 1, "", id="26.1.47 the old one stays for as long"),
    ],
)
def test_min_ready_seconds(words, surge, expected):
    """Ready for ten seconds: of 15 not available, of 10 it is."""
    limits = {"max_unavailable": 0 if surge else 1, "max_surge": surge}
    assert deletes(step(words, min_ready_seconds=15, **limits)) == expected
    ended = step(words, min_ready_seconds=10, **limits)
    assert deletes(ended) == {"S O": "0S", "s O": "1O", "Os O": "0O"}[words]


@pytest.mark.parametrize(
    ("words", "fields", "error"),
    [
        pytest.param("O", {"max_unavailable": None}, "maxUnavailable is absent", id="no limit"),
        pytest.param("o", {"max_unavailable": "x"}, "maxUnavailable", id="no number, though one is unavailable"),
        pytest.param("O", {"max_surge": "x"}, "maxSurge", id="no number for the surge"),
        pytest.param("O ?O", {"max_surge": 1}, "on node n001", id="surge: a node that is gone"),
        pytest.param("O ?o", {"max_surge": 1}, "on node n001", id="surge: a node that is gone, unavailable"),
    ],
)
def test_errors_abort_all_of_it(words, fields, error):
    """The text names the owner and the reason; nothing is written."""
    result = step(words, **{"max_unavailable": 0, **fields})
    assert result.error.startswith("rolling update of default/agent: ")
    assert error in result.error
    assert not result.delete
    assert not result.create_on


@pytest.mark.parametrize("words", ["O ?N", "O ?n", "O ?On", "O ?t"])
def test_a_node_that_is_gone_is_looked_up_only_for_an_old_pod_alone(words):
    """Otherwise its pods go through the walk like others."""
    assert step(words, max_unavailable=0, max_surge=2).error == ""


@pytest.mark.parametrize("strategy", [ON_DELETE, "", "Recreate"])
def test_other_strategies_touch_nothing(strategy):
    """Not even what is unavailable; invalid limits do not matter."""
    assert step("O o", strategy=strategy, max_unavailable=None) == Rolling()


def test_updated_by_generation_counts_as_new():
    """Nothing is replaced because its hash label is another, as long as the generation is the present one."""
    known, podmap, eligible = parsed("O O")
    made = {
        node: [with_fields(pod, labels={**pod.labels, GENERATION_LABEL: "7"}) for pod in pods]
        for node, pods in podmap.items()
    }
    for generation, count in ((7, 0), (8, 2), (None, 2)):
        owner = ds(max_unavailable=2, template_generation=generation)
        assert len(rolling(DaemonSnapshot(owner, (), known, NEW), made, eligible, NOW_MS).delete) == count
