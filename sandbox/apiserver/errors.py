"""What the API answers when it refuses: `metav1.Status` objects in upstream's words.

Clients decide by `reason` and `code`, people and logs by `message`; all three follow
upstream: staging/src/k8s.io/apimachinery/pkg/api/errors/errors.go and
staging/src/k8s.io/apimachinery/pkg/util/validation/field/errors.go.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import Any, Final

import orjson

Status = dict[str, Any]


def quoted(text: str) -> str:
    """`text` in double quotes with backslashes and quotes escaped, as Go's %q prints plain text."""
    return '"' + text.replace("\\", "\\\\").replace('"', '\\"') + '"'


def _shown(value: object) -> str:
    """A bad value as Go's field errors print it: strings quoted, other values as JSON."""
    if isinstance(value, str):
        return quoted(value)
    is_number = isinstance(value, int | float) and not isinstance(value, bool)
    return str(value) if is_number else orjson.dumps(value).decode()


@dataclass(frozen=True, slots=True)
class FieldError:
    """One field that is not acceptable: where, why (a `FieldValue...` reason) and in words.

    `message` is complete except for the leading field path.
    """

    field: str
    reason: str
    message: str

    @classmethod
    def invalid(cls, field: str, value: object, detail: str) -> FieldError:
        return cls(field, "FieldValueInvalid", f"Invalid value: {_shown(value)}: {detail}")

    @classmethod
    def required(cls, field: str, detail: str = "") -> FieldError:
        return cls(field, "FieldValueRequired", "Required value" + (f": {detail}" if detail else ""))

    @classmethod
    def forbidden(cls, field: str, detail: str) -> FieldError:
        return cls(field, "FieldValueForbidden", f"Forbidden: {detail}")

    @classmethod
    def duplicate(cls, field: str, value: object) -> FieldError:
        return cls(field, "FieldValueDuplicate", f"Duplicate value: {_shown(value)}")

    @classmethod
    def not_found(cls, field: str, value: object) -> FieldError:
        return cls(field, "FieldValueNotFound", f"Not found: {_shown(value)}")

    @classmethod
    def too_long(cls, field: str, limit: int) -> FieldError:
        return cls(field, "FieldValueTooLong", f"Too long: may not be more than {limit} bytes")

    @classmethod
    def unsupported(cls, field: str, value: object, supported: Sequence[str]) -> FieldError:
        choices = ", ".join(quoted(choice) for choice in supported)
        return cls(
            field,
            "FieldValueNotSupported",
            f"Unsupported value: {_shown(value)}: supported values: {choices}",
        )

    def __str__(self) -> str:
        return f"{self.field}: {self.message}"


class ApiError(Exception):
    """A refusal: HTTP `code`, `reason`, `message`, optional `details` and `retry_after_s` (whole seconds)."""

    def __init__(
        self,
        code: int,
        reason: str,
        message: str,
        details: dict[str, Any] | None = None,
        *,
        retry_after_s: int | None = None,
        metadata: dict[str, Any] | None = None,
    ) -> None:
        super().__init__(message)
        self.code = code
        self.reason = reason
        self.message = message
        self.details = details
        self.retry_after_s = retry_after_s
        self.metadata = metadata

    def status(self) -> Status:
        """The body of the answer."""
        body: Status = {
            "kind": "Status",
            "apiVersion": "v1",
            "metadata": self.metadata or {},
            "status": "Failure",
            "message": self.message,
            "reason": self.reason,
        }
        if self.details is not None:
            body["details"] = self.details
        body["code"] = self.code
        return body


def qualified(resource: str, group: str) -> str:
    """`pods`, `replicasets.apps`."""
    return f"{resource}.{group}" if group else resource


def _details(resource: str, group: str, name: str) -> dict[str, Any]:
    return {key: value for key, value in (("name", name), ("group", group), ("kind", resource)) if value}


def not_found(resource: str, group: str, name: str) -> ApiError:
    """404 for an object that is not there."""
    return ApiError(
        404,
        "NotFound",
        f"{qualified(resource, group)} {quoted(name)} not found",
        _details(resource, group, name),
    )


def no_such_resource() -> ApiError:
    """404 for a path that names nothing served here: an unknown group, version or kind."""
    return ApiError(404, "NotFound", "the server could not find the requested resource", {})


def already_exists(resource: str, group: str, name: str) -> ApiError:
    return ApiError(
        409,
        "AlreadyExists",
        f"{qualified(resource, group)} {quoted(name)} already exists",
        _details(resource, group, name),
    )


def conflict(resource: str, group: str, name: str, why: str) -> ApiError:
    return ApiError(
        409,
        "Conflict",
        f"Operation cannot be fulfilled on {qualified(resource, group)} {quoted(name)}: {why}",
        _details(resource, group, name),
    )


OBJECT_MODIFIED: Final = "the object has been modified; please apply your changes to the latest version and try again"


def forbidden(resource: str, group: str, name: str, why: str, causes: Iterable[dict[str, str]] = ()) -> ApiError:
    """403 from admission: quota, a namespace that is going away, a protected object."""
    details = _details(resource, group, name)
    listed = list(causes)
    if listed:
        details["causes"] = listed
    what = qualified(resource, group)
    subject = f"{what} {quoted(name)} is forbidden" if name else f"{what} is forbidden"
    return ApiError(403, "Forbidden", f"{subject}: {why}", details)


def not_permitted(verb: str, resource: str, group: str, name: str, namespace: str) -> ApiError:
    """403 from an authorizer. `resource` is `pods` or `pods/status`."""
    where = f"in the namespace {quoted(namespace)}" if namespace else "at the cluster scope"
    what = f"cannot {verb} resource {quoted(resource)} in API group {quoted(group)} {where}"
    return forbidden(resource.partition("/")[0], group, name, f"User {quoted('embedded')} {what}")


def invalid(kind: str, group: str, name: str, errors: Sequence[FieldError]) -> ApiError:
    """422 with one cause for each field."""
    details = _details(kind, group, name)
    details["causes"] = [{"reason": e.reason, "message": e.message, "field": e.field} for e in errors]
    told = list(dict.fromkeys(str(error) for error in errors))
    listed = told[0] if len(told) == 1 else "[" + ", ".join(told) + "]"
    return ApiError(422, "Invalid", f"{qualified(kind, group)} {quoted(name)} is invalid: {listed}", details)


def bad_request(message: str) -> ApiError:
    return ApiError(400, "BadRequest", message)


def does_not_apply(why: str) -> ApiError:
    """422: the patch is well formed, and the document refuses it.

    Upstream: apiserver/pkg/endpoints/handlers/patch.go answers 400 for what is no patch.
    """
    return ApiError(422, "Invalid", why)


def unauthorized() -> ApiError:
    return ApiError(401, "Unauthorized", "Unauthorized")


def misdirected() -> ApiError:
    return ApiError(421, "MisdirectedRequest", "this server does not go by the name in the request's Host header")


def method_not_allowed(resource: str, group: str, verb: str) -> ApiError:
    if not resource:
        return ApiError(405, "MethodNotAllowed", "the server does not allow this method on the requested resource", {})
    return ApiError(
        405,
        "MethodNotAllowed",
        f"{verb} is not supported on resources of kind {quoted(qualified(resource, group))}",
        _details(resource, group, ""),
    )


def definition_terminating(verb: str) -> ApiError:
    """405: the definition of a custom kind is being deleted."""
    why = f"{verb} not allowed while custom resource definition is terminating"
    return ApiError(405, "MethodNotAllowed", why, {})


def unsupported_media_type(message: str) -> ApiError:
    return ApiError(415, "UnsupportedMediaType", message)


def not_acceptable(message: str) -> ApiError:
    return ApiError(406, "NotAcceptable", message)


def expired(message: str, next_token: str = "") -> ApiError:
    """410: the history asked for is no longer kept. `next_token` goes on with an inconsistent list."""
    return ApiError(410, "Expired", message, metadata={"continue": next_token} if next_token else None)


def too_many_requests(retry_after_s: int, message: str = "") -> ApiError:
    return ApiError(
        429,
        "TooManyRequests",
        message or "the server has received too many requests and has asked us to try again later",
        {"retryAfterSeconds": retry_after_s},
        retry_after_s=retry_after_s,
    )


def internal_error(message: str) -> ApiError:
    return ApiError(
        500,
        "InternalError",
        f"Internal error occurred: {message}",
        {"causes": [{"message": message}]},
    )


def timed_out(message: str) -> ApiError:
    return ApiError(504, "Timeout", f"Timeout: {message}")
