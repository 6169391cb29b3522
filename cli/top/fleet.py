"""What `oarlock top` and `oarlock board` ask a fleet: a look again and again, all about one key, another turn of it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from typing import Any

import redis
from redis.exceptions import RedisError

from oarlock.broker import epoch
from oarlock.broker.looks.history import PastTurn, Triggers
from oarlock.broker.looks.inspect import Inspector
from oarlock.broker.pauses import note
from oarlock.broker.redis_broker import RedisBroker
from oarlock.broker.values.errors import BrokerFull, BrokerUnreachable, EpochOver
from oarlock.cli.explain.explain import look as explained
from oarlock.cli.explain.history_sentences import did_text, triggers_text
from oarlock.cli.look.keys import AskedKey
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
        self._all, self._views, self._rq = views, {view.shard: view for view in views}, rq
        self._watch = FleetWatch([ShardReader(view.client, view.shard) for view in views], addresses)

    def look(self) -> FleetLook:
        """Look now. Raises BrokerUnreachable."""
        return self._watch.look()

    def facts(self, task: Task) -> dict[str, Any]:
        """What `oarlock explain -o json` says. Raises NotDone."""
        view = self._current(task)
        try:
            return explained(view, task.queue, task.key)
        except (BrokerUnreachable, RedisError) as error:
            raise NotDone(f"{task.key}: Redis does not say: {error}") from None
        except (ValueError, KeyError, TypeError, IndexError) as error:  # somebody else wrote there
            raise NotDone(f"{task.key}: its data cannot be read: {type(error).__name__}: {error}") from None

    def explain(self, task: Task) -> list[str]:
        """What `oarlock explain` and `oarlock history` say, and the last traceback. Raises NotDone."""
        facts, traceback = self.facts(task), self.traceback(task)
        told = ["", "Its last traceback:", *traceback.splitlines()] if traceback else []
        return [*facts["sentences"], *history_lines(facts), *told]

    def traceback(self, task: Task) -> str:
        """The last traceback, or why it cannot be read; "" where there is none."""
        if self._rq is None:
            return ""
        from oarlock.cli.watch.tracebacks import traceback_of  # noqa: PLC0415  # RQ is slow to load

        try:
            return traceback_of(self._rq, task.queue, task.key, task.shard)
        except BrokerUnreachable as error:
            return f"(it cannot be read: {error})"

    def find(self, text: str) -> list[Task]:
        """The keys that people mean by this: namespace/name, rs/namespace/name, a node's name. Raises InputProblem."""
        try:
            views = replace(self._all, each=[self._current_view(view) for view in self._all])
            tasks = AskedKey.parse(text, None, None).tasks(views)
            return [Task(view.shard, queue, key) for queue, key in tasks for view in views.having(key)]
        except (BrokerUnreachable, RedisError) as error:
            raise NotDone(f"{text}: Redis does not say: {error}") from None

    def requeue(self, task: Task, by: str = "top", reason: str = "") -> str:
        """Queue the key again, now; ``by`` and ``reason`` are for the audit stream. Raises NotDone."""
        view = self._current(task)
        try:
            broker = RedisBroker(view.client, view.seen.epoch, shard=view.shard)
            added = broker.add(task.queue, [task.key], unpark=True)
            broker.steer("note", f"requeue {task.queue}:{task.key}", note(by, reason))
            state = view.inspector.key(task.queue, task.key).state
        except (BrokerUnreachable, BrokerFull, EpochOver, RedisError) as error:
            raise NotDone(f"{task.key} is not queued: {error}") from None
        return f"{task.key}: {'queued' if added else f'nothing to add, it is {state} already'}"

    def _current(self, task: Task) -> View:
        """The view of the key's shard, in the epoch that there is now. Raises NotDone."""
        view = self._views.get(task.shard)
        if view is None:
            raise NotDone(f"{task.key}: there is no shard {task.shard}")
        try:
            return self._current_view(view)
        except BrokerUnreachable as error:
            raise NotDone(f"{task.key}: Redis does not answer: {error}") from None

    def _current_view(self, view: View) -> View:
        seen = epoch.current(view.client, view.shard)
        return replace(view, seen=seen, inspector=Inspector(view.client, seen.epoch, view.shard))


def history_lines(facts: dict[str, Any]) -> list[str]:
    """The last turns of a key, the newest first, from the facts of `oarlock explain`."""
    turns = [PastTurn(**{**turn, "triggers": Triggers(**turn["triggers"])}) for turn in facts["turns"]]
    return ["", "Its last turns:", *(_turn_line(turn, facts["now_ms"]) for turn in turns)] if turns else []


def _turn_line(turn: PastTurn, now_ms: int) -> str:
    ago, many = span(max(0, now_ms - turn.ended_ms)), f" x{turn.turns}" if turn.turns > 1 else ""
    times = f"waited {span(turn.waited_ms)}, took {span(turn.took_ms)} on {turn.holder}"
    return f"{ago} ago {turn.verdict}{many}: {did_text(turn.did)} ({times}), because {triggers_text(turn.triggers)}"
