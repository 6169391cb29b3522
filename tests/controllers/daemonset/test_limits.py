"""How many nodes an update may do without or may double, and which pods count as updated."""

import pytest

from oarlock.controllers.daemonset.limits import max_surge, max_unavailable, surges
from oarlock.controllers.daemonset.model import ON_DELETE, ROLLING_UPDATE
from oarlock.controllers.daemonset.podmap import is_updated
from tests.controllers.builders import pod
from tests.controllers.daemonset.daemon_builders import ds


@pytest.mark.parametrize(
    ("unavailable", "surge", "desired", "limits"),
    [
        pytest.param(0, None, 0, (0, 0), id="26.2.8 no nodes: everything 0"),
        pytest.param(1, None, 2, (1, 0), id="26.2.8 a number is taken as it is"),
        pytest.param(7, None, 2, (7, 0), id="a number above the nodes too"),
        pytest.param(0, None, 2, (1, 0), id="26.2.8 both 0: one may be unavailable"),
        pytest.param(0, 0, 2, (1, 0), id="26.2.8 both 0, the surge given"),
        pytest.param("0%", "0%", 2, (1, 0), id="both 0 %"),
        pytest.param("0%", "0%", 0, (0, 0), id="both 0 % of no nodes stays 0"),
        pytest.param("50%", None, 2, (1, 0), id="26.2.8 50 % of 2"),
        pytest.param("50%", None, 3, (2, 0), id="26.2.8 50 % of 3, one of them terminating or missing"),
        pytest.param(0, "50%", 2, (0, 1), id="26.2.8 surge 50 % of 2"),
        pytest.param(0, "50%", 3, (0, 2), id="surge 50 % of 3: rounded up as well"),
        pytest.param(0, "100%", 2, (0, 2), id="26.2.8 surge 100 % of 2"),
        pytest.param("1%", 0, 100, (1, 0), id="1 % of 100"),
        pytest.param("1%", 0, 101, (2, 0), id="1 % of 101"),
        pytest.param("10%", 0, 1000, (100, 0), id="10 % of 1000: exact"),
        pytest.param("29%", 0, 100, (29, 0), id="no fraction is lost or gained"),
        pytest.param(0, "1%", 1, (0, 1), id="any percentage of one node is that node"),
        pytest.param("20%", "20%", 5, (1, 1), id="both, where one was validated away"),
        pytest.param("10%", "10%", 0, (0, 0), id="of no nodes"),
    ],
)
def test_limits(unavailable, surge, desired, limits):
    """Nodes that may be unavailable, and nodes that may carry two pods."""
    owner = ds(max_unavailable=unavailable, max_surge=surge)
    assert (max_unavailable(owner, desired), max_surge(owner, desired)) == limits


@pytest.mark.parametrize(
    ("unavailable", "surge", "text"),
    [
        pytest.param(None, None, "maxUnavailable is absent", id="absent"),
        pytest.param(None, 1, "maxUnavailable is absent", id="absent, though it surges"),
        pytest.param("1", None, "maxUnavailable .* '1'", id="a text without percent sign"),
        pytest.param("ten%", None, "maxUnavailable .* 'ten%'", id="no number"),
        pytest.param("1%%", None, "maxUnavailable .* '1%%'", id="something behind it"),
        pytest.param(" 1%", None, "maxUnavailable .* ' 1%'", id="a blank"),
        pytest.param("1_0%", None, "maxUnavailable .* '1_0%'", id="a number only to Python"),
        pytest.param("\u0661%", None, "maxUnavailable", id="a digit of another script"),
        pytest.param("", None, "maxUnavailable", id="empty"),
        pytest.param(0, "x", "maxSurge .* 'x'", id="the surge, needed since the other is 0"),
    ],
)
def test_what_is_no_limit(unavailable, surge, text):
    """It is said which field it is and what stands there."""
    owner = ds(max_unavailable=unavailable, max_surge=surge)
    with pytest.raises(ValueError, match=text):
        max_unavailable(owner, 3)


def test_an_invalid_surge_is_said_where_it_is_asked_for():
    """Also when the other limit is in order."""
    with pytest.raises(ValueError, match="maxSurge"):
        max_surge(ds(max_unavailable=1, max_surge="x"), 3)


@pytest.mark.parametrize(
    ("strategy", "surge", "expected"),
    [
        pytest.param(ROLLING_UPDATE, None, False, id="26.3.5 absent"),
        pytest.param(ROLLING_UPDATE, 0, False, id="26.3.5 0"),
        pytest.param(ROLLING_UPDATE, 1, True, id="26.3.5 1"),
        pytest.param(ROLLING_UPDATE, "0%", False, id="26.3.5 0 %"),
        pytest.param(ROLLING_UPDATE, "1%", True, id="26.3.5 1 %: of one node"),
        pytest.param(ROLLING_UPDATE, "100%", True, id="26.3.5 100 %"),
        pytest.param(ROLLING_UPDATE, "many", False, id="26.3.5 no number"),
        pytest.param(ON_DELETE, 1, False, id="26.3.5 another strategy"),
        pytest.param("", 1, False, id="26.3.5 no strategy"),
    ],
)
def test_surges(strategy, surge, expected):
    """Whether a node may carry two pods at all."""
    assert surges(ds(strategy=strategy, max_surge=surge)) is expected


def test_another_strategy_has_no_surge():
    """Whatever the fields say."""
    assert max_surge(ds(strategy=ON_DELETE, max_surge="50%"), 10) == 0


HASH, GENERATION = "controller-revision-hash", "pod-template-generation"


@pytest.mark.parametrize(
    ("labels", "revision", "generation", "updated"),
    [
        pytest.param({HASH: "h2"}, "h2", None, True, id="26.3.1 by hash, without generation"),
        pytest.param({HASH: "h2", GENERATION: "1"}, "h2", 2, True, id="26.3.1 by hash, of an older generation"),
        pytest.param({HASH: "h1", GENERATION: "2"}, "h2", 2, True, id="26.3.1 by generation, of another hash"),
        pytest.param({GENERATION: "2"}, "h2", 2, True, id="26.3.1 by generation alone"),
        pytest.param({HASH: "h2", GENERATION: "2"}, "h2", 2, True, id="26.3.1 by both"),
        pytest.param({HASH: "h1", GENERATION: "1"}, "h2", 2, False, id="26.3.1 by neither"),
        pytest.param({GENERATION: "2"}, "h2", None, False, id="26.3.1 the owner has no generation"),
        pytest.param({}, "h2", 2, False, id="26.3.1 no labels"),
        pytest.param({GENERATION: "two"}, "h2", 2, False, id="26.3.1 a generation that is no number"),
        pytest.param({GENERATION: "02"}, "h2", 2, False, id="26.3.1 a number written otherwise"),
        pytest.param({HASH: "H2"}, "h2", None, False, id="26.3.1 a bad hash"),
        pytest.param({HASH: ""}, "", None, False, id="26.3.1 no revision: nobody is of it"),
        pytest.param({GENERATION: "0"}, "h2", 0, True, id="generation 0 is one"),
        pytest.param({GENERATION: "None"}, "h2", None, False, id="none is not a text"),
    ],
)
def test_updated(labels, revision, generation, updated):
    """By the hash label or by the generation of the template."""
    assert is_updated(pod("a", labels=labels), revision, generation) is updated
