"""`oarlock explain`: why has nothing happened to default/web?"""

from __future__ import annotations

import time
from dataclasses import asdict
from typing import Any

import click

from oarlock.broker.pauses import limit_over
from oarlock.cli.explain.expectation_entries import entries_of, said_of
from oarlock.cli.explain.history_sentences import queued_facts, turn_facts
from oarlock.cli.explain.sentences import AHEAD_MAX, Fleet, Line
from oarlock.cli.explain.sentences import explain as explain_key
from oarlock.cli.explain.subjects import subject_of
from oarlock.cli.look.budget import wait_for_budget
from oarlock.cli.look.keys import AskedKey
from oarlock.cli.look.objects import as_json, decoded
from oarlock.cli.look.view import View, Where, asked_pause_line, controller_option, looking, view_options
from oarlock.cli.options.options import namespace_option
from oarlock.cli.problems import InputProblem
from oarlock.cli.tables import show_json
from oarlock.controllers.entries import CustomController
from oarlock.controllers.registry import CONTROLLERS, WATCHED, resource_of

SUSPENDED = "rq:suspended"


@click.command(
    epilog="\b\nExamples:\n  oarlock explain shop/cart\n  oarlock explain rs/shop/cart -o json\n"
    "  oarlock explain deployment/shop/web\n"
    "  oarlock explain kube-system/agent -c daemonset\n  oarlock explain node-3\n"
    "  oarlock explain shop/web --operator website.py\n"
    "  oarlock explain audit/shop/web --operator website.py\n"
    "\b\nThe last two are of controllers of your own: all of the object's kind, and the one that is called audit."
)
@click.argument("key")
@controller_option("Whose key. Default: of the kind that has an object of that name in the cache.")
@namespace_option
@view_options
def explain(
    key: str,
    controller: str | None,
    namespace: str | None,
    where: Where,
    output: str,
) -> None:
    """Why has nothing happened to KEY (namespace/name, or rs/namespace/name; of a node its name)? All that Redis knows
    of it, in sentences. Of a kind with several controllers each is told; CONTROLLER/namespace/name is one of them.

    \b
    JSON: {key, queue, sentences, state, why {since_ms, events, first, last} (what queued it), lock {holder, nonce,
    age_ms, remaining_ms, why}, delayed_in_ms, parked_in_ms, failures, crashes, needs, unsettled_age_ms, record,
    suspect, turns (as in `oarlock history`, the newest first), now_ms, entries, said, phase, epoch, workers,
    rate_wait_ms (how long a queued key waits for its controller's rate), line (of a key that waits for the rate of its
    namespace: rate_per_s, ahead, wait_ms; else null), pauses (those over it, as in `oarlock
    epoch`), object}; entries and said are as in `oarlock expectations`; object is null or as `oarlock get` prints it.
    Of a Deployment also rollout: {new, old, complete, waiting_for, error}, of each ReplicaSet {name, revision,
    replicas, created, available, observed, size_write}. Of a DaemonSet also nodes: {counts: {state: nodes}, each:
    {node: state}} (the first 1,000 by name; new | starting | old | both | none | ending | failed | astray). With
    --shards of more than one also shard, and of a node a list of these: each shard looks at it for its own
    DaemonSets. Of a controller of your own also children, problem (why its function wants nothing), misfit (why the
    object does not fit its type); of a kind with several controllers a list of these
    """
    asked = AskedKey.parse(key, controller, namespace)
    with looking(where) as views:
        tasks = asked.tasks(views)
        views.of(tasks[0][1])  # raises if its shard has no epoch
        found = [(view, look(view, queue, name)) for queue, name in tasks for view in views.having(name)]
    if output == "json":
        told = [views.told(view, facts) for view, facts in found]
        show_json(told if len(told) > 1 else told[0])
        return
    for view, facts in found:
        whose = f"{facts['queue']}: " if len(tasks) > 1 else views.of_shard(view) if len(found) > 1 else ""
        for sentence in facts["sentences"]:
            click.echo(whose + sentence)


def look(view: View, queue: str, key: str) -> dict[str, Any]:
    """Everything about one key, as `-o json` prints it. Raises BrokerUnreachable and redis's errors."""
    inspector, resource = view.inspector, resource_of(queue)
    about = inspector.key(queue, key)
    ahead = inspector.ahead_of(queue, key, AHEAD_MAX) if about.state == "queued" else 0
    entry, rate = CONTROLLERS.get(queue), 0.0
    if about.state == "queued" and isinstance(entry, CustomController):
        rate = entry.rate_per_s
    asked = inspector.pauses()
    pauses = [each for each in asked if each.covers(queue, key)]
    limit = next((each.rate_per_s for each in asked if each.scope == limit_over(key) and each.rate_per_s), None)
    in_line = inspector.line_wait(queue, key, limit) if limit and about.state == "held" else None
    fleet = Fleet(
        view.seen.phase,
        view.seen.intact,
        int(view.client.hlen(inspector.keys.of("holders"))),
        _suspended(view),
        ahead,
        inspector.resources(),
        inspector.pause_reason(),
        rate,
        inspector.rate_wait_ms(queue, rate, ahead) if rate else 0,
        [asked_pause_line(each, about.now_ms) for each in pauses],
        inspector.hearings(),
        wait_for_budget(inspector.budget(), queue) if about.lock is not None else "",
        Line(limit, *in_line) if limit and in_line else None,
    )
    cached = inspector.object(resource, key)
    obj = decoded(WATCHED[resource], cached) if cached is not None else None
    subject = subject_of(inspector, about, cached.rv, obj) if cached is not None else None
    expected, told = about.expectations, asdict(about)
    told |= {"needs": told.pop("min_rv"), "record": told.pop("expectations")}  # as users' scripts know them
    told |= {"why": queued_facts(about.why), "turns": turn_facts(about.turns)}
    if about.lock is not None:
        told["lock"]["why"] = queued_facts(about.lock.why)
    return {
        **told,
        "entries": [asdict(each) for each in entries_of(expected, time.time_ns() // 1_000_000)] if expected else [],
        "said": said_of(expected) if expected else "",
        "sentences": explain_key(about, subject, fleet, WATCHED[resource].kind),
        "phase": fleet.phase,
        "epoch": view.seen.epoch,
        "workers": fleet.workers,
        "rate_wait_ms": fleet.rate_wait_ms,
        "line": asdict(fleet.line) if fleet.line else None,
        "pauses": [each._asdict() for each in pauses],
        "object": as_json(WATCHED[resource], cached, obj) if cached is not None else None,
        **(subject.facts if subject is not None else {}),
    }


def sentences_of(redis_url: str, key: str, queue: str) -> list[str]:
    """The sentences alone; or the problem, if Redis cannot be read."""
    try:
        with looking(Where(redis_url)) as views:
            sentences: list[str] = look(views.of(key), queue, key)["sentences"]
            return sentences
    except InputProblem as problem:
        return list(problem.lines)


def _suspended(view: View) -> bool:
    return bool(view.client.exists(SUSPENDED))
