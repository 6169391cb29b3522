"""TLS contexts from what a kubeconfig or an exec plugin gives."""

import os
import ssl
from dataclasses import dataclass, field

from oarlock.cluster.access.credentials import ConfigError
from oarlock.cluster.access.tls_sessions import ResumingContext


@dataclass(frozen=True, slots=True)
class TlsOptions:
    """ca_pem: trusted roots, empty for the system's; server_name: the name to verify instead of the host."""

    ca_pem: bytes = field(default=b"", repr=False)
    insecure: bool = False
    server_name: str = ""


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
