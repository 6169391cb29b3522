"""What a definition refuses to say, in one line."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock

REFUSED: dict[str, tuple[dict[str, Any], str]] = {
    "no interval": ({"every_s": 0}, "every_s=0 has to be"),
    "never": ({"every_s": float("inf")}, "every_s=inf has to be"),
    "no number": ({"every_s": float("nan")}, "every_s=nan has to be"),
    "fewer than none": ({"concurrency": -1}, "concurrency=-1 has to be"),
    "a rate below nothing": ({"rate_per_s": -1}, "rate_per_s=-1 has to be 0, for no bound"),
    "a rate that never ends": ({"rate_per_s": float("inf")}, "rate_per_s=inf has to be"),
    "a rate that is none": ({"rate_per_s": float("nan")}, "rate_per_s=nan has to be"),
    "before now": ({"retry": oarlock.Retry(base_s=-1)}, r"give 0 <= base_s <= max_s"),
    "upside down": ({"retry": oarlock.Retry(base_s=9, max_s=1)}, r"give 0 <= base_s <= max_s"),
    "a text of fields": ({"fields": "data"}, r"fields='data' has to be a list: write \['data'\]"),
    "a text of children": ({"children": "v1 Pod"}, r"children='v1 Pod' has to be a list: write \['v1 Pod'\]"),
    "no end": ({"retry": oarlock.Retry(max_s=float("inf"))}, r"give 0 <= base_s <= max_s"),
}


@pytest.mark.parametrize(("options", "said"), REFUSED.values(), ids=list(REFUSED))
def test_times_and_numbers_that_cannot_be(options: dict[str, Any], said: str) -> None:
    with pytest.raises(oarlock.BadDefinition, match=f"site: .*{said}"):

        @oarlock.steps("v1 ConfigMap", name="site", **options)
        def site(obj: Any, ctx: Any) -> None: ...


def test_the_fields_of_a_watch_are_a_list() -> None:
    """Of a text each letter would be a field, so nothing but the identity would be cached."""
    with pytest.raises(oarlock.BadDefinition, match=r"watch\(v1 Secret\): fields='data' has to be a list"):
        oarlock.watch("v1 Secret", names=lambda obj: [], fields="data")
