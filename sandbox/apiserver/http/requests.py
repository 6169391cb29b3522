"""The HTTP handler: from a request to its response, with authentication, audit and faults on the way."""

from __future__ import annotations

import asyncio
import logging
import math
import random
import time
from collections.abc import Awaitable, Callable, Mapping
from typing import Any, Final
from urllib.parse import parse_qsl

import msgspec
import orjson
from aiohttp import web

from oarlock.sandbox.apiserver.apply.request import AGENT
from oarlock.sandbox.apiserver.errors import (
    OBJECT_MODIFIED,
    ApiError,
    already_exists,
    conflict,
    internal_error,
    misdirected,
    no_such_resource,
    not_permitted,
    timed_out,
    too_many_requests,
)
from oarlock.sandbox.apiserver.http import discovery, dispatch
from oarlock.sandbox.apiserver.http.arrival import waited_s
from oarlock.sandbox.apiserver.http.audit import ANSWER, COMMITTED, AuditLog, Call
from oarlock.sandbox.apiserver.http.fault_endpoint import FaultDesk
from oarlock.sandbox.apiserver.http.faults import WEBHOOK_DENIES, WEBHOOK_DOWN, Action, Chosen, Fault, Faults
from oarlock.sandbox.apiserver.http.hosts import Hosts
from oarlock.sandbox.apiserver.http.identity import Identity, without_token
from oarlock.sandbox.apiserver.http.negotiation import PROTOBUF, media_type_of, shape_of
from oarlock.sandbox.apiserver.http.paths import Paths, Target
from oarlock.sandbox.apiserver.http.watch import DEFAULT_LASTS_S, Pace, Watch, watch_request
from oarlock.sandbox.apiserver.printing.tables import View, view_of
from oarlock.sandbox.apiserver.text.times import duration_s
from oarlock.sandbox.apiserver.verbs.rest import Outcome, Rest

log = logging.getLogger(__name__)

ADMIN_PREFIX: Final = "/_oarlock/"
_JSON_HEADERS: Final = {"Content-Type": "application/json"}
_TOO_LATE: Final = "request did not complete within requested timeout - context deadline exceeded"

AdminHandler = Callable[[str, bytes], Awaitable[Any]]
"""(method, body) -> what to answer as JSON. Raises ApiError."""


class _Name(msgspec.Struct):
    name: str = ""


class _Named(msgspec.Struct):
    metadata: _Name = msgspec.field(default_factory=_Name)


_named = msgspec.json.Decoder(_Named)


class Requests:
    """`handle` serves every request. `faults` None: no faults and no admin endpoint for them. `hosts` None: it goes by
    every name.
    """

    def __init__(
        self,
        rest: Rest,
        *,
        audit: AuditLog | None = None,
        faults: Faults | None = None,
        identity: Identity | None = None,
        hosts: Hosts | None = None,
        pace: Pace | None = None,
    ) -> None:
        self._rest = rest
        self._store = rest.store
        self._audit = audit
        self._faults = faults
        self._identity = identity or Identity()
        self._hosts = hosts
        self._pace = pace or Pace()
        self._take_kinds()
        self._late: set[asyncio.Task[web.StreamResponse]] = set()
        self._admin: dict[str, AdminHandler] = {}
        self._desk: FaultDesk | None = None
        if faults is not None:
            self._desk = FaultDesk(faults, self._store)
            self.add_admin("faults", self._desk.serve)
        self.stopping = False

    def _take_kinds(self) -> None:
        """Have paths and documents follow the kinds that the store serves now."""
        self._kinds_seen = self._store.kinds_changed
        self._paths = Paths(self._store.kinds.values())
        self._documents = discovery.documents(self._store.kinds)

    def add_admin(self, name: str, handler: AdminHandler) -> None:
        """Serve `/_oarlock/NAME` by `handler`."""
        self._admin[ADMIN_PREFIX + name] = handler

    def inject(self, fault: Fault) -> None:
        """Put a fault in force now."""
        if self._desk is None:
            raise RuntimeError("this server was started without faults")
        self._desk.inject(fault)

    def stop(self) -> None:
        """Refuse nothing, but end every watch and give up writes that a fault still holds back."""
        self.stopping = True
        for history in self._store.logs.values():
            history.wake()
        for task in self._late:
            task.cancel()

    # -- one request -----------------------------------------------------------------------------

    async def handle(self, request: web.BaseRequest) -> web.StreamResponse:
        try:
            return await self._handle(request)
        except ApiError as error:
            return _response(Outcome.refusal(error))
        except web.HTTPRequestEntityTooLarge:
            too_large = ApiError(413, "RequestEntityTooLarge", "Request entity too large: limit is 3145728")
            return _response(Outcome.refusal(too_large))
        except Exception as error:  # one broken request must not end the server, and must be seen
            log.exception("%s %s failed", request.method, without_token(request.raw_path))
            return _response(Outcome.refusal(internal_error(f"{type(error).__name__}: {error}")))

    async def _handle(self, request: web.BaseRequest) -> web.StreamResponse:
        now_s, waited = time.monotonic(), waited_s(request.transport)
        received_s = time.time() - waited
        method = request.method
        if self._hosts is not None and not self._hosts.ours(request.headers.get("Host", "")):
            raise misdirected()
        user, uri = self._identity.user(request, request.raw_path)
        path, _, query = uri.partition("?")
        if self._kinds_seen != self._store.kinds_changed:
            self._take_kinds()
        if method == "GET":
            document = self._documents.get(path.rstrip("/") if len(path) > 1 else path)
            if document is not None:
                return web.Response(body=document[0], headers={"Content-Type": document[1]})
        if path.startswith(ADMIN_PREFIX):
            return await self._serve_admin(request, path)
        params = dict(parse_qsl(query, keep_blank_values=True)) if query else {}
        target = self._paths.resolve(path)
        if target is None:
            raise no_such_resource()
        verb = dispatch.verb_of(method, target, params)
        headers = request.headers
        view = view_of(shape_of(headers.get("Accept", "")), params.get("includeObject", ""))
        call = Call(
            verb=verb,
            uri=uri,
            user=user,
            user_agent=headers.get("User-Agent", ""),
            source_ip=(request.remote or "") if self._audit is not None else "",
            target=target,
            received_s=received_s,
        )
        if verb == "watch":
            return await self._watch(request, call, params, view)
        if verb not in dispatch.READS:
            call.until_s = now_s - waited + (duration_s(params.get("timeout", "")) or math.inf)
            call.body = await request.read()
            call.content_type = headers.get("Content-Type", "")
        chosen = None
        if self._faults is not None:
            subject = _subject(call) if self._faults.by_name else ""
            chosen = self._faults.choose(verb, _resource(target), call.user_agent, subject, target.namespace)
        if chosen is None:
            return _response(self._serve(call, params, view))
        # Shielded: what a client gave up on may still happen, and then is audited like anything else.
        task = asyncio.create_task(self._serve_with_fault(request, call, params, view, chosen))
        self._late.add(task)
        task.add_done_callback(self._late.discard)
        return await asyncio.shield(task)

    def _serve(self, call: Call, params: Mapping[str, str], view: View, fail_after: bool = False) -> Outcome:
        """Act, and note it in the audit log. Refusals are outcomes here, not exceptions.

        A write is carried out within its time from when it reached the machine, or never: its client counts on that.
        """
        rv_before = self._store.rv
        try:
            if time.monotonic() >= call.until_s:
                raise timed_out(_TOO_LATE)
            if call.verb in dispatch.READS:
                outcome = dispatch.read(self._rest, call.target, call.verb, params, view)
            else:
                said = {**params, AGENT: call.user_agent}
                outcome = dispatch.write(self._rest, call.target, call.verb, said, call.body, call.content_type, view)
        except ApiError as error:
            outcome = Outcome.refusal(error)
        call.committed = self._store.rv != rv_before
        if fail_after:
            failed = Outcome.refusal(internal_error("an injected fault"))
            outcome = Outcome(failed.code, failed.body, outcome.about)
        self._note(call, outcome)
        return outcome

    def _note(self, call: Call, outcome: Outcome) -> None:
        audit = self._audit
        if audit is None:
            return
        if call.verb in dispatch.READS:
            if not audit.reads:
                return
        else:
            call.annotations[COMMITTED] = "true" if call.committed else "false"
        call.body_is_json = media_type_of(call.content_type) != PROTOBUF and "yaml" not in call.content_type
        audit.record(call, outcome.code, outcome.body, outcome.about, time.time())

    # -- faults ----------------------------------------------------------------------------------

    async def _serve_with_fault(
        self,
        request: web.BaseRequest,
        call: Call,
        params: Mapping[str, str],
        view: View,
        chosen: Chosen,
    ) -> web.StreamResponse:
        call.annotations[ANSWER] = ",".join(chosen.names)
        if (refusal := _refusal(chosen, call)) is not None:
            outcome = Outcome.refusal(refusal)
            self._note(call, outcome)
            return _response(outcome)
        late, left_s = Outcome.refusal(timed_out(_TOO_LATE)), call.until_s - time.monotonic()
        if chosen.before_s >= left_s:
            await asyncio.sleep(left_s)
            self._note(call, late)
            return _response(late)
        if chosen.before_s:
            await asyncio.sleep(chosen.before_s)
        outcome = self._serve(call, params, view, fail_after=Action.FAIL_AFTER in chosen.actions)
        if Action.DROP_ANSWER in chosen.actions:
            if request.transport is not None:
                request.transport.abort()
            return web.Response()
        left_s = call.until_s - time.monotonic()
        if chosen.after_s >= left_s:
            await asyncio.sleep(left_s)
            return _response(late)
        if chosen.after_s:
            await asyncio.sleep(chosen.after_s)
        return _response(outcome)

    async def _serve_admin(self, request: web.BaseRequest, path: str) -> web.StreamResponse:
        handler = self._admin.get(path.rstrip("/"))
        if handler is None:
            raise no_such_resource()
        answer = await handler(request.method, await request.read())
        return _response(Outcome(200, orjson.dumps(answer)))

    # -- watches ---------------------------------------------------------------------------------

    async def _watch(
        self, request: web.BaseRequest, call: Call, params: Mapping[str, str], view: View
    ) -> web.StreamResponse:
        asked = watch_request(self._store, call.target, params, view, random.uniform(*DEFAULT_LASTS_S))
        faults, resource = self._faults, _resource(call.target)
        if faults is not None and (chosen := faults.choose("watch", resource, call.user_agent)):
            await asyncio.sleep(chosen.before_s)
            if (refusal := _refusal(chosen, call)) is not None:
                raise refusal
            if Action.FAIL_AFTER in chosen.actions:
                raise internal_error("an injected fault")

        def stalled() -> bool:
            return faults is not None and faults.watch_stalled(resource, call.user_agent, time.monotonic())

        response = web.StreamResponse(headers=_JSON_HEADERS)
        await response.prepare(request)
        watch = Watch(
            self._store,
            asked,
            pace=self._pace,
            now=time.monotonic,
            stalled=stalled,
            stopping=lambda: self.stopping,
        )
        try:
            await watch.run(response.write)
            await response.write_eof()
        except ConnectionError:
            log.debug("a watch of %s was left by its client", resource)
        return response


def _refusal(chosen: Chosen, call: Call) -> ApiError | None:
    """The answer that a fault gives in the server's place; nothing is done."""
    verb, target = call.verb, call.target
    if Action.REFUSE in chosen.actions:
        return too_many_requests(chosen.retry_after_s)
    if Action.CONFLICT in chosen.actions:
        kind, name = target.kind, _subject(call).rpartition("/")[2]
        if verb == "create":
            return already_exists(kind.plural, kind.group, name)
        return conflict(kind.plural, kind.group, name, OBJECT_MODIFIED)
    if Action.FORBID in chosen.actions:
        return not_permitted(verb, _resource(target), target.kind.group, target.name, target.namespace)
    if Action.DENY_WEBHOOK in chosen.actions:
        return ApiError(403, "Forbidden", WEBHOOK_DENIES)
    if Action.FAIL_WEBHOOK in chosen.actions:
        return internal_error(WEBHOOK_DOWN)
    return internal_error("an injected fault") if Action.FAIL_BEFORE in chosen.actions else None


def _resource(target: Target) -> str:
    return f"{target.kind.plural}/{target.subresource}" if target.subresource else target.kind.plural


def _subject(call: Call) -> str:
    """As "namespace/name": the object that is meant; "" where only the server can name it."""
    name = call.target.name
    if not name and call.body:
        try:
            name = _named.decode(call.body).metadata.name
        except msgspec.DecodeError:
            name = ""
    return f"{call.target.namespace}/{name}" if name else ""


def _response(outcome: Outcome) -> web.Response:
    headers = _JSON_HEADERS
    if outcome.retry_after_s is not None:
        headers = {**_JSON_HEADERS, "Retry-After": str(outcome.retry_after_s)}
    return web.Response(body=outcome.body, status=outcome.code, headers=headers)
