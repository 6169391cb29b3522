"""The two ways a patch is refused.

Upstream: apiserver/pkg/endpoints/handlers/patch.go answers 400 for what is no patch and 422 for one that does
not fit the document.
"""

from __future__ import annotations

from oarlock.sandbox.apiserver.errors import ApiError, bad_request


def not_a_patch(why: str) -> ApiError:
    """400: the body is not a patch of its type."""
    return bad_request(why)


def does_not_apply(why: str) -> ApiError:
    """422: the patch is well formed and the document refuses it."""
    return ApiError(422, "Invalid", why)
