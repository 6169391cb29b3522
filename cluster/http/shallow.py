"""Cuts from JSON what is nested deeper than anything we read. Pure.

Some fields hold whatever a client wrote (managedFields' fieldsV1, a ControllerRevision's data), as deep as the API
server's decoder goes (upstream: encoding/json, 10,000). Our decoder goes only as deep as Python's recursion limit. One
such object must not stop us from reading all others of its watch or list.
"""

import re
from collections.abc import Callable
from typing import TypeVar

_T = TypeVar("_T")
DEPTH_MAX = 200
_TOKEN = re.compile(rb'"[^"\\]*(?:\\.[^"\\]*)*"|[\[\]{}]', re.DOTALL)


def shallow(raw: bytes, depth_max: int = DEPTH_MAX) -> bytes:
    """The same JSON with ``null`` for every array and object at a greater depth; takes time linear in the bytes."""
    kept: list[bytes] = []
    depth = at = 0
    for token in _TOKEN.finditer(raw):
        match raw[token.start() : token.start() + 1]:
            case b"{" | b"[":
                if depth == depth_max:
                    kept += (raw[at : token.start()], b"null")
                    at = len(raw)  # unless it ends
                depth += 1
            case b"}" | b"]":
                depth -= 1
                if depth == depth_max:
                    at = token.end()
    kept.append(raw[at:])
    return b"".join(kept)


def decoded(decode: Callable[[bytes], _T], raw: bytes) -> _T:
    """What ``decode`` makes of the JSON; of what can be read of it, if it is nested too deeply."""
    try:
        return decode(raw)
    except RecursionError:
        return decode(shallow(raw))
