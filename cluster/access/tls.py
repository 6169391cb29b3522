"""TLS contexts from what a kubeconfig or an exec plugin gives."""

import logging
import os
import ssl
import time
from collections.abc import Callable
from dataclasses import dataclass, field, replace
from pathlib import Path

from oarlock.cluster.access.credentials import REREAD_S, ConfigError, read_file
from oarlock.cluster.access.tls_sessions import ResumingContext

log = logging.getLogger("oarlock.cluster.access.tls")


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """ca_pem: trusted roots, empty for the system's; server_name: the name to verify instead of the host;
    ca_path: the file that they are of, None for none.
    """

    ca_pem: bytes = field(default=b"", repr=False)
    insecure: bool = False
    server_name: str = ""
    ca_path: Path | None = None


def tls_context(options: TlsOptions, certificate_pem: bytes = b"", key_pem: bytes = b"") -> ssl.SSLContext:
    """A client context. Raises ConfigError for a CA, certificate or key that cannot be used."""
    try:
        # Not as ssl.create_default_context makes it: since Python 3.13 it demands key identifiers, which certificate
        # authorities of older clusters lack.
        context = ResumingContext()
        if options.ca_pem:
            context.load_verify_locations(cadata=options.ca_pem.decode("ascii"))
        else:
            context.load_default_certs()
    except (ssl.SSLError, UnicodeDecodeError, ValueError) as error:
        raise ConfigError("the certificate authority of the cluster is not PEM with certificates in it") from error
    context.minimum_version = ssl.TLSVersion.TLSv1_2
    context.set_alpn_protocols(["http/1.1"])
    if options.insecure:
        context.check_hostname = False
        context.verify_mode = ssl.CERT_NONE
    if certificate_pem:
        _load_certificate(context, certificate_pem, key_pem)
    return context


def read_authorities(path: Path, what: str) -> bytes:
    """The authorities in a file. Raises ConfigError, also where there are none: no file means to trust the system's."""
    found = read_file(path, what)
    if not found.strip():
        raise ConfigError(f"{what} {path} is empty")
    return found


class Authorities:
    """The options as they are now: authorities of a file are read again each minute, and after a server did not fit.

    Those that cannot be read or used leave the ones read last in force (a rotation replaces the file); it is logged.
    """

    def __init__(self, options: TlsOptions, clock: Callable[[], float] = time.monotonic) -> None:
        self._options, self._clock = options, clock
        self._read_again_s = clock() + REREAD_S

    def current(self) -> TlsOptions:
        """The same object while nothing changed. Cheap: to be asked before every request."""
        if self._options.ca_path is not None and self._clock() >= self._read_again_s:
            self._read_again_s = self._clock() + REREAD_S
            try:
                fresh = read_authorities(self._options.ca_path, "the certificate authority")
                if fresh != self._options.ca_pem:
                    options = replace(self._options, ca_pem=fresh)
                    tls_context(options)
                    self._options = options
            except ConfigError as error:
                log.warning("keeping the certificate authority read last: %s", error)
        return self._options

    def suspect(self) -> None:
        """A server's certificate is of none of these authorities: look again before the next request."""
        self._read_again_s = self._clock()


def _load_certificate(context: ssl.SSLContext, certificate_pem: bytes, key_pem: bytes) -> None:
    # OpenSSL wants a path; memory behind a descriptor keeps the key off every disk.
    descriptor = os.memfd_create("client-certificate", os.MFD_CLOEXEC)
    try:
        os.write(descriptor, certificate_pem.rstrip() + b"\n" + key_pem)
        # An empty password: an encrypted key must fail, not ask on the terminal.
        context.load_cert_chain(f"/proc/self/fd/{descriptor}", password=b"")
    except (ssl.SSLError, OSError) as error:
        raise ConfigError(
            "the client certificate and its key cannot be used: "
            "they must be PEM, belong together, and the key must not be encrypted"
        ) from error
    finally:
        os.close(descriptor)
