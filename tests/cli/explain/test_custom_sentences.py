"""What `explain` says of an object of a user's own controller, where another controller makes the child it wants."""

from __future__ import annotations

from typing import Any

import pytest

import oarlock
from oarlock.cli.explain import custom_sentences
from oarlock.cli.explain.custom_sentences import CustomOwner, custom_subject
from oarlock.controllers.entries import DesiredController
from oarlock.controllers.objects.whole import Whole
from oarlock.controllers.wanted import Changes, Wanted, WantedChild
from oarlock.sdk.entries import entries_of

SITE = oarlock.Kind("example.com/v1", "Site")
CHILD = WantedChild("configmaps.v1", "ConfigMap", "v1", "shop", "a", b"{}", "site:1")


@oarlock.desired(SITE, children=["v1 ConfigMap"])
def site(obj: dict[str, Any], children: oarlock.Children) -> oarlock.Result:
    return oarlock.Result()


@pytest.mark.parametrize(
    ("plan", "last", "waits"),
    [
        (Changes(), "Site shop/blog (resourceVersion 5, generation 1) has children in the cache: none.", False),
        (Changes(create=(CHILD,)), "A turn would create ConfigMap a.", False),
        (Changes(taken=((CHILD, "blog"),)), "ConfigMap a is made by the controller blog.", True),
        (Changes(waits=True), "It waits until children that are being deleted have gone.", True),
    ],
    ids=["nothing to do", "a create", "another controller's", "a delete under way"],
)
def test_what_a_turn_would_do(plan: Changes, last: str, waits: bool) -> None:
    (controller,) = [each for each in entries_of([site]) if isinstance(each, DesiredController)]
    owner = CustomOwner(Whole("shop", "blog", "u-1", generation=1), "5", controller, (), plan, "", "")
    assert (owner.sentences("Site")[-1], owner.waits) == (last, waits)


def test_a_function_that_ended_workers_is_not_asked_here(monkeypatch: pytest.MonkeyPatch) -> None:
    """It would end the command in the same way."""
    (controller,) = [each for each in entries_of([site]) if isinstance(each, DesiredController)]
    asked: list[str] = []
    monkeypatch.setattr(custom_sentences, "_cached", lambda inspector, resource: [])
    monkeypatch.setattr(DesiredController, "want", lambda self, obj, owned, others: asked.append(obj.key) or Wanted())
    blog = Whole("shop", "blog", "u-1", generation=1)
    for deadly, told in ((False, 0), (True, 1)):
        owner = custom_subject(None, controller, "5", blog, deadly)  # type: ignore[arg-type]
        assert sum("could end this command" in line for line in owner.sentences("Site")) == told
        assert (owner.waits, owner.plan is None) == (deadly, deadly)
    assert asked == ["shop/blog"]
