"""TLS sessions that later connections resume, so that the API server signs and checks certificates once."""

from __future__ import annotations

import ssl


class ResumingContext(ssl.SSLContext):
    """A client context. Its connections resume the session of an earlier one that asked for the same name.

    A worker opens up to 64 connections at once when a wave of creates begins. A session belongs to the name that was
    verified when it began, as nothing is verified when it is resumed. It ends with its context, so a new client
    certificate begins a new one. A server that does not know a session makes a full handshake.
    """

    _latest: dict[str | bytes | None, ssl.SSLObject]
    _sessions: dict[str | bytes | None, ssl.SSLSession]

    def __new__(cls) -> ResumingContext:
        """Verifies the server, by no root yet."""
        made = super().__new__(cls, ssl.PROTOCOL_TLS_CLIENT)
        made._latest, made._sessions = {}, {}
        return made

    def wrap_bio(
        self,
        incoming: ssl.MemoryBIO,
        outgoing: ssl.MemoryBIO,
        server_side: bool = False,
        server_hostname: str | bytes | None = None,
        session: ssl.SSLSession | None = None,
    ) -> ssl.SSLObject:
        """As ``ssl.SSLContext`` does, with the session that is known."""
        name = server_hostname
        latest = self._latest.get(name)
        # Over TLS 1.3 the ticket comes after the handshake, so it is asked for as late as this. It is not asked for
        # again while it is accepted: each copy of a session takes as long as half a handshake.
        if latest is not None and latest.version() and not latest.session_reused:
            found = latest.session
            if found is not None and found.has_ticket:
                self._sessions[name] = found
        made = super().wrap_bio(incoming, outgoing, server_side, name, session or self._sessions.get(name))
        self._latest[name] = made
        return made
