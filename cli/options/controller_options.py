"""Whether --controllers and --concurrent-*-syncs make sense, before anything is started."""

from __future__ import annotations

import click

from oarlock.cli.options.setting_options import given, in_words_of_flags
from oarlock.cli.problems import InputProblem
from oarlock.workers.process.kinds import enabled_queues, queues_by_worker
from oarlock.workers.process.settings import BadSetting, Settings
from oarlock.workers.process.shards import names, share


def served_queues(settings: Settings, workers: int = 0) -> tuple[str, ...]:
    """The queues of the enabled controllers. ``workers``: among how many they are shared out; 0: nobody takes keys.

    Raises InputProblem, also where a worker would have nothing to do.
    """
    try:
        queues = enabled_queues(settings.controllers)
        if workers and settings.shards > 1 and not settings.shard:
            for shard in names(settings.shards):
                queues_by_worker(settings, queues, share(workers, int(shard), settings.shards))
        elif workers:
            queues_by_worker(settings, queues, workers)
    except BadSetting as error:
        raise InputProblem(in_words_of_flags(str(error), given(click.get_current_context()))) from None
    return queues
