"""Settling what an earlier holder announced and left unanswered: by writing the same again, never by looking.

An absence proves nothing, for the request may still be under way; the same name or UID written again forces the
outcome.
"""

from __future__ import annotations

from collections.abc import Generator
from typing import Any

from broker.values import Record
from cluster.answer import Answer
from controllers.claim import Claimer
from controllers.pod_template import TemplateError
from controllers.registry import Controller
from workers import acting
from workers.acting import created, deleted
from workers.ledger import Ledger
from workers.steps import Grant, Reserve, Send, Step, Write


def settle(
    owner: Claimer, record: Record, controller: Controller, revision: str, ledger: Ledger
) -> Generator[Step, Any, None]:
    """Send every pending entry of the record again, as many as the rate limit allows now.

    They are in the record already, under the nonce this claim put on the key; no new announcement is due.
    ``revision``: hash label of the owner's current revision, where its kind keeps any.
    """
    deletes = [
        Write("delete", "pods", owner.namespace, each.target.partition("/")[2], uid=each.uid, rv=each.rv)
        for each in record.deletes
        if not each.answered
    ]
    creates: list[Write] = []
    if record.pending_creates:
        try:
            bodies = controller.pod_bodies(owner, revision, acting.hinted_nodes(record))
        except TemplateError as error:
            raise ledger.failure(str(error)) from None
        for target in record.pending_creates:
            write = Write("create", "pods", owner.namespace, target.partition("/")[2])
            try:
                creates.append(write._replace(body=bodies.body(write.name)))
            except TemplateError:
                # It does not say for which node it was. The claim holds its name, so the decision comes to it again.
                ledger.settle(write)
    ledger.resending = True
    wanted = len(deletes) + len(creates)
    grant: Grant = yield Reserve(wanted)
    deletes = deletes[: grant.granted]
    creates = creates[: grant.granted - len(deletes)]
    if grant.granted < wanted:
        ledger.retry, ledger.least_wait_ms = True, grant.wait_ms
    if not deletes and not creates:
        return
    answers: list[Answer] = yield Send((*deletes, *creates), prepaid=True)
    yield from deleted(deletes, answers[: len(deletes)], ledger)
    yield from created(owner, creates, answers[len(deletes) :], ledger)
