"""Lists: which objects, as of which resourceVersion, and page by page.

The first page of a list fixes the resourceVersion; later pages show that same moment, found again by
undoing the kind's later events, unless it was kept. When neither is possible, the answer is 410 with a token
that goes on with the present state, as upstream does (apiserver/pkg/storage/continue.go, etcd3/errors.go).
"""

from __future__ import annotations

import base64
import binascii
from bisect import bisect_right
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, Final

import orjson

from oarlock.sandbox.apiserver.errors import ApiError, FieldError, bad_request, expired, invalid
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.store.events import Listing, Stored
from oarlock.sandbox.apiserver.store.store import Store
from oarlock.sandbox.apiserver.text.selectors import Selector

_TOKEN_VERSION: Final = "meta.k8s.io/v1"  # noqa: S105 - a format's name, not a secret
_CURRENT: Final = -1  # in a token: go on with the present state
_TOO_OLD_TO_CONTINUE: Final = (
    "The provided continue parameter is too old to display a consistent list result. You can start a new "
    "list without the continue parameter, or use the continue token in this response to retrieve the "
    "remainder of the results. Continuing with the provided token results in an inconsistent list - objects "
    "that were created, modified, or deleted between the time the first chunk was returned and now may show "
    "up in the list."
)


SNAPSHOTS_MAX: Final = 8  # lists at a time; another one works its state out anew for every page
SNAPSHOT_S: Final = 300.0
"""How long a list may be gone on with, whatever has changed (upstream: --etcd-compaction-interval)."""
SnapshotKey = tuple[str, str | None, int]
"""Kind name, namespace (None: all), resourceVersion."""


@dataclass(frozen=True, slots=True)
class Page:
    items: list[Stored]
    meta: dict[str, Any]  # ListMeta


class Snapshots:
    """The states of lists that are being paged through, so that a page costs only what is on it.

    Listings by kind, namespace and resourceVersion, the latest few, with the time of their first page. They may not be
    changed.
    """

    __slots__ = ("_kept",)

    def __init__(self) -> None:
        self._kept: dict[SnapshotKey, tuple[float, Listing]] = {}

    def get(self, key: SnapshotKey, now_s: float) -> Listing | None:
        begun_s, listing = self._kept.get(key, (0.0, None))
        return listing if now_s - begun_s < SNAPSHOT_S else None

    def keep(self, key: SnapshotKey, listing: Listing, now_s: float) -> None:
        """Remember a state for later pages; the oldest list makes room."""
        begun_s, _ = self._kept.pop(key, (now_s, None))
        while len(self._kept) >= SNAPSHOTS_MAX:
            del self._kept[next(iter(self._kept))]
        self._kept[key] = begun_s, listing

    def drop(self, key: SnapshotKey) -> None:
        """Forget a state whose last page was given."""
        self._kept.pop(key, None)


def parse_rv(text: str) -> int:
    """A resourceVersion parameter; empty is 0. Raises ApiError 400."""
    if not text:
        return 0
    if not text.isascii() or not text.isdigit():
        raise bad_request(f'invalid resource version "{text}": must be a whole number')
    return int(text)


def state_at(store: Store, kind: Kind, namespace: str | None, rv: int) -> Listing | None:
    """The objects as they were at `rv`, by namespace and name; None if the history does not reach back."""
    log = store.logs[kind.name]
    position = log.position_after(rv)
    if position is None:
        return None
    later = log.events[position - log.base :]
    listing = store.sorted(kind.name, namespace)
    if not later:
        return listing
    state = dict(listing)
    for event in reversed(later):
        if namespace is not None and event.namespace != namespace:
            continue
        if event.previous is None:
            state.pop((event.namespace, event.name), None)
        else:
            state[event.namespace, event.name] = event.previous
    return sorted(state.items(), key=lambda item: item[0])


def list_page(
    store: Store,
    snapshots: Snapshots,
    kind: Kind,
    namespace: str | None,
    selector: Selector | None,
    params: Mapping[str, str],
) -> Page:
    """One page for the query parameters resourceVersion, resourceVersionMatch, limit and continue.

    Raises ApiError 400, 410, 422 or 504 in the cases upstream does.
    """
    limit = _limit(params.get("limit", ""))
    token = params.get("continue", "")
    start = 0
    if token:
        if parse_rv(params.get("resourceVersion", "")):
            raise bad_request("specifying resource version is not allowed when using continue")
        rv, after = _read_token(token)
        if rv == _CURRENT:
            rv = store.rv
        listing = _continued(store, snapshots, kind, namespace, rv)
        if listing is None:
            raise expired(_TOO_OLD_TO_CONTINUE, _token(_CURRENT, after))
        start = bisect_right(listing, after, key=_place)
    else:
        rv, listing = _first(store, kind, namespace, params)
    items, end = _taken(listing, start, limit, selector)
    meta: dict[str, Any] = {"resourceVersion": str(rv)}
    key = (kind.name, namespace, rv)
    if end is not None:
        snapshots.keep(key, listing, store.clock())
        meta["continue"] = _token(rv, _place(listing[end - 1]))
        if selector is None:
            meta["remainingItemCount"] = len(listing) - end
    elif token:
        snapshots.drop(key)
    return Page(items, meta)


def _continued(store: Store, snapshots: Snapshots, kind: Kind, namespace: str | None, rv: int) -> Listing | None:
    """The state of a list's first page; None if nobody knows it any more."""
    if not store.logs[kind.name].cut_rv <= rv <= store.rv:
        return None
    return snapshots.get((kind.name, namespace, rv), store.clock()) or state_at(store, kind, namespace, rv)


def _place(item: tuple[tuple[str, str], Stored]) -> tuple[str, str]:
    return item[0]


def _taken(listing: Listing, start: int, limit: int, selector: Selector | None) -> tuple[list[Stored], int | None]:
    """Up to `limit` (0: all) objects from position `start` on that match, and where the next page goes on, if any."""
    if selector is None:
        stop = start + limit if limit else len(listing)
        return [stored for _, stored in listing[start:stop]], stop if stop < len(listing) else None
    items: list[Stored] = []
    end = start
    for position in range(start, len(listing)):
        stored = listing[position][1]
        if selector.matches(stored.obj):
            if limit and len(items) == limit:
                return items, end
            items.append(stored)
            end = position + 1
    return items, None


def _first(store: Store, kind: Kind, namespace: str | None, params: Mapping[str, str]) -> tuple[int, Listing]:
    asked, match = params.get("resourceVersion", ""), params.get("resourceVersionMatch", "")
    rv = parse_rv(asked)
    field, error = "resourceVersionMatch", None
    if match and not asked:
        error = FieldError.forbidden(field, f"{field} is forbidden unless resourceVersion is provided")
    elif match and match not in ("Exact", "NotOlderThan"):
        error = FieldError.unsupported(field, match, ["Exact", "NotOlderThan", ""])
    elif match == "Exact" and not rv:
        error = FieldError.forbidden(field, f'{field} "exact" is forbidden for resourceVersion "0"')
    if error is not None:
        raise invalid("ListOptions", "meta.k8s.io", "", [error])
    if rv > store.rv:
        raise too_large_rv(rv, store.rv)
    if match == "Exact":
        listing = state_at(store, kind, namespace, rv)
        if listing is None:
            raise expired("The resourceVersion for the provided list is too old.")
        return rv, listing
    return store.rv, store.sorted(kind.name, namespace)


def too_large_rv(asked: int, current: int) -> ApiError:
    """504 for a resourceVersion this server has not reached (upstream: NewTooLargeResourceVersionError)."""
    cause = {"reason": "ResourceVersionTooLarge", "message": "Too large resource version"}
    return ApiError(
        504,
        "Timeout",
        f"Timeout: Too large resource version: {asked}, current: {current}",
        {"causes": [cause], "retryAfterSeconds": 1},
        retry_after_s=1,
    )


def _limit(text: str) -> int:
    if not text:
        return 0
    try:
        return max(0, int(text))
    except ValueError:
        raise bad_request(f'invalid limit "{text}": must be a whole number') from None


def _token(rv: int, last: tuple[str, str]) -> str:
    """A token to go on after the object (namespace, name) `last`."""
    content = orjson.dumps({"v": _TOKEN_VERSION, "rv": rv, "start": "/".join(last)})
    return base64.urlsafe_b64encode(content).rstrip(b"=").decode()


def _read_token(token: str) -> tuple[int, tuple[str, str]]:
    try:
        content = orjson.loads(base64.urlsafe_b64decode(token + "=" * (-len(token) % 4)))
        namespace, slash, name = content["start"].partition("/")
        if content["v"] != _TOKEN_VERSION or not slash or not isinstance(content["rv"], int):
            raise ValueError("not a token of this server")
    except (binascii.Error, ValueError, KeyError, TypeError, AttributeError) as error:
        raise bad_request(f"continue key is not valid: {error}") from None
    return content["rv"], (namespace, name)
