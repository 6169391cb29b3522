"""Looks at a whole fleet, again and again: its shards in Redis, and where they are known its processes' /metrics."""

from __future__ import annotations

import time
from collections.abc import Callable, Sequence

from oarlock.broker.values.errors import BrokerUnreachable
from oarlock.cli.watch.api_calls import read_api_calls
from oarlock.cli.watch.fleet_look import ApiCalls, FleetLook
from oarlock.cli.watch.namespaces import namespaces_of
from oarlock.cli.watch.reader import KEYS_MAX, ShardReader, ShardRows
from oarlock.cli.watch.rows import oldest_first, worst_first


def no_addresses() -> Sequence[str]:
    """No process is known that says what it asks of the API server."""
    return ()


class FleetWatch:
    """``addresses``: of /metrics; asked at each look, as processes come and go. Not for several threads at once."""

    def __init__(
        self,
        readers: Sequence[ShardReader],
        addresses: Callable[[], Sequence[str]] = no_addresses,
        clock_s: Callable[[], float] = time.monotonic,
    ) -> None:
        self._readers, self._addresses, self._clock_s = readers, addresses, clock_s

    def look(self) -> FleetLook:
        """Look now. A shard that does not answer is told in the look. Raises BrokerUnreachable where none does."""
        found, away = [], []
        for reader in self._readers:
            try:
                found.append(reader.read())
            except BrokerUnreachable as error:
                away.append((reader.shard, str(error)))
            except (ValueError, KeyError, TypeError, IndexError) as error:  # somebody else wrote there: say so, go on
                away.append((reader.shard, f"its data cannot be read: {type(error).__name__}: {error}"))
        if not found:
            raise BrokerUnreachable("; ".join(dict.fromkeys(reason for _, reason in away)))
        addresses = self._addresses()
        return put_together(found, away, len(addresses), read_api_calls(addresses), self._clock_s())


def put_together(
    found: Sequence[ShardRows],
    away: Sequence[tuple[str, str]],
    processes: int,
    api: Sequence[ApiCalls],
    at_s: float,
) -> FleetLook:
    """One look from those at each shard. Pure."""
    samples = [sample for each in found for sample in each.samples]
    return FleetLook(
        at_s,
        tuple(each.shard for each in found),
        tuple(away),
        tuple(queue for each in found for queue in each.queues),
        tuple(resource for each in found for resource in each.resources),
        oldest_first([key for each in found for key in each.keys], KEYS_MAX),
        tuple(worker for each in found for worker in each.workers),
        worst_first([key for each in found for key in each.trouble]),
        namespaces_of(samples),
        sum(sample.total for sample in samples),
        sum(len(sample.keys) for sample in samples),
        processes,
        tuple(api),
    )
