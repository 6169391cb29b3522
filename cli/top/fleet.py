"""What `oarlock top` asks a fleet: a look again and again, all about one key, and with --write another turn of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker import epoch
from oarlock.broker.history import PastTurn, Triggers
from oarlock.broker.inspect import Inspector
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values import BrokerFull, BrokerUnreachable, EpochOver
from oarlock.cli.explain.explain import look as explained
from oarlock.cli.explain.history_sentences import did_text, triggers_text
from oarlock.cli.look.view import View, Views
from oarlock.cli.problems import NotDone
from oarlock.cli.tables import span
from oarlock.cli.top.tabs import Task
from oarlock.cli.watch.fleet_look import FleetLook
from oarlock.cli.watch.fleet_watch import FleetWatch
from oarlock.cli.watch.reader import ShardReader


class Fleet:
    """``rq``: a client of RQ's keys; None where nobody knows where they are. Epochs may end while this looks on."""

    def __init__(self, views: Views, rq: redis.Redis | None, addresses: Callable[[], Sequence[str]]) -> None:
        self._views, self._rq = {view.shard: view for view in views}, rq
        self._watch = FleetWatch([ShardReader(view.client, view.shard) for view in views], addresses)

    def look(self) -> FleetLook:
        """Look now. Raises BrokerUnreachable."""
        return self._watch.look()

    def explain(self, task: Task) -> list[str]:
        """What `oarlock explain` and `oarlock history` say, and the last traceback. Raises NotDone."""
        view = self._current(task)
        try:
            facts = explained(view, task.queue, task.key)
            return [*facts["sentences"], *history_lines(facts), *self._traceback_lines(task)]
        except (BrokerUnreachable, RedisError) as error:
            raise NotDone(f"{task.key}: Redis does not say: {error}") from None

    def requeue(self, task: Task) -> str:
        """Queue the key again, now. Raises NotDone."""
        view = self._current(task)
        try:
            broker = RedisBroker(view.client, view.seen.epoch, shard=view.shard)
            added = broker.add(task.queue, [task.key], unpark=True)
            state = view.inspector.key(task.queue, task.key).state
        except (BrokerUnreachable, BrokerFull, EpochOver, RedisError) as error:
            raise NotDone(f"{task.key} is not queued: {error}") from None
        return f"{task.key}: {'queued' if added else f'nothing to add, it is {state} already'}"

    def _current(self, task: Task) -> View:
        """The view of the key's shard, in the epoch that there is now. Raises NotDone."""
        view = self._views[task.shard]
        try:
            seen = epoch.current(view.client, view.shard)
        except BrokerUnreachable as error:
            raise NotDone(f"{task.key}: Redis does not answer: {error}") from None
        return replace(view, seen=seen, inspector=Inspector(view.client, seen.epoch, view.shard))

    def _traceback_lines(self, task: Task) -> list[str]:
        if self._rq is None:
            return []
        from oarlock.cli.watch.tracebacks import traceback_of  # noqa: PLC0415  # RQ is slow to load

        try:
            text = traceback_of(self._rq, task.queue, task.key, task.shard)
        except BrokerUnreachable as error:
            return ["", f"Its tracebacks cannot be read: {error}"]
        return ["", "Its last traceback:", *text.splitlines()] if text else []


def history_lines(facts: dict[str, Any]) -> list[str]:
    """The last turns of a key, the newest first, from the facts of `oarlock explain`."""
    turns = [PastTurn(**{**turn, "triggers": Triggers(**turn["triggers"])}) for turn in facts["turns"]]
    return ["", "Its last turns:", *(_turn_line(turn, facts["now_ms"]) for turn in turns)] if turns else []


def _turn_line(turn: PastTurn, now_ms: int) -> str:
    ago, many = span(max(0, now_ms - turn.ended_ms)), f" x{turn.turns}" if turn.turns > 1 else ""
    times = f"waited {span(turn.waited_ms)}, took {span(turn.took_ms)} on {turn.holder}"
    return f"{ago} ago {turn.verdict}{many}: {did_text(turn.did)} ({times}), because {triggers_text(turn.triggers)}"
