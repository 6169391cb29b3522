"""A consistent list, page by page.

No resourceVersion is sent, so the server reads from etcd and never from a cache that lags. All pages of one list show
the same moment. Upstream: client-go/tools/pager/pager.go.
"""

import asyncio
from collections.abc import AsyncGenerator, Awaitable, Callable
from typing import TypedDict, Unpack
from urllib.parse import urlencode

import msgspec
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, stop_after_attempt
from tenacity.wait import wait_random_exponential

from oarlock.cluster.answer import Answer
from oarlock.cluster.http.shallow import decoded
from oarlock.cluster.http.throttle import Limiter
from oarlock.cluster.http.transport import Transport
from oarlock.cluster.outcome import THROTTLED_MAX_S, delay_s
from oarlock.cluster.resources import Resource

PAGE_LIMIT = 500
PAGE_TIMEOUT_S = 60.0  # a page of a large cluster takes longer than T_req; a read may
PAGE_TRIES = 6
FRESH_STARTS_MAX = 3  # after so many 410s the list is asked for whole: paging is too slow for this server
GROWTH = 10  # of pages, from one 410 to the next: a whole list of a large cluster takes gigabytes

_backoff = wait_random_exponential(multiplier=0.1, max=10)


class Selection(TypedDict, total=False):
    """Which objects of a resource; by default all of them."""

    namespace: str
    label_selector: str
    field_selector: str


class Page(msgspec.Struct, frozen=True):
    """rv: of the whole list; items: the JSON of each object, without kind and apiVersion (as the server writes
    lists). first: a list begins here: **drop what an earlier page gave**, its snapshot is gone; last: complete."""

    rv: str
    items: tuple[bytes, ...]
    first: bool
    last: bool


class ListError(Exception):
    """The server did not give the list. `answer` is its last."""

    def __init__(self, resource: Resource, answer: Answer) -> None:
        super().__init__(f"cannot list {resource.plural}: {answer.message}")
        self.answer = answer


class _Metadata(msgspec.Struct, rename="camel"):
    resource_version: str = ""
    continue_: str = msgspec.field(default="", name="continue")


class _List(msgspec.Struct):
    kind: str
    metadata: _Metadata
    items: list[msgspec.Raw] | None = None


_list = msgspec.json.Decoder(_List)


async def list_pages(
    transport: Transport,
    limiter: Limiter,
    resource: Resource,
    *,
    limit: int = PAGE_LIMIT,
    timeout_s: float = PAGE_TIMEOUT_S,
    tries: int = PAGE_TRIES,
    sleep: Callable[[float], Awaitable[None]] = asyncio.sleep,
    **selection: Unpack[Selection],
) -> AsyncGenerator[Page, None]:
    """Pages of at most `limit` objects. A 410 between pages starts afresh (`Page.first`), with larger ones.

    Each page is asked for up to `tries` times, with growing random waits and as Retry-After says.
    Raises ListError.
    """
    patiently = AsyncRetrying(
        stop=stop_after_attempt(tries),
        wait=_wait_s,
        retry=retry_if_result(_worth_asking_again),
        retry_error_callback=_last_answer,
        sleep=sleep,
    )

    async def read(path: str) -> Answer:
        await limiter.take()
        return await transport.read(path, timeout_s=timeout_s)

    collection = resource.collection(selection.get("namespace", ""))
    selectors = {
        "labelSelector": selection.get("label_selector", ""),
        "fieldSelector": selection.get("field_selector", ""),
    }
    fixed = {key: value for key, value in selectors.items() if value}
    fresh_starts = 0
    token = ""
    while True:
        query = dict(fixed)
        if fresh_starts < FRESH_STARTS_MAX:
            query["limit"] = str(limit * GROWTH**fresh_starts)
        if token:
            query["continue"] = token
        path = f"{collection}?{urlencode(query)}".rstrip("?")
        answer: Answer = await patiently(read, path)
        if answer.code == 410 and token:
            fresh_starts += 1
            token = ""
            continue
        if not answer.ok:
            raise ListError(resource, answer)
        try:
            found = decoded(_list.decode, answer.body)
        except (msgspec.MsgspecError, UnicodeDecodeError) as error:
            raise ListError(resource, Answer(answer.code, error=f"not a list: {error}")) from error
        if found.kind != f"{resource.kind}List" or not found.metadata.resource_version:
            # Whatever else it is, it is no proof that there is nothing.
            raise ListError(resource, Answer(answer.code, error=f"not a list, but: {answer.body[:80]!r}"))
        items = tuple(bytes(raw) for raw in found.items or ())
        first, token = not token, found.metadata.continue_
        yield Page(found.metadata.resource_version, items, first=first, last=not token)
        if not token:
            return


async def list_all(pages: AsyncGenerator[Page, None]) -> tuple[str, list[bytes]]:
    """(resourceVersion, all items) of one list, for the small ones. Raises ListError."""
    rv, items = "", list[bytes]()
    async for page in pages:
        if page.first:
            items.clear()
        rv = page.rv
        items.extend(page.items)
    return rv, items


def _worth_asking_again(answer: Answer) -> bool:
    return answer.code <= 0 or answer.code == 429 or answer.code >= 500


def _wait_s(state: RetryCallState) -> float:
    assert state.outcome is not None
    answer: Answer = state.outcome.result()
    if answer.code == 429:
        return delay_s(answer)
    return max(float(_backoff(state)), min(answer.retry_after_s or 0.0, THROTTLED_MAX_S))


def _last_answer(state: RetryCallState) -> Answer:
    assert state.outcome is not None
    answer: Answer = state.outcome.result()
    return answer
