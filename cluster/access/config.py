"""Which API server to talk to and as whom: from a kubeconfig, or from inside a pod.

Order: an explicit kubeconfig, KUBECONFIG, the service account of the pod we run in, ~/.kube/config.
"""

import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from urllib.parse import urlsplit

from oarlock.cluster.access.credentials import (
    Auth,
    ConfigError,
    Credentials,
    FileCredentials,
    FixedCredentials,
)
from oarlock.cluster.access.kubeconfig import Entry, read
from oarlock.cluster.access.kubeconfig_user import user_credentials
from oarlock.cluster.access.proxy import proxy_from_environment
from oarlock.cluster.access.tls import TlsOptions, read_authorities

SERVICE_ACCOUNT = Path("/var/run/secrets/kubernetes.io/serviceaccount")


@dataclass(frozen=True, slots=True)
class ClusterConfig:
    """server: `scheme://host[:port][/path]` without a trailing slash; namespace: the default one; proxy: URL
    or ""; source: where this came from, for messages."""

    server: str
    tls: TlsOptions = field(default_factory=TlsOptions)
    credentials: Credentials = field(default_factory=FixedCredentials, repr=False)
    namespace: str = "default"
    proxy: str = ""
    source: str = ""

    @property
    def address(self) -> str:
        """The server without the path of its URL, which may hold a token: to be told to people."""
        scheme, _, rest = self.server.partition("://")
        return f"{scheme}://{rest.partition('/')[0]}"


def load(
    kubeconfig: str | Path | None = None,
    context: str = "",
    *,
    environment: Mapping[str, str] | None = None,
    service_account: Path = SERVICE_ACCOUNT,
) -> ClusterConfig:
    """Find and read the configuration (order: see module). Raises ConfigError with one line."""
    env = os.environ if environment is None else environment
    if kubeconfig:
        return from_kubeconfig([Path(kubeconfig).expanduser()], context, environment=env)
    listed = [Path(part) for part in env.get("KUBECONFIG", "").split(os.pathsep) if part]
    if listed:
        return from_kubeconfig(listed, context, all_must_exist=len(listed) == 1, environment=env)
    if env.get("KUBERNETES_SERVICE_HOST") and service_account.is_dir() and not context:
        return in_cluster(environment=env, service_account=service_account)
    home = Path(env.get("HOME") or "~").expanduser() / ".kube" / "config"
    return from_kubeconfig([home], context, all_must_exist=False, environment=env)


def in_cluster(
    *, environment: Mapping[str, str] | None = None, service_account: Path = SERVICE_ACCOUNT
) -> ClusterConfig:
    """The pod's own service account (upstream: client-go/rest/config.go). Raises ConfigError."""
    env = os.environ if environment is None else environment
    host, port = env.get("KUBERNETES_SERVICE_HOST"), env.get("KUBERNETES_SERVICE_PORT")
    if not host or not port:
        raise ConfigError("not inside a cluster: KUBERNETES_SERVICE_HOST and KUBERNETES_SERVICE_PORT are not set")
    server = f"https://{f'[{host}]' if ':' in host else host}:{port}"
    namespace_path = service_account / "namespace"
    namespace = namespace_path.read_text().strip() if namespace_path.exists() else ""
    return ClusterConfig(
        server=server,
        tls=TlsOptions(
            ca_pem=read_authorities(service_account / "ca.crt", "the service account's certificate authority"),
            ca_path=service_account / "ca.crt",
        ),
        credentials=FileCredentials(Auth(), token_path=service_account / "token"),
        namespace=namespace or "default",
        proxy=proxy_from_environment(server, env),
        source="the pod's service account",
    )


def from_kubeconfig(
    paths: list[Path],
    context: str = "",
    *,
    all_must_exist: bool = True,
    environment: Mapping[str, str] | None = None,
) -> ClusterConfig:
    """One context of one or several merged kubeconfig files. Raises ConfigError."""
    env = os.environ if environment is None else environment
    chosen, cluster, user = read(paths, all_must_exist=all_must_exist).select(context)
    tls = _tls(cluster)
    server = _server(cluster, tls, user)
    return ClusterConfig(
        server=server,
        tls=tls,
        credentials=user_credentials(user, cluster, server, tls),
        namespace=chosen.text("namespace") or "default",
        proxy=_proxy(cluster) or proxy_from_environment(server, env),
        source=f"kubeconfig {chosen.path}, context {chosen.name!r}",
    )


def _proxy(cluster: Entry) -> str:
    proxy = cluster.text("proxy-url")
    if proxy and urlsplit(proxy).scheme not in {"http", "https"}:
        raise ConfigError(
            f"kubeconfig {cluster.path}: proxy-url of cluster {cluster.name!r} is not an http or https address"
        )
    return proxy


def _server(cluster: Entry, tls: TlsOptions, user: Entry) -> str:
    server = cluster.text("server").rstrip("/")
    if not server:
        raise ConfigError(f"kubeconfig {cluster.path}: cluster {cluster.name!r} has no server")
    if "://" not in server:
        secure = tls.ca_pem or tls.insecure or user.values.get("client-certificate-data")
        server = f"{'https' if secure else 'http'}://{server}"
    scheme, _, rest = server.partition("://")
    server = f"{scheme.lower()}://{rest}"
    if "@" in rest.partition("/")[0]:  # not repeated here: it holds a password
        raise ConfigError(
            f"kubeconfig {cluster.path}: server of cluster {cluster.name!r} names a user: give username and password "
            "to the user of the context"
        )
    try:
        parts = urlsplit(server)
        usable = parts.scheme in {"http", "https"} and parts.hostname and parts.port != 0
    except ValueError:
        usable = False
    if not usable:
        raise ConfigError(
            f"kubeconfig {cluster.path}: server {server!r} of cluster {cluster.name!r} is not an http or https address"
        )
    return server


def _tls(cluster: Entry) -> TlsOptions:
    path = None if cluster.data("certificate-authority-data") else cluster.file("certificate-authority")
    if path is None:
        authorities = cluster.data("certificate-authority-data")
    else:
        authorities = read_authorities(path, "the certificate authority of the kubeconfig:")
    options = TlsOptions(
        ca_pem=authorities,
        ca_path=path,
        insecure=cluster.flag("insecure-skip-tls-verify"),
        server_name=cluster.text("tls-server-name"),
    )
    if options.insecure and options.ca_pem:
        raise ConfigError(
            f"kubeconfig {cluster.path}: cluster {cluster.name!r} has both a certificate-authority and "
            "insecure-skip-tls-verify; remove one of them"
        )
    return options
