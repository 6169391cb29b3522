"""However the bytes of a watch are cut, the same events come out."""

import itertools
import json

import orjson
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from oarlock.cluster.answer import Status
from oarlock.cluster.http import frames
from oarlock.cluster.http.frames import BadFrameError, Lines, WatchEvent, decode_event

TEXT = st.text(max_size=30)
OBJECTS = st.fixed_dictionaries(
    {
        "kind": st.just("Pod"),
        "metadata": st.fixed_dictionaries(
            {
                "name": TEXT,
                "resourceVersion": st.integers(1, 10**19).map(str),
                "labels": st.dictionaries(TEXT, TEXT, max_size=3),
                "annotations": st.just({"trap": '{"type":"ADDED","object":{}}\n'}),
            }
        ),
        "spec": st.recursive(
            st.none() | st.booleans() | TEXT,
            lambda inner: st.lists(inner, max_size=3) | st.dictionaries(TEXT, inner, max_size=3),
            max_leaves=6,
        ),
    }
)
EVENTS = st.tuples(st.sampled_from(["ADDED", "MODIFIED", "DELETED", "BOOKMARK"]), OBJECTS)


def as_upstream(kind, value):
    return orjson.dumps({"type": kind, "object": value})


def spaced(kind, value):
    return json.dumps({"type": kind, "object": value}, ensure_ascii=False).encode()


def object_first(kind, value):
    return orjson.dumps({"object": value, "type": kind})


def with_more_fields(kind, value):
    return orjson.dumps({"type": kind, "object": value, "more": {"metadata": {}}})


WRITERS = st.sampled_from([as_upstream, as_upstream, spaced, object_first, with_more_fields])


@settings(deadline=None)
@given(st.lists(st.tuples(EVENTS, WRITERS), max_size=8), st.data())
def test_any_cutting_gives_the_same_events(written, data):
    """Also with other spacing, other order of fields, carriage returns and empty lines."""
    ends = data.draw(st.lists(st.sampled_from([b"\n", b"\r\n", b"\n\n"]), min_size=len(written), max_size=len(written)))
    stream = b"".join(writer(*event) + end for (event, writer), end in zip(written, ends, strict=True))
    unfinished = data.draw(st.sampled_from([b"", b'{"type":"ADDED","obj']))
    stream += unfinished
    cuts = sorted(data.draw(st.lists(st.integers(0, len(stream)), max_size=30)))
    lines = Lines()
    events = []
    for start, end in zip([0, *cuts], [*cuts, len(stream)], strict=True):
        events += [decode_event(line) for line in lines.feed(stream[start:end])]
    assert [(event.type, event.rv, orjson.loads(event.object)) for event in events] == [
        (kind, value["metadata"]["resourceVersion"], value) for (kind, value), _ in written
    ]


@settings(deadline=None)
@given(st.binary(max_size=200), st.lists(st.integers(0, 200), max_size=20))
def test_any_bytes_are_cut_like_splitlines(stream, cuts):
    whole = [line for line in stream.split(b"\n")[:-1] if line not in {b"", b"\r"}]
    edges = [0, *sorted(min(cut, len(stream)) for cut in cuts), len(stream)]
    lines = Lines()
    out = []
    for start, end in itertools.pairwise(edges):
        out += lines.feed(stream[start:end])
    assert out == whole


@settings(deadline=None)
@given(st.binary(max_size=80))
def test_no_bytes_break_the_decoder(line):
    """Whatever comes is an event, a Status, or BadFrameError; nothing else escapes."""
    try:
        assert isinstance(decode_event(line), WatchEvent | Status)
    except BadFrameError:
        pass


def test_the_object_is_handed_over_byte_for_byte():
    """Raw JSON, spacing and order of fields as the server wrote them."""
    raw = b'{"b": 1,  "metadata":{"resourceVersion":"7"}, "a":"\xc3\xa9"}'
    assert decode_event(b'{"type":"ADDED","object":' + raw + b"}") == WatchEvent("ADDED", "7", raw)


def test_an_error_event_is_its_status():
    status = decode_event(b'{"type":"ERROR","object":{"kind":"Status","code":410,"reason":"Expired"}}')
    assert isinstance(status, Status)
    assert (status.code, status.reason) == (410, "Expired")


@pytest.mark.parametrize(
    "line",
    [
        pytest.param(b"", id="nothing"),
        pytest.param(b"not json", id="not json"),
        pytest.param(b'{"type":"ADDED"}', id="no object"),
        pytest.param(b'{"type":"ADDED","object":{}}', id="no metadata"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{}}', id="a brace short"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{}}}}', id="a brace too many"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":7}}}', id="a number as version"),
        pytest.param(b'{"type":"ADDED","object":[]}', id="a list as object"),
        pytest.param(b'{"type":"ADDED","object":{"metadata":{"resourceVersion":"\xff"}}}', id="no UTF-8"),
        pytest.param(b'{"type":"\xff","object":{"metadata":{}}}', id="no UTF-8 as type"),
    ],
)
def test_what_is_not_an_event_is_refused(line):
    with pytest.raises(BadFrameError):
        decode_event(line)


def test_a_line_without_an_end_is_not_held_for_ever(monkeypatch):
    monkeypatch.setattr(frames, "LINE_BYTES_MAX", 1000)
    lines = Lines()
    for _ in range(10):
        lines.feed(b"x" * 100)
    with pytest.raises(BadFrameError, match="more than 1000 bytes"):
        lines.feed(b"x")


def test_a_large_line_in_small_chunks_costs_linear_time():
    """3 MB in 3,000 chunks is joined once; quadratic joining would copy 4.5 GB."""
    line = as_upstream("ADDED", {"metadata": {"resourceVersion": "1"}, "data": "x" * 3_000_000}) + b"\n"
    lines = Lines()
    out = []
    for start in range(0, len(line), 1000):
        out += lines.feed(line[start : start + 1000])
    assert out == [line[:-1]]
