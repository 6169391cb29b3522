"""How two templates are compared, and how a revision stores a template.

Upstream compares the stored JSON byte by byte (pkg/controller/daemon/update.go): another spelling of an unchanged
template makes a new revision and restarts every pod. The digest is one of the meaning instead: keys sorted, no blanks,
and without what the API server may write or leave out for the same object:

- null anywhere, such as the creationTimestamp that servers before 1.34 write into every template;
- an empty list: what is stored knows no difference between an empty list and none, and no field of a pod template
  gives them different meanings;
- an empty map in a field that is a plain map or a struct held by value, such as `nodeSelector` or `resources`: the tags
  of the server's types decide whether it is written.

Every other empty map stays, since it has a meaning: `emptyDir: {}`, or a `namespaceSelector: {}`, which selects all
namespaces, while an absent one selects one.
"""

import re
from base64 import urlsafe_b64encode
from hashlib import sha256
from typing import Any

import msgspec

_DIRECTIVE, _REPLACE = "$patch", "replace"
_DIGEST_BYTES = 15  # the cache has a digest with each owner, so it is short; of as many bytes Base64 needs no padding
# Fields of a pod template (upstream: staging/src/k8s.io/api/core/v1/types.go) whose empty map says what absence says.
_EMPTY_IS_ABSENT = frozenset(
    {
        "annotations",
        "labels",
        "limits",
        "matchLabels",
        "metadata",
        "nodeSelector",
        "options",
        "overhead",
        "requests",
        "resources",
        "volumeAttributes",
    }
)
# In JSON these stand in strings only; upstream's encoder writes them so, and kubectl compares bytes when it undoes.
_ESCAPES = (
    (b"<", b"\\u003c"),
    (b">", b"\\u003e"),
    (b"&", b"\\u0026"),
    ("\u2028".encode(), b"\\u2028"),
    ("\u2029".encode(), b"\\u2029"),
)
# Until 1.29 Go's encoder had no short form of these; which it is shows in the server's own spelling of the template.
_LONG = {rb"\b": rb"\u0008", rb"\f": rb"\u000c"}
_ESCAPED = re.compile(rb"\\.")


def template_digest(template_json: bytes, but_label: str = "") -> str:
    """20 letters of SHA-256, which stand for the content of a pod template; null counts as the empty template.

    The label `but_label` does not count: a ReplicaSet's template has its hash as a label, its Deployment's has not.
    Raises ValueError for what is not the JSON of an object.
    """
    template = _template(template_json)
    match template:
        case {"metadata": {"labels": dict(labels)}} if but_label:
            labels.pop(but_label, None)
    return _digest(template)


def data_digest(data_json: bytes) -> str:
    """The digest of the template that the data of a ControllerRevision holds.

    Data that is not exactly {"spec": {"template": {...}}} gets a digest that no template has. Raises ValueError for
    what is not JSON.
    """
    data = _decode(data_json)
    match data:
        case {"spec": {"template": dict(template), **beside}, **above} if not beside and not above:
            return _digest(template)
    return f"other {_sha(data)}"


def revision_data(template_json: bytes) -> bytes:
    """The data of a revision of this template: {"spec": {"template": {..., "$patch": "replace"}}}, keys sorted.

    Nothing is left out, and text is spelled as Go does, so that it is byte for byte what upstream stores. Sent as a
    strategic merge patch, which is what kubectl does to roll back, it replaces the whole template.
    Raises ValueError for what is not the JSON of an object.
    """
    template = _template(template_json) | {_DIRECTIVE: _REPLACE}
    data = msgspec.json.encode({"spec": {"template": template}}, order="deterministic")
    for char, escape in _ESCAPES:
        data = data.replace(char, escape)
    if any(long in template_json for long in _LONG.values()):
        data = _ESCAPED.sub(lambda found: _LONG.get(found[0], found[0]), data)
    return data


def _template(template_json: bytes) -> dict[str, Any]:
    template = _decode(template_json)
    if template is None:
        return {}
    if not isinstance(template, dict):
        raise ValueError(f"a template is a JSON object, not {type(template).__name__}")
    return template


def _decode(raw: bytes) -> Any:
    try:
        return msgspec.json.decode(raw)
    except (msgspec.MsgspecError, UnicodeDecodeError, RecursionError) as error:
        raise ValueError(f"not JSON: {error}") from error


def _digest(template: dict[str, Any]) -> str:
    if template.get(_DIRECTIVE) == _REPLACE:
        template = {key: value for key, value in template.items() if key != _DIRECTIVE}
    return _sha(template)


def _sha(value: Any) -> str:
    try:
        canonical = msgspec.json.encode(_plain(value), order="deterministic")
    except RecursionError as error:
        raise ValueError("nested too deeply") from error
    return urlsafe_b64encode(sha256(canonical).digest()[:_DIGEST_BYTES]).decode()


def _plain(value: Any) -> Any:
    """Without what means nothing. The elements of a list are never dropped: their places mean something."""
    if isinstance(value, list):
        return [_plain(each) for each in value]
    if not isinstance(value, dict):
        return value
    plain = {}
    for key, held in value.items():
        kept = _plain(held)
        if kept is None or kept == [] or (kept == {} and key in _EMPTY_IS_ABSENT):
            continue
        plain[key] = kept
    return plain
