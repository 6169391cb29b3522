"""Lists: whole, of one moment, however the server behaves."""

import pytest
from aiohttp import web

from oarlock.cluster.http.throttle import Unlimited
from oarlock.cluster.http.transport import Transport
from oarlock.cluster.listing import ListError, list_all, list_pages
from oarlock.cluster.resources import NODES, PODS
from tests.cluster.client_helpers import FakeTime, config_of, json_response, looped, serving, status_response


class Paged:
    """A server of `total` pods; `failures` are answers given instead, one each, at the nth request."""

    def __init__(self, total: int, failures: dict[int, web.Response] | None = None, expire: int = 0) -> None:
        self.total, self.failures, self.expire = total, failures or {}, expire
        self.queries: list[dict[str, str]] = []
        self.rv = 100

    async def handle(self, request: web.Request) -> web.Response:
        query = dict(request.query)
        self.queries.append(query)
        failure = self.failures.get(len(self.queries))
        if failure is not None:
            return failure
        if "continue" in query and self.expire:
            self.expire -= 1
            self.rv += 1
            return status_response(410, "Expired")
        start = int(query.get("continue", "0"))
        limit = int(query.get("limit", self.total))
        metadata = {"resourceVersion": str(self.rv)}
        if start + limit < self.total:
            metadata["continue"] = str(start + limit)
        items = [{"metadata": {"name": f"p{n}"}} for n in range(start, min(self.total, start + limit))]
        return json_response({"kind": "PodList", "metadata": metadata, "items": items})


async def gather(server: Paged, time: FakeTime | None = None, **options):
    sleep = (time or FakeTime()).sleep
    async with serving(server.handle) as url, Transport(config_of(url)) as transport:
        return [page async for page in list_pages(transport, Unlimited(), PODS, sleep=sleep, **options)]


@looped
async def test_pages_follow_one_another():
    server = Paged(12)
    pages = await gather(server, limit=5)
    assert [len(page.items) for page in pages] == [5, 5, 2]
    assert [(page.first, page.last) for page in pages] == [(True, False), (False, False), (False, True)]
    assert {page.rv for page in pages} == {"100"}
    assert pages[0].items[0] == b'{"metadata":{"name":"p0"}}'
    assert server.queries == [{"limit": "5"}, {"limit": "5", "continue": "5"}, {"limit": "5", "continue": "10"}]


@looped
async def test_an_empty_list_is_one_page():
    [page] = await gather(Paged(0))
    assert (page.items, page.first, page.last, page.rv) == ((), True, True, "100")


@looped
async def test_items_may_be_null():
    async def handler(request: web.Request) -> web.Response:
        return json_response({"kind": "NodeList", "metadata": {"resourceVersion": "3"}, "items": None})

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        assert await list_all(list_pages(transport, Unlimited(), NODES)) == ("3", [])


@pytest.mark.parametrize(
    "body",
    [
        b"<html>",
        b"{}",
        b"[]",
        b'{"kind":"PodList","metadata":{"resourceVersion":"3"},"items":[]}',
        b'{"kind":"NodeList","metadata":{},"items":[]}',
        b'{"kind":"Status","apiVersion":"v1","metadata":{"resourceVersion":"3"},"status":"Success"}',
    ],
)
@looped
async def test_what_is_no_list_of_the_kind_is_no_empty_list(body):
    """That there is nothing leads to creates: only the server itself may say it."""

    async def handler(request: web.Request) -> web.Response:
        return web.Response(body=body, content_type="application/json")

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        with pytest.raises(ListError, match="cannot list nodes: not a list"):
            await list_all(list_pages(transport, Unlimited(), NODES))


@looped
async def test_selectors_go_with_every_page_and_no_resource_version():
    server = Paged(3)
    await gather(server, limit=2, label_selector="a=b", field_selector="spec.nodeName=n", namespace="ns")
    for query in server.queries:
        assert query["labelSelector"] == "a=b"
        assert query["fieldSelector"] == "spec.nodeName=n"
        assert "resourceVersion" not in query


@looped
async def test_410_between_pages_begins_afresh():
    """The new first page says so, and gathering drops what came before."""
    server = Paged(12, expire=1)
    pages = await gather(server, limit=5)
    assert [(page.first, page.rv) for page in pages] == [
        (True, "100"),
        (True, "101"),
    ], "larger pages: all of it is on one"
    server = Paged(12, expire=1)
    async with serving(server.handle) as url, Transport(config_of(url)) as transport:
        rv, items = await list_all(list_pages(transport, Unlimited(), PODS, limit=5))
    assert (rv, len(items)) == ("101", 12)


@looped
async def test_410_again_asks_for_the_whole_list():
    """A server that cannot keep a moment for as long as paging takes is not asked to for ever."""
    server = Paged(7_000, expire=3)
    pages = await gather(server, limit=5)
    limits = [query.get("limit") for query in server.queries]
    assert limits == ["5", "5", "50", "50", "500", "500", None], "larger pages first: a list may be gigabytes"
    assert (pages[-1].first, pages[-1].last, len(pages[-1].items)) == (True, True, 7_000)


@looped
async def test_failures_are_waited_out_page_by_page():
    """429 as told, others with growing random waits; the pages already had are kept."""
    time = FakeTime()
    server = Paged(
        7,
        {
            1: web.Response(status=429, headers={"Retry-After": "4"}),
            3: status_response(500, "InternalError"),
            4: status_response(429, "TooManyRequests", retryAfterSeconds=2),
        },
    )
    pages = await gather(server, time, limit=5)
    assert [len(page.items) for page in pages] == [5, 2]
    assert (time.slept[0], time.slept[2]) == (4.0, 2.0)
    assert 0 <= time.slept[1] <= 10


@pytest.mark.parametrize(
    ("code", "reason", "requests"), [(403, "Forbidden", 1), (404, "NotFound", 1), (503, "Unavailable", 3)]
)
@looped
async def test_what_cannot_be_had_is_an_error(code, reason, requests):
    """A refusal at once, a failing server after `tries`."""
    server = Paged(1, {nth: status_response(code, reason) for nth in range(1, 10)})
    with pytest.raises(ListError, match="cannot list pods: said so") as raised:
        await gather(server, tries=3)
    assert raised.value.answer.code == code
    assert len(server.queries) == requests


@looped
async def test_an_answer_that_is_no_list_is_an_error():
    async def handler(request: web.Request) -> web.Response:
        return web.Response(text="<html>log in here</html>")

    async with serving(handler) as url, Transport(config_of(url)) as transport:
        with pytest.raises(ListError, match="not a list"):
            await list_all(list_pages(transport, Unlimited(), PODS))
