"""An object that is nested as deep as the API server allows is read like any other; what is deep in it is left out."""

import json

import pytest
from aiohttp import web
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.cluster.client import Client
from oarlock.cluster.http.frames import BadFrameError, WatchEvent, decode_event
from oarlock.cluster.http.shallow import DEPTH_MAX, shallow
from oarlock.cluster.http.throttle import Unlimited
from oarlock.cluster.http.transport import Transport
from oarlock.cluster.listing import list_all, list_pages
from oarlock.cluster.resources import PODS
from oarlock.controllers.objects import wire
from tests.cluster.client_helpers import config_of, looped, serving

SERVER_DEPTH = 9_000
FIELDS = b'{"f:a":' * SERVER_DEPTH + b"{}" + b"}" * SERVER_DEPTH
DEEP = (
    b'{"metadata":{"name":"p","namespace":"ns","uid":"u","managedFields":[{"fieldsV1":%b}],"resourceVersion":"7"},'
    b'"spec":{"nodeName":"n1"}}' % FIELDS
)

VALUES = st.recursive(
    st.none() | st.booleans() | st.integers() | st.text(max_size=8),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=8), inner, max_size=3),
    max_leaves=20,
)


def cut(value: object, depth: int) -> object:
    if not isinstance(value, dict | list):
        return value
    if depth == 0:
        return None
    if isinstance(value, list):
        return [cut(each, depth - 1) for each in value]
    return {name: cut(each, depth - 1) for name, each in value.items()}


@settings(deadline=None)
@given(VALUES, st.integers(0, 5), st.booleans(), st.sampled_from([None, 2]))
def test_what_is_too_deep_becomes_null_and_nothing_else_changes(value, depth, ascii_only, indent):
    raw = json.dumps(value, ensure_ascii=ascii_only, indent=indent).encode()
    assert json.loads(shallow(raw, depth)) == cut(value, depth)


@pytest.mark.parametrize("raw", [b"", b"}}]]", b"[[[", b'{"a":"', b'"\\'])
def test_what_is_no_json_stays_none(raw):
    with pytest.raises(json.JSONDecodeError):
        json.loads(shallow(raw, 1))


@pytest.mark.parametrize("line", [b'{"type":"ADDED","object":%b}', b'{"object": %b, "type": "ADDED"}'])
def test_a_deep_object_comes_through_a_watch(line):
    event = decode_event(line % DEEP)
    assert isinstance(event, WatchEvent)
    assert (event.type, event.rv) == ("ADDED", "7")
    assert wire.pod_from_json(event.object)[1].node_name == "n1"
    assert event.object.count(b"{") <= DEPTH_MAX + 4


def test_a_line_that_is_too_deep_and_no_event_is_refused():
    with pytest.raises(BadFrameError):
        decode_event(b"[" * 100_000)


@looped
async def test_a_deep_object_comes_through_a_list():
    async def handle(_: web.Request) -> web.Response:
        body = (
            b'{"kind":"PodList","metadata":{"resourceVersion":"9"},"items":[{"metadata":{"name":"first"}},%b]}' % DEEP
        )
        return web.Response(body=body, content_type="application/json")

    async with serving(handle) as url, Transport(config_of(url)) as transport:
        rv, (first, deep) = await list_all(list_pages(transport, Unlimited(), PODS))
    assert (rv, first) == ("9", b'{"metadata":{"name":"first"}}')
    assert wire.pod_from_json(deep)[1].uid == "u"


@pytest.mark.parametrize("method", ["get", "create", "delete"])
@looped
async def test_a_deep_object_comes_through_an_answer(method):
    """Whoever reads the body after it was found to be the pod must not be the one who fails."""

    async def handle(_: web.Request) -> web.Response:
        return web.Response(body=b'{"kind":"Pod","apiVersion":"v1",' + DEEP[1:], content_type="application/json")

    async with serving(handle) as url, Client(config_of(url)) as client:
        given = (b"{}",) if method == "create" else ("p",)
        answer = await getattr(client, method)(PODS, "ns", *given)
    assert (answer.code, answer.uid, answer.resource_version) == (200, "u", "7")
    assert wire.pod_from_json(answer.body)[1].node_name == "n1"
