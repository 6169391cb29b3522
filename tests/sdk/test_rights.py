"""Rights of controllers: derived from what they declare, enough for what their turns send, and nearly no more."""

from __future__ import annotations

import json
from functools import partial
from pathlib import Path
from typing import Any, NamedTuple

import pytest

import oarlock
from oarlock.controllers.registry import as_before, replace
from oarlock.sandbox.apiserver import server
from oarlock.sdk.rights import Rights, ingestor_rights, manifests, rules_of, worker_rights
from oarlock.testing import Cluster
from oarlock.testing.until import gone


class PageSpec(oarlock.Struct):
    text: str = ""
    theme: str = ""
    extra: bool = True


@oarlock.resource("rights.example.com/v1")
class Page(oarlock.Object):
    spec: PageSpec
    status: dict[str, Any] | None = None


@oarlock.resource("rights.example.com/v1")
class Note(oarlock.Object):
    """Without a status."""

    spec: dict[str, str] = {}


def configmap(name: str, **data: str) -> dict[str, Any]:
    return {"apiVersion": "v1", "kind": "ConfigMap", "metadata": {"name": name}, "data": data}


@oarlock.desired(
    Page,
    children=["v1 ConfigMap"],
    watches=[oarlock.watch("v1 Secret", names=lambda page: [f"{page.namespace}/{page.spec.theme}"])],
)
def page(obj: Page, children: oarlock.Children) -> oarlock.Result:
    theme = children.watched("Secret", f"{obj.namespace}/{obj.spec.theme}")
    wanted = [configmap(obj.name, text=obj.spec.text)] + ([configmap(f"{obj.name}-extra")] if obj.spec.extra else [])
    return oarlock.Result(wanted, status={"themed": theme is not None}, events=[("Seen", obj.spec.text or "nothing")])


@oarlock.steps(
    Note,
    children=["v1 ServiceAccount"],
    watches=[oarlock.watch("v1 Service", names=lambda note: [], writes=["create", "patch", "delete"])],
    finalizer="rights.example.com/note",
)
def note(obj: Note, ctx: Any) -> None:
    ctx.create({"apiVersion": "v1", "kind": "ServiceAccount", "metadata": {"name": obj.name}})
    ctx.patch("Note", obj.name, {"metadata": {"labels": {"seen": "yes"}}})
    if obj.spec.get("service"):
        port = {"port": 80}
        ctx.create({"apiVersion": "v1", "kind": "Service", "metadata": {"name": obj.name}, "spec": {"ports": [port]}})
        ctx.patch("Service", obj.name, {"metadata": {"labels": {"a": "b"}}})
        ctx.delete("Service", obj.name)
    ctx.event("Seen", "it was seen")


@note.finalize
def forget(obj: Note, ctx: Any) -> None:
    ctx.delete("ServiceAccount", obj.name)


BOTH = [page, note]


class Asked(NamedTuple):
    verb: str
    group: str
    resource: str


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory) -> dict[str, set[Asked]]:
    """What the fleet asked of the server while all that the controllers do was done, by who asked: ingestor, worker."""
    log = tmp_path_factory.mktemp("audit") / "audit.log"
    settings = partial(server.Settings, audit_log=log, audit_reads=True)
    with pytest.MonkeyPatch.context() as patch, as_before():
        patch.setattr(server, "Settings", settings)
        replace([])  # other tests registered the built-in kinds
        with Cluster(operator=BOTH, controllers="") as cluster:
            cluster.create({"apiVersion": "v1", "kind": "Secret", "metadata": {"name": "dark"}})
            api = {"apiVersion": "rights.example.com/v1"}
            cluster.create(api | {"kind": "Page", "metadata": {"name": "a"}, "spec": {"text": "x", "theme": "dark"}})
            cluster.wait("pages/a", lambda it: it.get("status", {}).get("themed"))
            cluster.wait("configmaps/a-extra")
            cluster.patch("pages/a", {"spec": {"text": "y", "extra": False}})
            cluster.wait("configmaps/a-extra", gone)
            cluster.wait("configmaps/a", lambda it: it["data"] == {"text": "y"})
            cluster.create(api | {"kind": "Note", "metadata": {"name": "n"}, "spec": {"service": "yes"}})
            cluster.wait("notes/n", lambda it: it["metadata"].get("labels"))
            cluster.wait("events", lambda them: any(it["involvedObject"]["kind"] == "Note" for it in them))
            cluster.delete("notes/n")
            cluster.wait("notes/n", gone)
    return by_role(log)


def by_role(log: Path) -> dict[str, set[Asked]]:
    found: dict[str, set[Asked]] = {}
    for line in log.read_text().splitlines():
        event = json.loads(line)
        about = event["objectRef"]
        part = f"/{about['subresource']}" if about.get("subresource") else ""
        request = Asked(event["verb"], about.get("apiGroup", ""), f"{about['resource']}{part}")
        found.setdefault(event["userAgent"], set()).add(request)
    return found


def of_role(asked: dict[str, set[Asked]], word: str) -> set[Asked]:
    return {each for agent, requests in asked.items() if word in agent for each in requests}


def granted(rights: Rights) -> set[Asked]:
    return {Asked(verb, group, resource) for (group, resource), verbs in rights.items() for verb in verbs}


def test_the_ingestor_asks_for_what_it_may_and_for_all_of_it(asked: dict[str, set[Asked]]) -> None:
    leases = {each for each in of_role(asked, "ingest") if each.resource == "leases"}
    may = granted(ingestor_rights(BOTH))
    told = {Asked("create", "", "events"), Asked("patch", "", "events")}  # of what people do, and nobody did anything
    assert of_role(asked, "ingest") - leases == {each for each in may if each.verb == "list"}
    assert {each for each in may if each.verb not in ("list", "watch")} == told
    assert {each._replace(verb="list") for each in may if each.verb == "watch"} <= may  # the log has no watches
    assert {each.verb for each in leases} <= {"create", "get", "update"}


def test_the_worker_asks_for_nothing_that_it_may_not(asked: dict[str, set[Asked]]) -> None:
    assert of_role(asked, "worker") - granted(worker_rights(BOTH)) == set()


def test_what_a_worker_may_and_did_not_ask_for_has_a_reason(asked: dict[str, set[Asked]]) -> None:
    left = granted(worker_rights(BOTH)) - of_role(asked, "worker")
    own = "rights.example.com"
    assert {each for each in left if each.verb != "get"} <= {
        Asked("update", own, "pages/finalizers"),  # admission asks for it, not we
        Asked("update", own, "notes/finalizers"),
        Asked("create", "", "configmaps"),  # the server asks for it where an apply makes something new
        Asked("patch", "", "serviceaccounts"),  # this controller creates, and applies nothing
        Asked("patch", "", "events"),  # the second of its kind
    }


def test_the_rules() -> None:
    core = ["configmaps", "secrets", "serviceaccounts", "services"]
    assert rules_of(ingestor_rights(BOTH)) == [
        {"apiGroups": [""], "resources": core, "verbs": ["list", "watch"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": ["rights.example.com"], "resources": ["notes", "pages"], "verbs": ["list", "watch"]},
    ]
    assert rules_of(worker_rights([page])) == [
        {"apiGroups": [""], "resources": ["configmaps"], "verbs": ["get", "create", "patch", "delete"]},
        {"apiGroups": [""], "resources": ["events"], "verbs": ["create", "patch"]},
        {"apiGroups": [""], "resources": ["secrets"], "verbs": ["get"]},
        {"apiGroups": ["rights.example.com"], "resources": ["pages"], "verbs": ["get"]},
        {"apiGroups": ["rights.example.com"], "resources": ["pages/finalizers"], "verbs": ["update"]},
        {"apiGroups": ["rights.example.com"], "resources": ["pages/status"], "verbs": ["patch"]},
    ]


def test_no_right_is_for_everything() -> None:
    text = json.dumps(manifests(BOTH, "pages", "web"))
    assert "*" not in text
    assert ("", "pages/status") not in worker_rights([note])
    assert ("rights.example.com", "notes/status") not in worker_rights([note])


def test_the_manifests_belong_together() -> None:
    made = manifests(BOTH, "pages", "web", "leases")
    roles = {(each["kind"], each["metadata"]["name"]) for each in made if "rules" in each}
    accounts = {each["metadata"]["name"] for each in made if each["kind"] == "ServiceAccount"}
    bindings = [each for each in made if "roleRef" in each]
    assert {(each["roleRef"]["kind"], each["roleRef"]["name"]) for each in bindings} == roles
    assert {subject["name"] for each in bindings for subject in each["subjects"]} == accounts
    lease = next(each for each in made if each["kind"] == "Role")
    assert lease["metadata"]["namespace"] == "leases"
    assert lease["rules"][1]["resourceNames"] == ["oarlock-pages"]


def test_writes_of_a_watch_are_three_words() -> None:
    with pytest.raises(oarlock.BadDefinition, match="has to be some of create, patch, delete"):
        oarlock.watch("v1 Secret", names=lambda page: [], writes=["update"])  # type: ignore[list-item]
