"""Accept and Content-Type: which shape an answer has, and how a body is read."""

from __future__ import annotations

from functools import lru_cache
from typing import Any, Final

import orjson
import yaml

from oarlock.sandbox.apiserver.errors import bad_request, not_acceptable, unsupported_media_type
from oarlock.sandbox.apiserver.http.protobuf import decode as decode_protobuf
from oarlock.sandbox.apiserver.kinds.kinds import Kind
from oarlock.sandbox.apiserver.printing.tables import Shape
from oarlock.sandbox.apiserver.shapes import check_shape

Obj = dict[str, Any]

PROTOBUF: Final = "application/vnd.kubernetes.protobuf"
APPLY_PATCH: Final = "application/apply-patch+yaml"
_YAML: Final = ("application/yaml", "application/x-yaml", "text/yaml")
_SHAPES: Final = {
    "Table": Shape.TABLE,
    "PartialObjectMetadata": Shape.METADATA,
    "PartialObjectMetadataList": Shape.METADATA,
}


@lru_cache(maxsize=256)
def shape_of(accept: str) -> Shape:
    """The first form in an Accept header that this server has. Raises ApiError 406 if there is none."""
    if not accept:
        return Shape.OBJECT
    for media_range in accept.split(","):
        media_type, *pairs = [part.strip() for part in media_range.split(";")]
        if media_type not in ("application/json", "*/*", "application/*"):
            continue
        params = dict(pair.split("=", 1) for pair in pairs if "=" in pair)
        form = params.get("as")
        if form is None:
            return Shape.OBJECT
        if form in _SHAPES and params.get("g") == "meta.k8s.io":
            return _SHAPES[form]
    raise not_acceptable("only the following media types are accepted: application/json")


def media_type_of(content_type: str) -> str:
    """`application/json` for `Application/JSON; charset=utf-8`."""
    return content_type.partition(";")[0].strip().lower()


def decode_json(body: bytes) -> Any:
    """Raises ApiError 400."""
    try:
        return orjson.loads(body)
    except orjson.JSONDecodeError as error:
        raise bad_request(f"couldn't read the body of the request as JSON: {error}") from None


def decode_body(body: bytes, content_type: str) -> Obj:
    """The object in the body of a create or update. Raises ApiError 400 or 415."""
    media_type = media_type_of(content_type)
    if media_type == PROTOBUF:
        return decode_protobuf(body)
    decoded: Any
    if media_type in _YAML:
        try:
            decoded = yaml.safe_load(body)
        except yaml.YAMLError as error:
            raise bad_request(f"couldn't read the body of the request as YAML: {error}") from None
    elif media_type in ("", "application/json", "application/octet-stream"):
        decoded = decode_json(body)
    else:
        raise unsupported_media_type(
            "the body of the request was in an unknown format - accepted media types include: "
            "application/json, application/yaml"
        )
    if not isinstance(decoded, dict):
        raise bad_request("the body of the request must be an object")
    return decoded


def check_types(kind: Kind, obj: Obj) -> None:
    """Check that `obj` says it is of `kind` (saying nothing is fine) and that its fields have the right types.

    Fills in apiVersion, kind and metadata where absent. Raises ApiError 400.
    """
    said_version, said_kind = obj.get("apiVersion"), obj.get("kind")
    if said_version is None:
        obj["apiVersion"] = kind.api_version
    elif said_version != kind.api_version:
        raise bad_request(
            f"the API version in the data ({said_version}) does not match the expected API version ({kind.api_version})"
        )
    if said_kind is None:
        obj["kind"] = kind.kind
    elif said_kind != kind.kind:
        raise bad_request(f'{said_kind} in version "{kind.version}" cannot be handled as a {kind.kind}')
    if obj.get("metadata") is None:
        obj["metadata"] = {}
    check_shape(kind.name, obj)
    # An explicit null is the same as absent.
    meta = obj["metadata"]
    for name in [name for name, value in meta.items() if value is None]:
        del meta[name]
