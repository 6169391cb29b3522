"""Turns the user entry of a kubeconfig into credentials."""

import base64
from typing import Any
from urllib.parse import quote

from oarlock.cluster.access.credentials import (
    Auth,
    ConfigError,
    Credentials,
    FileCredentials,
    FixedCredentials,
    basic,
    bearer,
)
from oarlock.cluster.access.exec_plugin import API_VERSIONS, ExecCredentials, ExecSpec, resolve_command
from oarlock.cluster.access.kubeconfig import Entry
from oarlock.cluster.access.tls import TlsOptions


def user_credentials(user: Entry, cluster: Entry, server: str, tls: TlsOptions) -> Credentials:
    """Token, password, client certificate or exec plugin of a user entry, with impersonation headers.

    Precedence as upstream: a token file over a token over a password over an exec plugin; a client certificate
    goes with any of them. Raises ConfigError.
    """
    where = f"kubeconfig {user.path}: user {user.name!r}"
    if user.values.get("auth-provider"):
        raise ConfigError(f"{where} uses auth-provider, which Kubernetes 1.26 removed; use an exec plugin")
    headers = list(_impersonation(user))
    token, token_path = user.text("token"), user.file("tokenFile")
    username = user.text("username")
    if token and token_path is None:
        headers.append(bearer(token))
    elif username and token_path is None:
        headers.append(basic(username, user.text("password")))
    certificate, certificate_path = user.data("client-certificate-data"), user.file("client-certificate")
    key, key_path = user.data("client-key-data"), user.file("client-key")
    certificate_path = None if certificate else certificate_path
    key_path = None if key else key_path
    has_certificate = bool(certificate or certificate_path)
    if has_certificate != bool(key or key_path):
        raise ConfigError(f"{where} needs both client-certificate and client-key, or neither")
    auth = Auth(tuple(headers), certificate, key)
    if user.values.get("exec") and not (token or token_path or username):
        # The files are read only once: we know of no use of a plugin together with rotating certificate files.
        files = FileCredentials(auth, certificate_path=certificate_path, key_path=key_path).current()
        return ExecCredentials(_exec_spec(user, cluster, server, tls), files)
    if token_path is not None or certificate_path is not None or key_path is not None:
        return FileCredentials(auth, token_path=token_path, certificate_path=certificate_path, key_path=key_path)
    return FixedCredentials(auth)


def _impersonation(user: Entry) -> list[tuple[str, str]]:
    # Without these headers we would act with more rights than the file asks for.
    headers = []
    if user.text("as"):
        headers.append(("Impersonate-User", user.text("as")))
    if user.text("as-uid"):
        headers.append(("Impersonate-Uid", user.text("as-uid")))
    headers.extend(("Impersonate-Group", group) for group in user.texts("as-groups"))
    extra = user.values.get("as-user-extra") or {}
    if not isinstance(extra, dict):
        raise ConfigError(f"kubeconfig {user.path}: as-user-extra of {user.name!r} must be a mapping")
    of_user = Entry(user.name, extra, user.path)
    for key in extra:
        headers.extend((f"Impersonate-Extra-{quote(str(key), safe='')}", value) for value in of_user.texts(key))
    return headers


def _exec_spec(user: Entry, cluster: Entry, server: str, tls: TlsOptions) -> ExecSpec:
    where = f"kubeconfig {user.path}: the exec entry of user {user.name!r}"
    values = user.values["exec"]
    if not isinstance(values, dict):
        raise ConfigError(f"{where} must be a mapping")
    entry = Entry(user.name, values, user.path)
    if not entry.text("command"):
        raise ConfigError(f"{where} has no command")
    if entry.text("apiVersion") not in API_VERSIONS:
        raise ConfigError(f"{where} has apiVersion {entry.text('apiVersion')!r}; supported: {', '.join(API_VERSIONS)}")
    if entry.text("interactiveMode") == "Always":
        raise ConfigError(f"{where} has interactiveMode Always, but there is no terminal to ask on")
    environment = []
    for pair in values.get("env") or ():
        if not isinstance(pair, dict) or not isinstance(pair.get("name"), str):
            raise ConfigError(f"{where}: every entry of env needs a name and a value")
        environment.append((pair["name"], str(pair.get("value", ""))))
    return ExecSpec(
        api_version=entry.text("apiVersion"),
        command=resolve_command(entry.text("command"), user.path.parent),
        args=entry.texts("args"),
        env=tuple(environment),
        install_hint=entry.text("installHint"),
        cluster=_cluster_info(cluster, server, tls) if entry.flag("provideClusterInfo") else None,
        source=f"kubeconfig {user.path}",
    )


def _cluster_info(cluster: Entry, server: str, tls: TlsOptions) -> dict[str, Any]:
    info: dict[str, Any] = {"server": server}
    if tls.server_name:
        info["tls-server-name"] = tls.server_name
    if tls.insecure:
        info["insecure-skip-tls-verify"] = True
    if tls.ca_pem:
        info["certificate-authority-data"] = base64.b64encode(tls.ca_pem).decode()
    if cluster.text("proxy-url"):
        info["proxy-url"] = cluster.text("proxy-url")
    for extension in cluster.values.get("extensions") or ():
        # The one extension that upstream hands to plugins as `config`.
        if isinstance(extension, dict) and extension.get("name") == "client.authentication.k8s.io/exec":
            info["config"] = extension.get("extension")
    return info
