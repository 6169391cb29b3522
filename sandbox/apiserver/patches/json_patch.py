"""JSON patch (RFC 6902) over JSON pointers (RFC 6901)."""

from __future__ import annotations

from collections.abc import Callable
from operator import delitem, setitem
from typing import Any

from oarlock.sandbox.apiserver.errors import ApiError, bad_request, does_not_apply

OPERATIONS_MAX = 10_000  # upstream: apiserver/pkg/endpoints/handlers/patch.go, maxJSONPatchOperations

_MISSING = object()


def apply_json_patch(document: Any, patch: Any) -> Any:
    """`document` after every operation of `patch`, all or nothing.

    Raises ApiError 400 when `patch` is not a list of operations, 422 when one does not apply
    (a failed `test`, a path that is not there), 413 for too many operations.
    """
    if not isinstance(patch, list):
        raise bad_request("Invalid JSON Patch: a JSON patch must be a list of operations")
    if len(patch) > OPERATIONS_MAX:
        raise ApiError(
            413,
            "RequestEntityTooLarge",
            f"The allowed maximum operations in a JSON patch is {OPERATIONS_MAX}, got {len(patch)}",
        )
    for operation in patch:
        if not isinstance(operation, dict):
            raise bad_request("Invalid JSON Patch: an operation must be an object")
        document = _apply_one(document, operation)
    return document


def _apply_one(document: Any, operation: dict[str, Any]) -> Any:
    op = operation.get("op")
    path = _pointer(operation, "path")
    if op in ("add", "replace", "test") and "value" not in operation:
        raise bad_request(f"Invalid JSON Patch: operation {op!r} lacks a value")
    if op == "add":
        return _add(document, path, operation["value"])
    if op == "replace":
        return _replace(document, path, operation["value"])
    if op == "remove":
        return _remove(document, path)
    if op == "test":
        found = _find(document, path)
        want = operation["value"]
        # A missing value equals null, as the library behind upstream's API server has it.
        if not (want is None if found is _MISSING else json_equal(found, want)):
            raise does_not_apply(f"testing path {_text(path)} failed")
        return document
    if op == "copy":
        return _add(document, path, _must_find(document, _pointer(operation, "from"), "copy"))
    if op == "move":
        source = _pointer(operation, "from")
        if path[: len(source)] == source and len(path) > len(source):
            raise does_not_apply(f"cannot move {_text(source)} into its own child {_text(path)}")
        value = _must_find(document, source, "move")
        if path == source:
            return document
        return _add(_remove(document, source), path, value)
    raise bad_request(f"Invalid JSON Patch: unexpected kind: {op}")


def _pointer(operation: dict[str, Any], field: str) -> list[str]:
    text = operation.get(field)
    if not isinstance(text, str):
        raise bad_request(f"Invalid JSON Patch: operation {operation.get('op')!r} lacks {field!r}")
    if not text:
        return []
    if not text.startswith("/"):
        raise bad_request(f"Invalid JSON Patch: pointer {text!r} must start with '/'")
    parts = text[1:].split("/")
    if "~" not in text:
        return parts
    for part in parts:
        if "~" in part.replace("~0", "").replace("~1", ""):
            raise bad_request(f"Invalid JSON Patch: pointer {text!r} has a bad escape")
    return [part.replace("~1", "/").replace("~0", "~") for part in parts]


def _text(path: list[str]) -> str:
    return "".join("/" + part.replace("~", "~0").replace("/", "~1") for part in path) or '""'


def _index(part: str, length: int) -> int | None:
    """The position `part` names in a list that may hold `length` places, or None."""
    if not part.isascii() or not part.isdigit() or (part[0] == "0" and part != "0"):
        return None
    position = int(part)
    return position if position < length else None


def _find(document: Any, path: list[str]) -> Any:
    for part in path:
        if isinstance(document, dict):
            document = document.get(part, _MISSING)
        elif isinstance(document, list):
            position = _index(part, len(document))
            document = _MISSING if position is None else document[position]
        else:
            return _MISSING
        if document is _MISSING:
            return _MISSING
    return document


def _must_find(document: Any, path: list[str], op: str) -> Any:
    found = _find(document, path)
    if found is _MISSING:
        raise does_not_apply(f"{op} operation does not apply: doc is missing from path: {_text(path)}: missing value")
    return found


def _at_parent(document: Any, path: list[str], op: str, change: Callable[[Any, str], None]) -> Any:
    """A copy of `document` along `path`, with `change(parent, last part)` made on the copied parent."""
    if isinstance(document, (dict, list)):
        copied: Any = document.copy()
        if len(path) == 1:
            change(copied, path[0])
            return copied
        part = path[0]
        if isinstance(copied, dict):
            if part in copied:
                copied[part] = _at_parent(copied[part], path[1:], op, change)
                return copied
        else:
            position = _index(part, len(copied))
            if position is not None:
                copied[position] = _at_parent(copied[position], path[1:], op, change)
                return copied
    raise does_not_apply(f"{op} operation does not apply: doc is missing path: {_text(path)}: missing value")


def _add(document: Any, path: list[str], value: Any) -> Any:
    if not path:
        return value

    def change(parent: Any, part: str) -> None:
        if isinstance(parent, dict):
            parent[part] = value
            return
        position = len(parent) if part == "-" else _index(part, len(parent) + 1)
        if position is None:
            raise does_not_apply(f"add operation does not apply: invalid index {part!r}: {_text(path)}")
        parent.insert(position, value)

    return _at_parent(document, path, "add", change)


def _replace(document: Any, path: list[str], value: Any) -> Any:
    return _at_member(document, path, "replace", lambda parent, key: setitem(parent, key, value)) if path else value


def _remove(document: Any, path: list[str]) -> Any:
    if not path:
        raise does_not_apply("remove operation does not apply: the whole document cannot be removed")
    return _at_member(document, path, "remove", delitem)


def _at_member(document: Any, path: list[str], op: str, change: Callable[[Any, Any], None]) -> Any:
    """As `_at_parent`, where the last part must be there: `change(parent, key or position)`."""

    def at(parent: Any, part: str) -> None:
        is_object = isinstance(parent, dict)
        key = (part if part in parent else None) if is_object else _index(part, len(parent))
        if key is None:
            raise does_not_apply(f"{op} operation does not apply: doc is missing key: {_text(path)}: missing value")
        change(parent, key)

    return _at_parent(document, path, op, at)


def json_equal(left: Any, right: Any) -> bool:
    """Equality of JSON values: numbers by value, and true is not 1 (which it is to Python)."""
    if isinstance(left, bool) or isinstance(right, bool):
        return left is right
    if isinstance(left, dict) and isinstance(right, dict):
        return left.keys() == right.keys() and all(json_equal(value, right[key]) for key, value in left.items())
    if isinstance(left, list) and isinstance(right, list):
        return len(left) == len(right) and all(map(json_equal, left, right))
    return bool(left == right)
