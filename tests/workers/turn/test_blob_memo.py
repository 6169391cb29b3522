"""Decoding blobs once gives what decoding them every time gives, and keeps a bounded number."""

from __future__ import annotations

import random

import pytest

from oarlock.broker.values.objects import Cached
from oarlock.controllers.objects.codec import CodecError, decode_pod, encode
from oarlock.controllers.objects.model import OwnerRef, Pod
from oarlock.workers.turn.blob_memo import FORGOTTEN_AFTER, BlobMemo, LikePods


def cached(number: int, version: int = 0) -> Cached:
    pod = Pod("default", f"pod-{number}", restarts=version, labels={"app": "web"}, uid=f"uid-{number}")
    return Cached(str(1_000 + version), pod.uid, encode(pod))


def test_a_pod_that_has_not_changed_is_not_decoded_again() -> None:
    memo = BlobMemo(decode_pod, 100, least=3)
    first = memo.decode([cached(1), cached(2), cached(3)])
    second = memo.decode([cached(1), cached(2, version=1), cached(3)])
    assert second[0] is first[0]
    assert second[2] is first[2]
    assert (first[1].restarts, second[1].restarts) == (0, 1)


def test_pods_of_an_owner_share_what_they_have_in_common() -> None:
    """And each is what plain decoding makes of it, also where the owner, a label, or the phase is another."""
    decode = LikePods().decode
    blobs = [
        encode(Pod("default", f"pod-{number}", phase=phase, labels=labels, owner_refs=(ref,), uid=f"uid-{number}"))
        for number, (phase, labels, ref) in enumerate(
            (phase, {"app": app}, OwnerRef("apps/v1", "DaemonSet", app, f"uid-of-{app}", True))
            for app in ("log", "log", "web", "log")
            for phase in ("Pending", "Running", "Running")
        )
    ]
    pods = [decode(blob) for blob in blobs]
    assert pods == [decode_pod(blob) for blob in blobs]
    assert all(pod.labels is pods[0].labels and pod.owner_refs is pods[0].owner_refs for pod in pods[:6])
    assert pods[6].labels is not pods[0].labels


def test_nothing_is_kept_where_few_are_asked_for() -> None:
    memo = BlobMemo(decode_pod, 100, least=3)
    one, two = memo.decode([cached(1), cached(2)]), memo.decode([cached(1), cached(2)])
    assert one == two
    assert one[0] is not two[0]
    assert len(memo) == 0


def test_large_owners_are_forgotten_after_many_small_ones() -> None:
    memo = BlobMemo(decode_pod, 100, least=3)
    for small, kept in ((FORGOTTEN_AFTER - 1, True), (FORGOTTEN_AFTER, False)):
        (first, *_) = memo.decode([cached(1), cached(2), cached(3)])
        for _ in range(small):
            memo.decode([cached(4)])
        (again, *_) = memo.decode([cached(1), cached(2), cached(3)])
        assert (again is first) is kept


def test_it_equals_plain_decoding_and_is_bounded() -> None:
    """Owners of many sizes, of some more pods than are kept; seed 7."""
    chance = random.Random(7)
    memo = BlobMemo(decode_pod, kept_max=40, least=5)
    for _ in range(300):
        start = chance.randrange(200)
        asked = [cached(number, chance.randrange(2)) for number in range(start, start + chance.randrange(80))]
        assert memo.take(given := [*asked]) == tuple(decode_pod(each.blob) for each in asked)
        assert not given
        assert len(memo) <= 2 * (40 + 80)


def test_an_owner_of_more_than_are_kept_finds_its_own_pods_or_room() -> None:
    memo = BlobMemo(decode_pod, 4)
    first = memo.decode([cached(number) for number in range(6)])
    again = memo.decode([cached(0, version=1), *(cached(number) for number in range(1, 6))])
    assert all(one is other for one, other in zip(first[1:], again[1:], strict=True))
    memo.decode([cached(number) for number in range(10, 16)])
    assert len(memo) == 6


def test_what_is_met_again_outlives_what_is_not() -> None:
    memo = BlobMemo(decode_pod, kept_max=10)
    (known,) = memo.decode([cached(0)])
    for number in range(1, 100):
        memo.decode([cached(number)])
        assert memo.decode([cached(0)])[0] is known


@pytest.mark.parametrize("count", [1, 100], ids=["few", "many"])
def test_a_broken_blob_is_an_error_every_time(count: int) -> None:
    memo = BlobMemo(decode_pod, 1_000, least=64)
    asked = [cached(number) for number in range(count)] + [Cached("1", "u", b"\xc1")]
    for _ in range(2):
        with pytest.raises(CodecError):
            memo.decode(asked)
