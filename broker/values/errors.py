"""What a broker raises, by what the caller has to do next."""

from __future__ import annotations


class EpochOver(Exception):
    """STALE, NOSCRIPT or another server: our data may be of an earlier epoch. Stop writing, tell the supervisor."""


class DataDamaged(EpochOver):
    """Redis holds data that our scripts did not write. The epoch was ended for all, and a new one is to be begun."""


class ClaimLost(Exception):
    """The nonce is not the current one: somebody else may have the key. Write nothing more for it."""


class BrokerFull(Exception):
    """Redis is at its maxmemory and refused to grow; nothing was changed. Ends, renewals and releases still work."""


class BrokerUnreachable(Exception):
    """Redis did not answer. After a claim or an announcement: treat it as lost. After a finish: as finished."""


class BrokerBusy(BrokerUnreachable):
    """Redis is busy with a script that runs for too long. It did not do what was asked."""
