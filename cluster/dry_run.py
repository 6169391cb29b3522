"""Writes that the API server goes through in full and does not carry out: dryRun=All.

The server authorizes, defaults, admits and validates such a write, and answers with the object that it would have
stored. Every path is made here, so none can go without the parameter.
Upstream: apiserver/pkg/registry/generic/registry/dryrun.go.
"""

from __future__ import annotations

from urllib.parse import urlencode

from oarlock.cluster.answer import Answer, proven
from oarlock.cluster.client import PatchType
from oarlock.cluster.reader import Reader
from oarlock.cluster.resources import Resource


class DryRuns:
    """Over the connections of a Reader. ``manager``: in whose name the fields would be written.

    The server refuses unknown and duplicate fields from Kubernetes 1.25 on; an older one does not know the parameter.
    """

    def __init__(self, reader: Reader, manager: str) -> None:
        self._transport = reader.transport
        self._query = urlencode({"dryRun": "All", "fieldManager": manager, "fieldValidation": "Strict"})

    async def create(self, resource: Resource, namespace: str, body: bytes) -> Answer:
        """What a POST would answer."""
        path = f"{resource.collection(namespace)}?{self._query}"
        return proven(await self._transport.write("POST", path, body), resource)

    async def patch(self, resource: Resource, namespace: str, name: str, body: bytes) -> Answer:
        """What a strategic merge patch would answer."""
        path = f"{resource.item(namespace, name)}?{self._query}"
        return proven(await self._transport.write("PATCH", path, body, PatchType.STRATEGIC.value), resource)
