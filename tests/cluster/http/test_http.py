"""Bytes of requests and answers, without a socket."""

import pytest

from oarlock.cluster.http.messages import BODY_BYTES_MAX, HEAD_BYTES_MAX, AnswerReader, HttpAnswer, RequestWriter

LENGTH = b'HTTP/1.1 201 Created\r\nContent-Type: application/json\r\nContent-Length: 7\r\n\r\n{"a":1}'
CHUNKED = (
    b"HTTP/1.1 200 OK\r\ntransfer-encoding: Chunked\r\nretry-after:  3 \r\n\r\n"
    b'5;name=value\r\n{"a":\r\n02\r\n1}\r\n0\r\nTrailer: x\r\n\r\n'
)
EMPTY = b"HTTP/1.1 204\r\nContent-Length: 7\r\n\r\n"
INTERIM = b"HTTP/1.1 103 Early Hints\r\nLink: x\r\nTransfer-Encoding: chunked\r\n\r\n" + LENGTH
CLOSING = LENGTH.replace(b"Content-Type: application/json", b"Connection: Close")
BOTH = LENGTH.replace(b"Content-Type: application/json", b"Connection: close\r\nConnection: keep-alive")
OLD = LENGTH.replace(b"HTTP/1.1", b"HTTP/1.0")
WHOLE = {
    LENGTH: HttpAnswer(201, "", b'{"a":1}', True),
    CHUNKED: HttpAnswer(200, "3", b'{"a":1}', True),
    EMPTY: HttpAnswer(204, "", b"", True),
    INTERIM: HttpAnswer(201, "", b'{"a":1}', True),
    CLOSING: HttpAnswer(201, "", b'{"a":1}', False),
    BOTH: HttpAnswer(201, "", b'{"a":1}', False),
    OLD: HttpAnswer(201, "", b'{"a":1}', False),
}
IDS = ["length", "chunked", "empty", "interim", "closing", "close and keep-alive", "1.0"]


@pytest.mark.parametrize("raw", WHOLE, ids=IDS)
def test_an_answer_may_arrive_in_any_pieces(raw: bytes) -> None:
    for cut in range(len(raw)):
        reader = AnswerReader()
        assert reader.feed(raw[:cut]) is None, cut
        assert reader.feed(raw[cut:]) == WHOLE[raw], cut
    reader = AnswerReader()
    *told, last = [reader.feed(raw[at : at + 1]) for at in range(len(raw))]
    assert not any(told)
    assert last == WHOLE[raw]


@pytest.mark.parametrize("raw", WHOLE, ids=IDS)
def test_an_answer_cut_off_is_none(raw: bytes) -> None:
    for cut in range(len(raw)):
        reader = AnswerReader()
        reader.feed(raw[:cut])
        assert reader.at_end() is None, cut


@pytest.mark.parametrize("raw", [LENGTH, CHUNKED, EMPTY], ids=IDS[:3])
def test_a_connection_with_more_than_was_asked_for_is_not_used_again(raw: bytes) -> None:
    answer = AnswerReader().feed(raw + b"H")
    assert answer == WHOLE[raw]._replace(reusable=False)


def test_without_a_length_the_end_of_the_connection_is_that_of_the_body() -> None:
    reader = AnswerReader()
    assert reader.feed(b"HTTP/1.1 500 Oh\r\n\r\nit ") is None
    assert reader.feed(b"broke") is None
    assert reader.at_end() == HttpAnswer(500, "", b"it broke", False)


@pytest.mark.parametrize(
    "raw",
    [
        b"HTTP/2 200 OK\r\n\r\n",
        b"HTTP/1.1 20x OK\r\n\r\n",
        b"HTTP/1.1 2000 OK\r\n\r\n",
        b"HTTP/1.1 20\r\n\r\n",
        b"HTTP/1.1 099 OK\r\n\r\n",
        b"SSH-2.0-OpenSSH\r\n\r\n",
        b"HTTP/1.1 101 Switching\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nno colon\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length : 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: -1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Length: %d\r\n\r\n" % (BODY_BYTES_MAX + 1),
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\nContent-Length: 1\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: gzip, chunked\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nContent-Encoding: gzip\r\n\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\nxyz\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n-1\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n1\r\nab\r\n",
        b"HTTP/1.1 200 OK\r\nTransfer-Encoding: chunked\r\n\r\n7fffffff\r\n",
        b"HTTP/1.1 200 OK\r\nX: " + b"x" * HEAD_BYTES_MAX,
    ],
)
def test_what_is_not_well_formed_is_refused(raw: bytes) -> None:
    with pytest.raises(ValueError):
        AnswerReader().feed(raw)


def test_a_request() -> None:
    writer = RequestWriter("k8s.example:6443", "/k8s/c-1", "oarlock/1 (worker)")
    headers = (("Authorization", "Bearer secret"),)
    assert writer.written("POST", "/api/v1/pods?timeout=4s", headers, "application/json", b"{}") == (
        b"POST /k8s/c-1/api/v1/pods?timeout=4s HTTP/1.1\r\nHost: k8s.example:6443\r\nUser-Agent: oarlock/1 (worker)\r\n"
        b"Accept: application/json\r\nAuthorization: Bearer secret\r\nContent-Type: application/json\r\n"
        b"Content-Length: 2\r\n\r\n{}"
    )
    renewed = writer.written("DELETE", "/x", (("Authorization", "Bearer other"),), "application/json", b"")
    assert renewed is not None
    assert b"Bearer other" in renewed
    assert renewed.endswith(b"Content-Length: 0\r\n\r\n")
    assert b"Content-Type" not in renewed
    traced = writer.written("DELETE", "/x", headers, "application/json", b"", "00-1-2-01")
    assert traced is not None
    assert b"\r\ntraceparent: 00-1-2-01\r\nContent-Length: 0" in traced
    assert writer.written("DELETE", "/x", headers, "application/json", b"", "00\r\nX: y") is None


@pytest.mark.parametrize(
    ("path", "header", "content_type"),
    [
        ("/a b", ("A", "b"), "t"),
        ("/a\r\nX: y", ("A", "b"), "t"),
        ("/\u00e9", ("A", "b"), "t"),
        ("/a", ("A", "b\r\nX: y"), "t"),
        ("/a", ("A: b\r\nX", "y"), "t"),
        ("/a", ("", "y"), "t"),
        ("/a", ("A", "b"), "t\n"),
    ],
)
def test_what_could_pass_for_the_end_of_a_line_is_not_written(
    path: str, header: tuple[str, str], content_type: str
) -> None:
    assert RequestWriter("h", "", "u").written("POST", path, (header,), content_type, b"{}") is None
