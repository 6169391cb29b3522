"""The API as the fleet uses it: what a Reader does, and writes that are sent at most once.

No method raises because of an HTTP status or a broken connection: it returns an Answer, and `cluster/outcome.py` sorts
the answers to writes. A 2xx without an object of the kind asked for proves nothing and comes
back as NO_ANSWER. Bodies are JSON bytes prepared by the caller.
"""

from enum import StrEnum
from typing import Any, TypedDict, Unpack
from urllib.parse import urlencode

import orjson

from oarlock.cluster.answer import Answer, proven
from oarlock.cluster.reader import Reader
from oarlock.cluster.resources import Resource

_OF_THE_KIND = ("", "status")
"""Subresources that are answered with the object itself; others have kinds of their own, such as Scale."""


class PatchType(StrEnum):
    """Content types of the patches a server accepts."""

    MERGE = "application/merge-patch+json"
    JSON = "application/json-patch+json"
    STRATEGIC = "application/strategic-merge-patch+json"
    APPLY = "application/apply-patch+yaml"


class WriteOptions(TypedDict, total=False):
    """deadline_s: on `client.clock`; from then on the write is not sent (Answer code TOO_LATE).

    prepaid: the caller took the write's token from `client.limiter` before it announced the write.
    traceparent: the header of that name (W3C Trace Context), which tells the server whose trace this is; "" for none.
    """

    deadline_s: float | None
    prepaid: bool
    traceparent: str


class Client(Reader):
    """A Reader that also writes: `async with Client(config)`."""

    async def create(self, resource: Resource, namespace: str, body: bytes, **options: Unpack[WriteOptions]) -> Answer:
        """POST an object. Sort the answer with `outcome.of_create`."""
        if resource.namespaced and not namespace:
            raise ValueError(f"a {resource.kind} is created in a namespace")
        return proven(await self._write("POST", resource.collection(namespace), body, **options), resource)

    async def put(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """PUT a whole object, with the resourceVersion it was computed from. See `outcome.of_change`.

        Never repeat it on a fresh resourceVersion: compute it again.
        """
        answer = await self._write("PUT", resource.item(namespace, name, subresource), body, **options)
        return proven(answer, resource) if subresource in _OF_THE_KIND else answer

    async def patch(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        patch_type: PatchType = PatchType.MERGE,
        *,
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """PATCH an object or a subresource. See `outcome.of_change`."""
        path = resource.item(namespace, name, subresource)
        answer = await self._write("PATCH", path, body, patch_type.value, **options)
        return proven(answer, resource) if subresource in _OF_THE_KIND else answer

    async def apply(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        body: bytes,
        *,
        manager: str,
        force: bool = False,
        subresource: str = "",
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """Server-side apply; it creates an object that is not there. See `outcome.of_apply`.

        manager: in whose name the fields are managed; force: take over fields that others manage with other values.
        """
        query = urlencode({"fieldManager": manager, **({"force": "true"} if force else {})})
        path = f"{resource.item(namespace, name, subresource)}?{query}"
        answer = await self._write("PATCH", path, body, PatchType.APPLY.value, **options)
        return proven(answer, resource) if subresource in _OF_THE_KIND else answer

    async def delete(
        self,
        resource: Resource,
        namespace: str,
        name: str,
        *,
        uid: str = "",
        resource_version: str = "",
        grace_s: int | None = None,
        propagation: str = "",
        **options: Unpack[WriteOptions],
    ) -> Answer:
        """DELETE one object, only if it (still) has this uid and resourceVersion. See `outcome.of_delete`.

        grace_s: None for the object's own; propagation: Background, Foreground, Orphan or "" for the default.
        """
        body = delete_options(uid, resource_version, grace_s, propagation)
        return proven(
            await self._write("DELETE", resource.item(namespace, name), body, **options), resource, deleted=True
        )

    async def _write(
        self,
        method: str,
        path: str,
        body: bytes,
        content_type: str = "application/json",
        *,
        deadline_s: float | None = None,
        prepaid: bool = False,
        traceparent: str = "",
    ) -> Answer:
        if not prepaid:
            await self._take(method)
        return await self.limiter.carry(
            lambda: self.transport.write(
                method, path, body, content_type, deadline_s=deadline_s, traceparent=traceparent
            )
        )


def delete_options(uid: str, resource_version: str, grace_s: int | None, propagation: str) -> bytes:
    """The body of a DELETE: metav1.DeleteOptions with what was given."""
    options: dict[str, Any] = {"apiVersion": "v1", "kind": "DeleteOptions"}
    preconditions = {}
    if uid:
        preconditions["uid"] = uid
    if resource_version:
        preconditions["resourceVersion"] = resource_version
    if preconditions:
        options["preconditions"] = preconditions
    if grace_s is not None:
        options["gracePeriodSeconds"] = grace_s
    if propagation:
        options["propagationPolicy"] = propagation
    return orjson.dumps(options)
