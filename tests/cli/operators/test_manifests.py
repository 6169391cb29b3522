"""`oarlock crd` and `oarlock rbac`: what they print, and one line for what they cannot."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
import yaml

from tests import ROOT
from tests.cli.cli_helpers import call, problems

WEBSITE = ROOT / "examples" / "operators" / "website.py"


def test_yaml_and_json_say_the_same() -> None:
    as_yaml, as_json = call("crd", str(WEBSITE)), call("crd", str(WEBSITE), "-o", "json")
    assert as_yaml.exit_code == as_json.exit_code == 0
    assert yaml.safe_load(as_yaml.stdout) == json.loads(as_json.stdout)
    assert yaml.safe_load(as_yaml.stdout)["metadata"]["name"] == "websites.example.com"
    assert as_yaml.stdout == call("crd", str(WEBSITE)).stdout


def test_the_yaml_is_as_people_write_it() -> None:
    said = call("rbac", str(WEBSITE)).stdout
    assert "    verbs: [get, create, patch, delete]\n" in said
    assert "&id" not in said + call("crd", str(WEBSITE)).stdout


def test_rights_carry_the_names_that_were_given() -> None:
    options = ["--namespace", "web", "--fleet-id", "sites", "--lease-namespace", "leases"]
    made = list(yaml.safe_load_all(call("rbac", str(WEBSITE), *options).stdout))
    assert [(each["kind"], each["metadata"]["name"], each["metadata"].get("namespace")) for each in made] == [
        ("Namespace", "web", None),
        ("Namespace", "leases", None),
        ("ServiceAccount", "sites-ingestor", "web"),
        ("ServiceAccount", "sites-worker", "web"),
        ("ClusterRole", "sites-ingestor", None),
        ("ClusterRoleBinding", "sites-ingestor", None),
        ("Role", "sites-lease", "leases"),
        ("RoleBinding", "sites-lease", "leases"),
        ("ClusterRole", "sites-worker", None),
        ("ClusterRoleBinding", "sites-worker", None),
    ]
    assert json.loads(call("rbac", str(WEBSITE), *options, "-o", "json").stdout) == {
        "apiVersion": "v1",
        "kind": "List",
        "items": made,
    }


NAMESPACES: dict[str, tuple[list[str], list[str]]] = {
    "of the accounts": ([], ["oarlock"]),
    "another": (["--namespace", "web"], ["web"]),
    "of the Lease too": (["--namespace", "web", "--lease-namespace", "leases"], ["web", "leases"]),
    "one for both": (["--namespace", "web", "--lease-namespace", "web"], ["web"]),
    "that every cluster has": (["--namespace", "default"], []),
    "made by another": (["--namespace", "web", "--no-create-namespace"], []),
}


@pytest.mark.parametrize("case", NAMESPACES)
def test_the_namespaces_come_first(case: str) -> None:
    options, names = NAMESPACES[case]
    made = list(yaml.safe_load_all(call("rbac", str(WEBSITE), *options).stdout))
    assert [each["kind"] for each in made[: len(names)]] == ["Namespace"] * len(names)
    assert [each["metadata"]["name"] for each in made if each["kind"] == "Namespace"] == names


NO_FLEET = "cannot name the fleet of an operator: small letters, digits and dashes, a letter first, at most 40"
NO_NAMESPACE = "cannot name a namespace: small letters, digits and dashes, at most 63"


@pytest.mark.parametrize(
    ("option", "value", "why"),
    [
        *(("--fleet-id", value, NO_FLEET) for value in ("", "7", "Sites", "a_b", "a b", "-a", "a-", "a" * 41, "a\nb")),
        *(("--namespace", value, NO_NAMESPACE) for value in ("", "Web", "web/site", "a" * 64)),
        ("--lease-namespace", "kube system", NO_NAMESPACE),
    ],
)
def test_a_name_that_the_server_would_refuse(option: str, value: str, why: str) -> None:
    done = call("rbac", str(WEBSITE), option, value)
    assert (done.exit_code, done.stdout) == (2, "")
    assert problems(done) == [f"oarlock: {option}={' '.join(value.split())} {why}"]


NONE = "import oarlock\n@oarlock.desired('v1 Pod')\ndef pods(obj, children): return oarlock.Result()\n"
BAD = """
import oarlock

class Spec(oarlock.Struct):
    size: int | list[int]

@oarlock.resource("example.com/v1")
class Site(oarlock.Object):
    spec: Spec

@oarlock.desired(Site)
def site(obj, children): return oarlock.Result()
"""


@pytest.mark.parametrize("command", ["crd", "rbac"])
def test_no_such_file(command: str, tmp_path: Path) -> None:
    done = call(command, str(tmp_path / "none.py"))
    assert done.exit_code == 2
    (line,) = problems(done)
    assert "no such file" in line


def test_a_file_without_kinds(tmp_path: Path) -> None:
    file = tmp_path / "kindless.py"
    file.write_text(NONE)
    done = call("crd", str(file))
    assert done.exit_code == 2
    assert problems(done) == [f"oarlock: {file}: no kinds of its own; they are classes below @oarlock.resource"]
    assert call("rbac", str(file)).exit_code == 0


def test_a_type_that_no_schema_says(tmp_path: Path) -> None:
    file = tmp_path / "unsayable.py"
    file.write_text(BAD)
    done = call("crd", str(file))
    assert done.exit_code == 2
    (line,) = problems(done)
    assert line.startswith("oarlock: Site: spec.size (in Spec): array or integer: no schema of Kubernetes says that")
