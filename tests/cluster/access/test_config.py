"""Where the configuration comes from, and one clear line for everything that can be wrong with it."""

import base64

import pytest
import yaml

from oarlock.cluster.access.config import from_kubeconfig, in_cluster, load
from oarlock.cluster.access.credentials import Auth, ConfigError
from oarlock.cluster.access.proxy import proxy_from_environment

CA = b"-----BEGIN CERTIFICATE-----\nnot looked at here\n-----END CERTIFICATE-----\n"


def kubeconfig(cluster=None, user=None, context=None, **top):
    return {
        "apiVersion": "v1",
        "kind": "Config",
        "current-context": "here",
        "clusters": [{"name": "c", "cluster": {"server": "https://api:6443", **(cluster or {})}}],
        "users": [{"name": "u", "user": user or {}}],
        "contexts": [{"name": "here", "context": {"cluster": "c", "user": "u", **(context or {})}}],
        **top,
    }


@pytest.fixture
def write(tmp_path):
    def to_file(content, name="config"):
        path = tmp_path / name
        path.write_text(content if isinstance(content, str) else yaml.safe_dump(content))
        return path

    return to_file


def headers_of(config):
    auth = config.credentials.current()
    assert auth is not None
    return dict(auth.headers)


def test_a_token(write):
    config = from_kubeconfig([write(kubeconfig(user={"token": "s3cret"}, context={"namespace": "team"}))])
    assert (config.server, config.namespace) == ("https://api:6443", "team")
    assert headers_of(config) == {"Authorization": "Bearer s3cret"}
    assert "here" in config.source


def test_nothing_secret_is_ever_shown(write):
    user = {"token": "s3cret", "client-certificate-data": b64(b"s3cret"), "client-key-data": b64(b"s3cret")}
    config = from_kubeconfig([write(kubeconfig(user=user))])
    assert "s3cret" not in repr(config)
    assert "s3cret" not in repr(config.credentials.current())


def test_a_password_in_the_address_is_not_repeated(write):
    with pytest.raises(ConfigError) as raised:
        from_kubeconfig([write(kubeconfig({"server": "https://me:s3cret@host"}))])
    assert "s3cret" not in str(raised.value)


def b64(data: bytes) -> str:
    return base64.b64encode(data).decode()


def test_a_password_and_impersonation(write):
    user = {
        "username": "ann",
        "password": "pw",
        "as": "robot",
        "as-uid": "42",
        "as-groups": ["g1", "g2"],
        "as-user-extra": {"scopes/x": ["view"]},
    }
    auth = from_kubeconfig([write(kubeconfig(user=user))]).credentials.current()
    assert auth is not None
    assert list(auth.headers) == [
        ("Impersonate-User", "robot"),
        ("Impersonate-Uid", "42"),
        ("Impersonate-Group", "g1"),
        ("Impersonate-Group", "g2"),
        ("Impersonate-Extra-scopes%2Fx", "view"),
        ("Authorization", f"Basic {b64(b'ann:pw')}"),
    ]


def test_files_count_from_the_folder_of_the_kubeconfig(write, tmp_path):
    for name in ("ca.pem", "cert.pem", "key.pem"):
        (tmp_path / name).write_text(name)
    (tmp_path / "token").write_text("from-file\n")
    user = {"tokenFile": "token", "token": "inline", "client-certificate": "cert.pem", "client-key": "key.pem"}
    config = from_kubeconfig([write(kubeconfig({"certificate-authority": "ca.pem"}, user))])
    assert config.credentials.current() == Auth((("Authorization", "Bearer from-file"),), b"cert.pem", b"key.pem")
    assert config.tls.ca_pem == b"ca.pem"


def test_inline_data_comes_before_files(write, tmp_path):
    (tmp_path / "other").write_text("other")
    cluster = {"certificate-authority-data": b64(CA), "certificate-authority": "missing"}
    user = {
        "client-certificate-data": b64(b"cert"),
        "client-certificate": "missing",
        "client-key-data": b64(b"key"),
        "client-key": "missing",
    }
    config = from_kubeconfig([write(kubeconfig(cluster, user))])
    assert config.tls.ca_pem == CA
    assert config.credentials.current() == Auth((), b"cert", b"key")


def test_tls_options(write):
    config = from_kubeconfig([write(kubeconfig({"insecure-skip-tls-verify": True, "tls-server-name": "api"}))])
    assert (config.tls.insecure, config.tls.server_name) == (True, "api")


@pytest.mark.parametrize(
    ("given", "server"),
    [
        ("http://127.0.0.1:8001/", "http://127.0.0.1:8001"),
        ("https://host/k8s/clusters/c-1/", "https://host/k8s/clusters/c-1"),
        ("localhost:8080", "http://localhost:8080"),
        ("HTTPS://host", "https://host"),
    ],
)
def test_servers(write, given, server):
    assert from_kubeconfig([write(kubeconfig({"server": given}))]).server == server


def test_several_files_merge_and_the_first_wins(write):
    one = {"clusters": [{"name": "c", "cluster": {"server": "https://first"}}], "current-context": "here"}
    two = kubeconfig({"server": "https://second"}, {"token": "t"})
    config = from_kubeconfig([write(one, "one"), write(two, "two")])
    assert (config.server, headers_of(config)) == ("https://first", {"Authorization": "Bearer t"})


def test_a_chosen_context(write):
    content = kubeconfig()
    content["clusters"].append({"name": "d", "cluster": {"server": "https://other"}})
    content["contexts"].append({"name": "there", "context": {"cluster": "d"}})
    config = from_kubeconfig([write(content)], "there")
    assert (config.server, headers_of(config)) == ("https://other", {})


def test_the_order_in_which_places_are_looked_at(write, tmp_path):
    explicit = write(kubeconfig({"server": "https://explicit"}), "explicit")
    variable = write(kubeconfig({"server": "https://variable"}), "variable")
    (tmp_path / ".kube").mkdir()
    write(kubeconfig({"server": "https://home"}), ".kube/config")
    account = service_account(tmp_path)
    pod = {"KUBERNETES_SERVICE_HOST": "10.0.0.1", "KUBERNETES_SERVICE_PORT": "443"}
    env = {"HOME": str(tmp_path), "KUBECONFIG": f"{tmp_path}/missing:{variable}", **pod}
    servers = [load(explicit, environment=env, service_account=account).server]
    servers.append(load(environment=env, service_account=account).server)
    del env["KUBECONFIG"]
    servers.append(load(environment=env, service_account=account).server)
    del env["KUBERNETES_SERVICE_HOST"]
    servers.append(load(environment=env, service_account=account).server)
    assert servers == ["https://explicit", "https://variable", "https://10.0.0.1:443", "https://home"]


def service_account(tmp_path):
    folder = tmp_path / "serviceaccount"
    folder.mkdir(exist_ok=True)
    (folder / "token").write_text("pod-token")
    (folder / "ca.crt").write_bytes(CA)
    (folder / "namespace").write_text("fleet")
    return folder


def test_inside_a_pod(tmp_path):
    env = {"KUBERNETES_SERVICE_HOST": "fd00::1", "KUBERNETES_SERVICE_PORT": "443"}
    config = in_cluster(environment=env, service_account=service_account(tmp_path))
    assert (config.server, config.namespace, config.tls.ca_pem) == ("https://[fd00::1]:443", "fleet", CA)
    assert headers_of(config) == {"Authorization": "Bearer pod-token"}


BAD_EXEC = {"apiVersion": "client.authentication.k8s.io/v1", "command": "log-in"}


@pytest.mark.parametrize(
    ("content", "line"),
    [
        pytest.param("{", "is not valid YAML at line 1, column 2: ", id="broken YAML"),
        pytest.param("a: b: c", "is not valid YAML at line 1, column 5: mapping values", id="broken YAML 2"),
        pytest.param("- a", "is not a kubeconfig: expected a mapping at the top", id="a list"),
        pytest.param("", "no current-context is set; choose one of: none", id="empty"),
        pytest.param({"clusters": {}, "users": 7}, ": users must be a list", id="users no list"),
        pytest.param({"users": [{"user": {}}]}, "every entry of users needs a name", id="no name"),
        pytest.param(
            kubeconfig(**{"current-context": ""}),
            "no current-context is set; choose one of: here",
            id="no current context",
        ),
        pytest.param(
            kubeconfig(**{"current-context": "gone"}), "no context named 'gone'; there are: here", id="no context"
        ),
        pytest.param(
            kubeconfig(context={"cluster": "x"}),
            "context 'here' names the cluster 'x', which has no entry; there are: c",
            id="no cluster",
        ),
        pytest.param(
            kubeconfig(context={"user": "x"}),
            "context 'here' names the user 'x', which has no entry; there are: u",
            id="no user",
        ),
        pytest.param(kubeconfig({"server": ""}), "cluster 'c' has no server", id="no server"),
        pytest.param(kubeconfig({"server": "ftp://x"}), "is not an http or https address", id="not http"),
        pytest.param(kubeconfig({"server": "https://me:pw@x"}), "cluster 'c' names a user: give", id="user in the URL"),
        pytest.param(kubeconfig({"server": "https://a:b"}), "is not an http or https address", id="bad port"),
        pytest.param(
            kubeconfig({"proxy-url": "socks5://x:1"}), "proxy-url of cluster 'c' is not an http", id="socks proxy"
        ),
        pytest.param(
            kubeconfig({"certificate-authority-data": "?"}),
            "certificate-authority-data of 'c' is not base64",
            id="CA not base64",
        ),
        pytest.param(
            kubeconfig({"certificate-authority": "nowhere"}),
            "cannot read the certificate authority of the kubeconfig: ",
            id="CA missing",
        ),
        pytest.param(
            kubeconfig({"certificate-authority-data": b64(CA), "insecure-skip-tls-verify": True}),
            "both a certificate-authority and insecure-skip-tls-verify; remove one",
            id="CA and insecure",
        ),
        pytest.param(
            kubeconfig({"insecure-skip-tls-verify": "yes"}), "of 'c' must be true or false", id="flag as text"
        ),
        pytest.param(kubeconfig(user={"token": 7}), "token of 'u' must be a string", id="token a number"),
        pytest.param(kubeconfig(user={"as-groups": "admins"}), "as-groups of 'u' must be a list", id="groups as text"),
        pytest.param(
            kubeconfig(user={"as-user-extra": "view"}), "as-user-extra of 'u' must be a mapping", id="extra as text"
        ),
        pytest.param(
            kubeconfig(user={"as-user-extra": {"scopes": "view"}}), "scopes of 'u' must be a list", id="extra no list"
        ),
        pytest.param(
            kubeconfig(user={"exec": {**BAD_EXEC, "args": "token"}}), "args of 'u' must be a list", id="args as text"
        ),
        pytest.param(kubeconfig(user={"tokenFile": "nowhere"}), "cannot read the token file ", id="token file missing"),
        pytest.param(
            kubeconfig(user={"client-certificate-data": b64(b"x")}),
            "user 'u' needs both client-certificate and client-key, or neither",
            id="certificate without key",
        ),
        pytest.param(
            kubeconfig(user={"auth-provider": {"name": "gcp"}}),
            "auth-provider, which Kubernetes 1.26 removed; use an exec plugin",
            id="auth-provider",
        ),
        pytest.param(
            kubeconfig(user={"exec": {**BAD_EXEC, "apiVersion": "client.authentication.k8s.io/v1alpha1"}}),
            "supported: client.authentication.k8s.io/v1, client.authentication.k8s.io/v1beta1",
            id="old exec version",
        ),
        pytest.param(
            kubeconfig(user={"exec": {**BAD_EXEC, "command": ""}}), "user 'u' has no command", id="no command"
        ),
        pytest.param(
            kubeconfig(user={"exec": {**BAD_EXEC, "interactiveMode": "Always"}}),
            "interactiveMode Always, but there is no terminal to ask on",
            id="interactive",
        ),
        pytest.param(
            kubeconfig(user={"exec": {**BAD_EXEC, "env": ["A=b"]}}), "every entry of env needs a name", id="exec env"
        ),
        pytest.param(kubeconfig(user={"exec": "log-in"}), "user 'u' must be a mapping", id="exec no mapping"),
    ],
)
def test_what_is_wrong_is_said_in_one_line(write, content, line):
    """The line names the file (or the file within it), what is wrong, and what there is instead."""
    path = write(content)
    with pytest.raises(ConfigError) as raised:
        from_kubeconfig([path])
    assert line in str(raised.value)
    assert str(path.parent) in str(raised.value)
    assert "\n" not in str(raised.value)


def test_missing_and_unreadable_files(tmp_path):
    with pytest.raises(ConfigError, match=r"cannot read kubeconfig .*/gone: no such file or directory"):
        load(tmp_path / "gone")
    with pytest.raises(ConfigError, match="is a directory"):
        load(tmp_path)
    with pytest.raises(ConfigError, match=r"no kubeconfig found at .*/\.kube/config; give one with --kubeconfig"):
        load(environment={"HOME": str(tmp_path)})
    with pytest.raises(ConfigError, match=r"no kubeconfig found at .*/a, .*/b; give one"):
        load(environment={"KUBECONFIG": f"{tmp_path}/a:{tmp_path}/b"})
    with pytest.raises(ConfigError, match="not inside a cluster: KUBERNETES_SERVICE_HOST"):
        in_cluster(environment={})
    pod = {"KUBERNETES_SERVICE_HOST": "h", "KUBERNETES_SERVICE_PORT": "1"}
    with pytest.raises(ConfigError, match=r"cannot read the service account's certificate authority .*ca\.crt"):
        in_cluster(environment=pod, service_account=tmp_path)
    account = service_account(tmp_path)
    (account / "token").write_text("\n")
    with pytest.raises(ConfigError, match=r"the token file .*token is empty"):
        in_cluster(environment=pod, service_account=account)


def test_a_binary_file_is_no_kubeconfig(tmp_path):
    (tmp_path / "config").write_bytes(b"\x00\xff\xfe")
    with pytest.raises(ConfigError, match="is not valid YAML"):
        load(tmp_path / "config")


@pytest.mark.parametrize(
    ("server", "environment", "proxy"),
    [
        ("https://api:6443", {"HTTPS_PROXY": "http://p:3128"}, "http://p:3128"),
        ("https://api:6443", {"https_proxy": "p:3128"}, "http://p:3128"),
        ("http://api", {"HTTPS_PROXY": "http://p"}, ""),
        ("https://127.0.0.1:1", {"HTTPS_PROXY": "http://p"}, ""),
        ("https://localhost:1", {"HTTPS_PROXY": "http://p"}, ""),
        ("https://10.96.0.1:443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "x, 10.0.0.0/8"}, ""),
        ("https://11.96.0.1:443", {"HTTPS_PROXY": "http://p", "NO_PROXY": "x, 10.0.0.0/8"}, "http://p"),
        ("https://api.corp.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": ".example"}, ""),
        ("https://api.corp.example", {"HTTPS_PROXY": "http://p", "no_proxy": "corp.example"}, ""),
        ("https://api.notcorp.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "corp.example"}, "http://p"),
        ("https://api.corp.example", {"HTTPS_PROXY": "http://p", "NO_PROXY": "*.corp.example"}, ""),
        ("https://api", {"HTTPS_PROXY": "http://p", "NO_PROXY": "*"}, ""),
        ("https://api", {}, ""),
    ],
)
def test_proxies_of_the_environment(server, environment, proxy):
    assert proxy_from_environment(server, environment) == proxy


def test_the_proxy_of_the_kubeconfig_comes_first(write):
    path = write(kubeconfig({"proxy-url": "http://own:1"}))
    config = from_kubeconfig([path], environment={"HTTPS_PROXY": "http://other:1"})
    assert config.proxy == "http://own:1"
