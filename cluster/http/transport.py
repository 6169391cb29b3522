"""Requests to the API server, each sent at most once, each ending in an Answer.

What the protocol rests on (contract: tests/cluster/http/test_contract.py): a write reaches the server at
most once, whatever happens to the connection; no redirect is followed; nothing is sent after its deadline; and an
answer says for certain whether anything was sent at all.
"""

import asyncio
import re
import ssl
import time
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from email.utils import parsedate_to_datetime
from importlib.metadata import PackageNotFoundError, version
from typing import TYPE_CHECKING
from urllib.parse import urlsplit

from oarlock.cluster.access.config import ClusterConfig
from oarlock.cluster.access.credentials import Auth, ConfigError
from oarlock.cluster.access.tls import Authorities, TlsOptions, tls_context
from oarlock.cluster.answer import NO_ANSWER, NOT_SENT, PAST_DEADLINE, Answer
from oarlock.cluster.forbidden import OnForbidden, log_missing, missing_permission
from oarlock.cluster.http.flight import Flight, LostError, RequestObserver, TooLateError, Unobserved, reason
from oarlock.cluster.http.messages import HttpAnswer, RequestWriter
from oarlock.cluster.http.pool import Pool
from oarlock.cluster.http.streaming import Stream

if TYPE_CHECKING:
    from oarlock.cluster.http.session import Session

REQUEST_TIMEOUT_S = 4.0  # T_req: client side for the whole request, and told to the server as `timeout`
# Writes on the wire at once, each on a connection of its own; the rest of a burst of 500 waits here, where waiting
# uses up none of T_req. More is worse while the server is near: 500 connections cost 0.12-0.15 ms CPU a request
# and half the rate, 64 cost 0.08 (tests/cluster/http/cost.py). Worth raising, up to 500, where answers take long
# (slow admission webhooks): 64 at 100 ms each still make 640 writes a second.
WRITES_MAX = 64
STREAMS_KEPT = 64  # connections of watches that have ended; any number may be open


def boottime_s() -> float:
    """Seconds since boot, suspension included: the clock deadlines are given in."""
    return time.clock_gettime(time.CLOCK_BOOTTIME)


def user_agent(role: str) -> str:
    """`oarlock/<version> (<role>)`; what stands before the slash is the field manager a server notes."""
    try:
        return f"oarlock/{version('oarlock')} ({role})"
    except PackageNotFoundError:
        return f"oarlock/0 ({role})"


class Transport:
    """Requests over one connection pool. Use inside one event loop, as `async with Transport(...)`.

    config: server and credentials; role: part of the user agent; request_timeout_s: T_req;
    writes_max: writes on the wire at once, further ones wait; clock: seconds, the clock of deadlines;
    on_forbidden: told of every answer that says we lack a permission; observer: of every request.
    Raises ConfigError from the constructor if a certificate cannot be used.
    """

    def __init__(
        self,
        config: ClusterConfig,
        *,
        role: str = "client",
        request_timeout_s: float = REQUEST_TIMEOUT_S,
        writes_max: int = WRITES_MAX,
        clock: Callable[[], float] = boottime_s,
        on_forbidden: OnForbidden = log_missing,
        observer: RequestObserver | None = None,
    ) -> None:
        self.config = config
        self._on_forbidden = on_forbidden
        self._observer: RequestObserver = observer or Unobserved()
        self.clock = clock
        self.request_timeout_s = request_timeout_s
        self._timeout_query = f"timeout={round(request_timeout_s * 1000)}ms"
        self._user_agent = user_agent(role)
        self._writes = asyncio.Semaphore(writes_max)
        parts = urlsplit(config.server)
        self._secure = parts.scheme == "https"
        self._tls: ssl.SSLContext | None = None
        self._tls_of: tuple[Auth, TlsOptions] | None = None
        self._authorities = Authorities(config.tls)
        self._session: Session | None = None
        host = re.sub(r"%[^]]*(?=])", "", parts.netloc.rpartition("@")[2])  # without a zone (RFC 6874)
        self._writer = RequestWriter(host, parts.path.rstrip("/"), self._user_agent)
        self._straight: Pool | None = None
        # Apart, because a server that shuts down ends watches in order and then their connections: a write that took
        # one of these would stay unanswered.
        self._streams: Pool | None = None
        if not config.proxy:
            self._straight = Pool(config.server, config.tls.server_name, request_timeout_s, writes_max)
            self._streams = Pool(config.server, config.tls.server_name, request_timeout_s, STREAMS_KEPT)
        self._closed = False
        known = config.credentials.current()
        if known is not None:
            self._make_tls(known)

    async def __aenter__(self) -> "Transport":
        return self

    async def __aexit__(self, *_: object) -> None:
        await self.close()

    async def close(self) -> None:
        """Close all connections, for good; requests under way end without an answer."""
        self._closed = True
        for pool in (self._straight, self._streams):
            if pool is not None:
                pool.close()
        if self._session is not None:
            await self._session.close()

    async def greet(self) -> None:
        """Open a connection for writes. The server sends a TLS session for it, which those of the first wave of writes
        resume (`cluster.access.tls_sessions`). Nothing is asked, and what goes wrong is for the first write to say.
        """
        auth = (await self._authenticate())[1]
        if auth is not None and self._straight is not None and self._tls is not None:
            with suppress(OSError, TimeoutError):
                async with asyncio.timeout(self.request_timeout_s):
                    await self._straight.greet(self._tls)

    async def read(self, path: str, *, timeout_s: float | None = None) -> Answer:
        """GET. Asked a second time if the connection was lost under it, or if a 401 led to other credentials."""
        flight = Flight("GET", path, timeout_s=timeout_s or self.request_timeout_s, clock=self.clock)
        refusal, auth = await self._authenticate()
        if auth is None:
            return refusal
        answer = await self._exchange(flight, auth)
        again = await self._read_again(flight, answer, auth)
        return answer if again is None else await self._exchange(flight, again)

    async def write(
        self,
        method: str,
        path: str,
        body: bytes = b"",
        content_type: str = "application/json",
        *,
        deadline_s: float | None = None,
        traceparent: str = "",
    ) -> Answer:
        """POST, PUT, PATCH or DELETE, at most once. deadline_s: on `clock`; from then on nothing is sent.

        Codes: the server's; NO_ANSWER if it was sent and may take effect; NOT_SENT or TOO_LATE if it certainly was not.
        """
        flight = Flight(
            method,
            f"{path}{'&' if '?' in path else '?'}{self._timeout_query}",
            timeout_s=self.request_timeout_s,
            clock=self.clock,
            body=body,
            content_type=content_type,
            deadline_s=deadline_s,
            traceparent=traceparent,
        )
        async with self._writes:
            refusal, auth = await self._authenticate()
            if auth is None:
                return refusal
            if flight.too_late():
                return PAST_DEADLINE
            return await self._exchange(flight, auth)

    @asynccontextmanager
    async def stream(self, path: str, *, head_timeout_s: float) -> AsyncIterator[Stream | Answer]:
        """GET whose body is read as it comes: a Stream on 200, else an Answer.

        head_timeout_s bounds the wait for the head of the response, and TimeoutError is raised if it does not
        come; reading the body is the caller's to bound. Asked a second time like `read`.
        """
        flight = Flight("GET", path, timeout_s=head_timeout_s, clock=self.clock)
        refusal, auth = await self._authenticate()
        if auth is None:
            yield refusal
            return
        opened = await self._open_stream(flight, auth)
        if isinstance(opened, Answer):
            again = await self._read_again(flight, opened, auth)
            if again is not None:
                opened = await self._open_stream(flight, again)
        try:
            yield opened
        finally:
            if not isinstance(opened, Answer):
                opened.close()

    async def _open_stream(self, flight: Flight, auth: Auth) -> Stream | Answer:
        request = self._written(flight, auth)
        given: HttpAnswer | Stream
        try:
            if self._streams is not None and request is not None:
                given = await self._streams.exchange(flight, request, self._tls, streams=True)
            else:
                given = await self._library().open(flight, auth.headers, self._tls)
        except OSError as error:
            self._observer.answered(flight.method, NO_ANSWER, None)
            self._suspect(error, auth)
            if flight.sent and isinstance(error, TimeoutError):
                raise
            return _unanswered(flight, error)
        if not isinstance(given, HttpAnswer):
            self._observer.answered(flight.method, 200, None)
            return given
        return self._told(flight, given, auth, None)

    async def _read_again(self, flight: Flight, answer: Answer, auth: Auth) -> Auth | None:
        """With what to ask a read again, or None if its answer stands. Never for a write."""
        if self._closed:
            return None
        if flight.lost:
            flight.sent, flight.lost, flight.anew = False, False, True
            return auth
        if answer.code != 401:
            return None
        _, renewed = await self._authenticate()
        return renewed if renewed is not auth else None

    async def _exchange(self, flight: Flight, auth: Auth) -> Answer:
        begun_s = time.perf_counter()
        request = self._written(flight, auth)
        try:
            if self._straight is not None and request is not None:
                given = await self._straight.exchange(flight, request, self._tls)
                assert isinstance(given, HttpAnswer)
            else:  # a library knows how to ask a proxy, and what else there is
                given = await self._library().exchange(flight, auth.headers, self._tls)
        except TooLateError:
            return PAST_DEADLINE
        except OSError as error:
            # Also when the head had come and the body broke off: what was done is in the body.
            self._observer.answered(flight.method, NO_ANSWER, time.perf_counter() - begun_s)
            self._suspect(error, auth)
            return _unanswered(flight, error)
        return self._told(flight, given, auth, time.perf_counter() - begun_s)

    def _suspect(self, error: OSError, auth: Auth) -> None:
        """Files that were read may have been replaced since: those by which one of us did not take the other."""
        cause = error if isinstance(error, ssl.SSLError) else error.__cause__
        if isinstance(cause, ssl.SSLCertVerificationError):
            self._authorities.suspect()
        elif isinstance(cause, ssl.SSLError) and auth.certificate_pem:
            self.config.credentials.suspect(auth)

    def _written(self, flight: Flight, auth: Auth) -> bytes | None:
        return self._writer.written(
            flight.method, flight.path, auth.headers, flight.content_type, flight.body, flight.traceparent
        )

    def _told(self, flight: Flight, given: HttpAnswer, auth: Auth, took_s: float | None) -> Answer:
        answer = Answer(given.status, given.body, _seconds(given.retry_after) if given.retry_after else None)
        self._observer.answered(flight.method, answer.code, took_s)
        if answer.code == 401:
            self.config.credentials.suspect(auth)
        elif answer.code == 403:
            missing = missing_permission(answer, flight.path, flight.body)
            if missing is not None:
                self._on_forbidden(missing)
        return answer

    def _library(self) -> "Session":
        if self._session is None:
            from oarlock.cluster.http.session import Session  # noqa: PLC0415 - it takes 8 MB, and few need it

            self._session = Session(self.config, self._user_agent, self.request_timeout_s)
        return self._session

    async def _authenticate(self) -> tuple[Answer, Auth | None]:
        """(nothing, the Auth to use) or (why there is none, None)."""
        if self._closed:
            return Answer(NOT_SENT, error="the client is closed"), None
        try:
            auth = self.config.credentials.current()
            if auth is None:
                auth = await self.config.credentials.fetch()
            known, options = self._tls_of, self._authorities.current()
            if known is None or auth is not known[0] or options is not known[1]:
                try:
                    self._make_tls(auth)
                except ConfigError:
                    self.config.credentials.suspect(auth)  # no server will ever answer 401 to it
                    raise
        except ConfigError as error:
            return Answer(NOT_SENT, error=str(error)), None
        return _NOTHING, auth

    def _make_tls(self, auth: Auth) -> None:
        # A connection belongs to its context, so those made with an earlier certificate are not used again.
        options = self._authorities.current()
        if self._secure:
            self._tls = tls_context(options, auth.certificate_pem, auth.key_pem)
        self._tls_of = auth, options


_NOTHING = Answer(NOT_SENT)


def _unanswered(flight: Flight, error: OSError) -> Answer:
    flight.lost = flight.sent and isinstance(error, LostError)
    text = reason(error)
    if isinstance(error, TimeoutError):
        text = f"no {'answer' if flight.sent else 'connection'} within {flight.timeout_s:g} s"
    return Answer(NO_ANSWER if flight.sent else NOT_SENT, error=text)


def _seconds(header: str) -> float | None:
    """Of a Retry-After, given so or as a date; None for anything else. How much of it counts: `cluster.outcome`."""
    if header.isdecimal():
        return float(header)
    try:
        return max(0.0, parsedate_to_datetime(header).timestamp() - time.time())
    except (ValueError, TypeError, OverflowError):
        return None
