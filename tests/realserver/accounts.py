"""Service accounts of a real server: the fleet's roles applied, tokens asked for, kubeconfigs written."""

from __future__ import annotations

import json
import subprocess
from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any

import yaml

from tests import ROOT
from tests.realserver.server import RealServer

ROLES = ROOT / "helm" / "oarlock" / "rbac"
NAMESPACE = "oarlock"
LIFE_S = 600  # the least a server grants


def kubectl(server: RealServer, *arguments: str, stdin: str | None = None) -> str:
    """As the admin. Fails the test where kubectl does."""
    command = ["kubectl", "--kubeconfig", str(server.kubeconfig), *arguments]
    done = subprocess.run(command, input=stdin, capture_output=True, text=True, timeout=60, check=False)
    assert done.returncode == 0, f"kubectl {' '.join(arguments)}: {done.stderr}"
    return done.stdout


def may(server: RealServer, user: str, verb: str, resource: str, subresource: str = "") -> bool:
    """What the server's authorizer says at this moment, which hears of changed roles by a watch."""
    asked = [verb, resource, f"--as={user}", "--all-namespaces"]
    asked += [f"--subresource={subresource}"] if subresource else []
    command = ["kubectl", "--kubeconfig", str(server.kubeconfig), "auth", "can-i", *asked]
    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)
    assert done.stdout.strip() in ("yes", "no"), done.stderr
    return done.stdout.strip() == "yes"


def apply(server: RealServer, *objects: Mapping[str, Any]) -> None:
    kubectl(server, "apply", "-f", "-", stdin=yaml.safe_dump_all([dict(each) for each in objects]))


def role(file: str) -> dict[str, Any]:
    """One of the fleet's roles."""
    loaded: dict[str, Any] = yaml.safe_load((ROLES / file).read_text())
    return loaded


def without(made: Mapping[str, Any], verb: str, group: str, resource: str) -> dict[str, Any]:
    """The role with one verb on one resource taken away, and nothing else."""
    rules: list[dict[str, Any]] = []
    for rule in made["rules"]:
        if verb not in rule["verbs"] or group not in rule["apiGroups"] or resource not in rule["resources"]:
            rules.append(rule)
            continue
        others = [each for each in rule["resources"] if each != resource]
        verbs = [each for each in rule["verbs"] if each != verb]
        rules += [{**rule, "resources": others}] if others else []
        rules += [{**rule, "resources": [resource], "verbs": verbs}] if verbs else []
    return {**made, "rules": rules}


def bind(server: RealServer, made: Mapping[str, Any], user: str) -> None:
    """Give a role to a user."""
    kind = f"{made['kind']}Binding"
    metadata = {key: value for key, value in made["metadata"].items() if key in ("name", "namespace")}
    reference = {"apiGroup": "rbac.authorization.k8s.io", "kind": made["kind"], "name": metadata["name"]}
    subject = {"apiGroup": "rbac.authorization.k8s.io", "kind": "User", "name": user}
    apply(
        server,
        made,
        {"apiVersion": made["apiVersion"], "kind": kind, "metadata": metadata, "roleRef": reference}
        | {"subjects": [subject]},
    )


def install(server: RealServer) -> None:
    """The fleet's roles, accounts and bindings, as they are shipped."""
    kubectl(server, "create", "namespace", NAMESPACE)
    kubectl(server, "apply", "-f", str(ROLES))


def token(server: RealServer, account: str, secret: str = "", namespace: str = NAMESPACE) -> str:
    """A token of a service account, by the TokenRequest API; with `secret`, good while that Secret exists."""
    spec: dict[str, Any] = {"audiences": ["https://localhost"], "expirationSeconds": LIFE_S}
    if secret:
        kubectl(server, "create", "secret", "generic", secret, "-n", namespace)
        spec["boundObjectRef"] = {"apiVersion": "v1", "kind": "Secret", "name": secret}
    body = {"apiVersion": "authentication.k8s.io/v1", "kind": "TokenRequest", "spec": spec}
    path = f"/api/v1/namespaces/{namespace}/serviceaccounts/{account}/token"
    answer = json.loads(kubectl(server, "create", "--raw", path, "-f", "-", stdin=json.dumps(body)))
    return str(answer["status"]["token"])


def kubeconfig(server: RealServer, path: Path, user: Mapping[str, Any]) -> Path:
    """One for a user entry such as {"tokenFile": ...}."""
    named = yaml.safe_load(server.kubeconfig.read_text())
    (entry,) = named["users"]
    entry["user"] = dict(user)
    path.write_text(yaml.safe_dump(named))
    return path


def lines(log: Path, words: Iterable[str] = ("permission missing",)) -> list[str]:
    """The lines of a log with all the words."""
    return [each for each in log.read_text(errors="replace").splitlines() if all(word in each for word in words)]
