"""From an HTTP method on a target to the verb that serves it."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from oarlock.sandbox.apiserver.apply.request import decode_apply
from oarlock.sandbox.apiserver.errors import bad_request, method_not_allowed, unsupported_media_type
from oarlock.sandbox.apiserver.http.negotiation import APPLY_PATCH, decode_body, decode_json, media_type_of
from oarlock.sandbox.apiserver.http.paths import Target
from oarlock.sandbox.apiserver.http.watch import is_true
from oarlock.sandbox.apiserver.printing.tables import View
from oarlock.sandbox.apiserver.verbs import eviction, subresources
from oarlock.sandbox.apiserver.verbs.rest import Outcome, Params, Rest, delete_options

_VERBS: Final[Mapping[str, tuple[str, str]]] = {  # method -> verb on an object, verb on a collection
    "GET": ("get", "list"),
    "POST": ("create", "create"),
    "PUT": ("update", ""),
    "PATCH": ("patch", ""),
    "DELETE": ("delete", "deletecollection"),
}
READS: Final = frozenset({"get", "list", "watch"})


def verb_of(method: str, target: Target, params: Params) -> str:
    """The Kubernetes verb. Raises ApiError 405 for a method that has no meaning here."""
    on_object, on_collection = _VERBS.get(method, ("", ""))
    verb = on_object if target.name else on_collection
    if not verb:
        raise method_not_allowed(target.kind.plural, target.kind.group, method)
    if method == "GET" and not target.subresource and is_true(params.get("watch", "")):
        return "watch"
    return verb


def read(rest: Rest, target: Target, verb: str, params: Params, view: View) -> Outcome:
    """Serve get or list. Raises ApiError."""
    _check_subresource(target)
    if verb == "list":
        return rest.list(target, params, view)
    if target.subresource == "scale":
        return subresources.get_scale(rest, target)
    if target.subresource in ("", "status"):
        return rest.get(target, view)
    raise method_not_allowed(f"{target.kind.plural}/{target.subresource}", target.kind.group, "GET")


def write(rest: Rest, target: Target, verb: str, params: Params, body: bytes, content_type: str, view: View) -> Outcome:
    """Serve one of the verbs that change something. Raises ApiError."""
    _check_subresource(target)
    match verb, target.subresource:
        case "delete", "":
            return rest.delete(target, delete_options(params, _options_body(body, content_type)))
        case "deletecollection", "":
            options = delete_options(params, _options_body(body, content_type))
            return rest.delete_collection(target, options, params)
        case "create", "":
            return rest.create(target, decode_body(body, content_type), params, view)
        case "create", "binding":
            return subresources.bind(rest, target, decode_body(body, content_type), params)
        case "create", "eviction":
            return eviction.evict(rest, target, decode_body(body, content_type), params)
        case "update", "" | "status":
            return rest.update(target, decode_body(body, content_type), params, view)
        case "update", "scale":
            return subresources.update_scale(rest, target, decode_body(body, content_type), params)
        case "update", "finalize":
            return subresources.finalize(rest, target, decode_body(body, content_type), params)
        case "patch", "" | "status" if media_type_of(content_type) == APPLY_PATCH:
            return rest.apply(target, decode_apply(body), params, view)
        case "patch", "" | "status":
            return rest.patch(target, content_type, _patch_body(body, content_type), params, view)
        case "patch", "scale":
            patch = _patch_body(body, content_type)
            return subresources.patch_scale(rest, target, content_type, patch, params)
    resource = "/".join(filter(None, (target.kind.plural, target.subresource)))
    raise method_not_allowed(resource, target.kind.group, verb)


def _check_subresource(target: Target) -> None:
    if target.subresource and target.subresource not in target.kind.subresources:
        raise subresources.no_subresource(target)


def _options_body(body: bytes, content_type: str) -> dict[str, Any]:
    if not body:
        return {}
    options = decode_body(body, content_type)
    if options.get("kind") not in (None, "DeleteOptions"):
        raise bad_request("the body of a DELETE must be DeleteOptions")
    return options


def _patch_body(body: bytes, content_type: str) -> Any:
    if media_type_of(content_type) == APPLY_PATCH:
        raise unsupported_media_type(
            "server-side apply of a scale is not served here: apply spec.replicas of the object itself"
        )
    return decode_json(body)
