"""What maxSurge and maxUnavailable come to. Numbers are those of section 23.5 and 10.1 of the upstream cases."""

import pytest

from oarlock.controllers.deployment.model import RECREATE
from oarlock.controllers.deployment.sizing.limits import (
    Limits,
    max_pods,
    max_surge,
    max_unavailable,
    min_available,
    resolve,
)
from tests.controllers.deployment.sizes_builders import dep


@pytest.mark.parametrize(
    ("surge", "unavailable", "replicas", "expected"),
    [
        pytest.param("0%", "0%", 0, (0, 1), id="both 0: one may be unavailable, even of none"),
        pytest.param("39%", "39%", 10, (4, 3), id="up and down"),
        pytest.param(None, "39%", 10, (0, 3), id="no surge given"),
        pytest.param("39%", None, 10, (4, 0), id="no maxUnavailable given"),
        pytest.param(None, None, 10, (0, 1), id="neither given"),
        pytest.param("25%", "25%", 1, (1, 0), id="the defaults, of 1"),
        pytest.param("25%", "25%", 4, (1, 1), id="the defaults, of 4"),
        pytest.param("0%", "1%", 2, (0, 1), id="a percentage that comes to nothing"),
        pytest.param("29%", 0, 100, (29, 0), id="no fraction is gained"),
        pytest.param(0, "29%", 100, (0, 29), id="no fraction is lost"),
        pytest.param("300%", 0, 2, (6, 0), id="a surge above 100 %"),
        pytest.param(7, 20, 10, (7, 20), id="numbers as they are"),
    ],
)
def test_resolved(surge, unavailable, replicas, expected):
    """23.5.5: surge and unavailable."""
    assert resolve(dep(replicas, max_surge=surge, max_unavailable=unavailable)) == Limits(*expected)


@pytest.mark.parametrize("text", ["", "1", "ten%", "1%%", " 1%", "1_0%", "1.5%", "\u0661%"])
@pytest.mark.parametrize(("field", "name"), [("max_surge", "maxSurge"), ("max_unavailable", "maxUnavailable")])
def test_what_is_no_limit(field, name, text):
    """23.5.5: said is which field it is and what stands there."""
    with pytest.raises(ValueError, match=f"{name} .*{text}"):
        resolve(dep(10, **{field: text}))


@pytest.mark.parametrize(
    ("replicas", "unavailable", "strategy", "most", "least"),
    [
        pytest.param(10, 5, "RollingUpdate", 5, 5, id="5 of 10"),
        pytest.param(10, 10, "RollingUpdate", 10, 0, id="all"),
        pytest.param(5, 10, "RollingUpdate", 5, 0, id="no more than there are"),
        pytest.param(0, 10, "RollingUpdate", 0, 0, id="of none"),
        pytest.param(5, 10, RECREATE, 0, 0, id="Recreate"),
        pytest.param(10, "50%", "RollingUpdate", 5, 5, id="50 %"),
        pytest.param(10, "60%", "RollingUpdate", 6, 4, id="60 %"),
        pytest.param(10, "100%", "RollingUpdate", 10, 0, id="100 % of 10"),
        pytest.param(5, "100%", "RollingUpdate", 5, 0, id="100 % of 5"),
    ],
)
def test_availability(replicas, unavailable, strategy, most, least):
    """23.5.11 and 23.5.12: how many need not be available, and how many have to stay so."""
    given = dep(replicas, max_surge=1, max_unavailable=unavailable, strategy=strategy)
    assert (max_unavailable(given), min_available(given)) == (most, least)


@pytest.mark.parametrize(
    ("replicas", "strategy", "surge", "most"),
    [
        pytest.param(10, "RollingUpdate", 2, 12, id="beyond the size"),
        pytest.param(10, "RollingUpdate", "25%", 13, id="rounded up"),
        pytest.param(10, RECREATE, 2, 10, id="Recreate has no surge"),
        pytest.param(0, "RollingUpdate", 2, 2, id="of none, a number stays"),
    ],
)
def test_surge(replicas, strategy, surge, most):
    """10.2: how many pods there may be."""
    given = dep(replicas, max_surge=surge, max_unavailable=1, strategy=strategy)
    assert (max_pods(given), max_surge(given)) == (most, most - replicas)
