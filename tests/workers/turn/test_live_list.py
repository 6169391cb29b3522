"""When the cache may not be acted on: a live list before acting, and only then."""

from __future__ import annotations

from typing import Any

import pytest

from oarlock.broker.values.claims import Claim
from oarlock.broker.values.objects import Cached
from oarlock.controllers.objects import codec
from oarlock.controllers.objects.model import OwnerRef, Pod, ReplicaSet, ReplicaSetStatus
from tests.controllers.builders import pod, pods, rs, with_fields
from tests.workers.turn.turn_script import claimed, plays

OLD_MS = 120_001


def counted(replicas: int, pods_said: int, **fields: Any) -> ReplicaSet:
    """An owner whose status says so many pods."""
    return rs(replicas, status=ReplicaSetStatus(pods_said, pods_said, pods_said, pods_said, None, 1), **fields)


def test_creates_with_a_lost_record() -> None:
    """Writes were announced and the record of them is gone: what the cache lacks may have been created."""
    plays(
        claimed(counted(3, 2), pods("R"), unsettled=True),
        """
        list selected pods -> 50 RR
        reserve 1          -> all
        announce create 2  -> recorded
        send create 2      -> 201@51
        ok: need pods 50; settled; drop create 2; need pods 51
        """,
    )


def test_nothing_is_missing_in_the_list() -> None:
    """The cache has to pass it all the same: it decides the next turn."""
    plays(
        claimed(counted(2, 2), pods("R"), unsettled=True),
        """
        list selected pods -> 50 RR
        ok: need pods 50; settled
        """,
    )


def test_deletes_with_a_lost_record() -> None:
    """The victim is named by the version in the list, and pods of others and what ended do not count. One that is
    selected no more is not in the list; a later turn lets it go.
    """
    plays(
        claimed(counted(1, 2), pods("RR"), unsettled=True),
        """
        list selected pods   -> 50 RxRFt
        reserve 1            -> all
        announce delete 0@40 -> recorded
        send delete 0@40     -> 200@52
        ok: need pods 50; settled; answered 0@40
        """,
    )


def test_adoptions_with_a_lost_record() -> None:
    """One that finds its pod gone leads to a create in the same turn."""
    plays(
        claimed(counted(1, 0), pods("o"), unsettled=True),
        """
        list selected pods   -> 50 o
        read replicasets web -> alive
        send adopt 0         -> 404
        reserve 1            -> all
        announce create 1    -> recorded
        send create 1        -> 201@51
        ok: need pods 50; settled; drop create 1; need pods 51
        """,
    )


@pytest.mark.parametrize(
    "claim",
    [
        pytest.param(claimed(counted(2, 2), pods("RR"), unsettled=True), id="nothing to do"),
        pytest.param(claimed(counted(3, 2), pods("RR"), unsettled=True, needs="pods=9"), id="not satisfied"),
        pytest.param(
            claimed(with_fields(counted(3, 2), deleting_ms=1), pods("RR"), unsettled=True), id="owner being deleted"
        ),
    ],
)
def test_no_list_without_acting(claim: Claim) -> None:
    plays(claim, "ok", view_age_ms=OLD_MS)


def test_no_list_for_a_release() -> None:
    plays(
        claimed(counted(1, 1), pods("Rm"), unsettled=True),
        """
        send release 1 -> 200@20
        ok: need pods 20
        """,
    )


def test_no_list_while_the_record_is_there() -> None:
    """The mark stands beside every record; it says nothing of its own."""
    plays(
        claimed(rs(1), (), "reserved 0", unsettled=True),
        """
        reserve 1         -> all
        announce create 0 -> recorded
        send create 0     -> 201@20
        ok: drop create 0; need pods 20
        """,
    )


def test_no_list_for_an_owner_never_acted_on() -> None:
    plays(
        claimed(rs(1)),
        """
        reserve 1         -> all
        announce create 0 -> recorded
        send create 0     -> 201@20
        ok: drop create 0; need pods 20
        """,
        view_age_ms=OLD_MS,
    )


def test_deletes_on_an_old_view() -> None:
    plays(
        claimed(counted(1, 2), pods("RR")),
        """
        list selected pods   -> 50 nR
        reserve 1            -> all
        announce delete 0@40 -> recorded
        send delete 0@40     -> 200@51
        ok: need pods 50; settled; answered 0@40
        """,
        view_age_ms=OLD_MS,
    )


def test_deletes_on_an_old_view_that_are_none() -> None:
    """The pod in excess has gone while nobody told the cache."""
    plays(
        claimed(counted(1, 1), pods("RR")),
        """
        list selected pods -> 50 R
        ok: need pods 50; settled
        """,
        view_age_ms=OLD_MS,
    )


def test_deletes_on_a_view_just_young_enough() -> None:
    plays(
        claimed(counted(1, 2), pods("nR")),
        """
        reserve 1           -> all
        announce delete 0@7 -> recorded
        send delete 0@7     -> 200@20
        ok: answered 0@7
        """,
        view_age_ms=OLD_MS - 1,
    )


DEPLOYMENT = OwnerRef("apps/v1", "Deployment", "web", "dep", True, True)
SIBLING = rs(1, name="web-old", uid="old", owner_refs=(DEPLOYMENT,))
OF_SIBLING = pod("web-old-x", owner_refs=(OwnerRef("apps/v1", "ReplicaSet", "web-old", "old", True, True),))


def cached(*objects: Pod | ReplicaSet) -> list[Cached]:
    return [Cached("9", each.uid, codec.encode(each)) for each in objects]


def spread() -> tuple[Pod, ...]:
    """Two pods of ours, the second on the node where a pod of the sibling is."""
    first, second = pods("RR")
    return first, with_fields(second, node_name="n2")


def test_related_pods_weigh_in() -> None:
    """11.2.7: the node with more pods of the owner's relatives loses one; these are looked up for the ranking."""
    owner = counted(1, 2, owner_refs=(DEPLOYMENT,))
    plays(
        claimed(owner, spread()),
        """
        look replicasets owner=dep                 -> $
        look pods owner=old orphan=default/app=web -> $
        reserve 1                                  -> all
        announce delete 1@7                        -> recorded
        send delete 1@7                            -> 200@20
        ok: answered 1@7
        """,
        answers=[cached(owner, SIBLING), cached(with_fields(OF_SIBLING, node_name="n2"))],
    )


@pytest.mark.parametrize(
    ("replicas", "refs", "victims"),
    [
        pytest.param(1, (), "0@7", id="an owner without a controller"),
        pytest.param(1, (with_fields(DEPLOYMENT, controller=False),), "0@7", id="an owner that is only referred to"),
        pytest.param(0, (DEPLOYMENT,), "0@7 1@7", id="all of them go: nothing to rank"),
    ],
)
def test_related_pods_are_looked_up_only_for_a_ranking(replicas: int, refs: tuple[OwnerRef, ...], victims: str) -> None:
    count = len(victims.split())
    plays(
        claimed(counted(replicas, 2, owner_refs=refs), spread()),
        f"""
        reserve {count}           -> all
        announce delete {victims} -> recorded
        send delete {victims}     -> {" ".join(["200@20"] * count)}
        ok: {"; ".join(f"answered {each}" for each in victims.split())}
        """,
    )


def test_an_only_child_has_no_pods_to_look_up() -> None:
    owner = counted(1, 2, owner_refs=(DEPLOYMENT,))
    plays(
        claimed(owner, pods("nR")),
        """
        look replicasets owner=dep -> $
        reserve 1                  -> all
        announce delete 0@7        -> recorded
        send delete 0@7            -> 200@20
        ok: answered 0@7
        """,
        answers=[cached(owner)],
    )


def test_relatives_are_looked_up_once_and_the_list_is_ranked() -> None:
    owner = counted(1, 2, owner_refs=(DEPLOYMENT,))
    plays(
        claimed(owner, spread()),
        """
        look replicasets owner=dep                 -> $
        look pods owner=old orphan=default/app=web -> $
        list selected pods                         -> 50 Rn
        reserve 1                                  -> all
        announce delete 1@40                       -> recorded
        send delete 1@40                           -> 200@51
        ok: need pods 50; settled; answered 1@40
        """,
        answers=[cached(owner, SIBLING), cached(OF_SIBLING)],
        view_age_ms=OLD_MS,
    )
