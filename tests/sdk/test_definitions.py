"""What a definition refuses to say, in one line."""

from __future__ import annotations

from functools import partial
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
    "one child": (
        {"children": oarlock.Kind("v1", "Pod")},
        r"children= has to be a list, not a Kind: write children=\[",
    ),
    "one watch": (
        {"watches": oarlock.watch("v1 Secret", names=lambda obj: [])},
        r"watches= has to be a list, not a Watch: write watches=\[",
    ),
    "a kind to watch": ({"watches": ["v1 Secret"]}, r"watches= holds 'v1 Secret': write oarlock\.watch\("),
    "a text for a time": ({"every_s": "60"}, "every_s='60' has to be a number, not a str"),
    "none of them": ({"concurrency": None}, "concurrency=None has to be a number, not None"),
    "a number of retries": ({"retry": 5}, r"retry=5 has to be an oarlock\.Retry, as oarlock\.Retry\("),
    "a text for a wait": ({"retry": oarlock.Retry(max_s="9")}, "Retry: max_s='9' has to be a number"),  # type: ignore[arg-type]
    "a finalizer of no name": ({"finalizer": True}, "finalizer=True has to be a text, as"),
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


def test_an_index_function_is_one() -> None:
    with pytest.raises(oarlock.BadDefinition, match=r"watch\(v1 Secret\): 'secret_of' has to be a function"):
        oarlock.watch("v1 Secret", names="secret_of")  # type: ignore[arg-type]


def test_a_decorator_without_parentheses_is_told_what_it_misses() -> None:
    """Python gives it the function for its kind, and makes no controller; the file would have none."""

    def site(obj: Any, children: Any) -> None: ...

    for name in ("desired", "steps"):
        said = rf"site: @oarlock\.{name} has to say of which kind: write @oarlock\.{name}\(Site\)"
        with pytest.raises(oarlock.BadDefinition, match=said):
            getattr(oarlock, name)(site)


def test_a_controller_is_a_function() -> None:
    with pytest.raises(oarlock.BadDefinition, match=r"site: @oarlock\.desired stands above a function, not a str"):
        oarlock.desired("v1 Pod", name="site")("site")  # type: ignore[arg-type]
    called = partial(lambda part, obj, children: oarlock.Result(), "web")  # a call of it has no name of its own
    with pytest.raises(oarlock.BadDefinition, match=r"'' cannot name a controller: .*; give it name="):
        oarlock.desired("v1 Pod")(called)
    assert oarlock.desired("v1 Pod", name="site")(called).name == "site"
