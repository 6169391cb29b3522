from __future__ import annotations

import pytest

from oarlock.broker.pauses import digest
from oarlock.broker.redis_broker import RedisBroker
from oarlock.cli.steer import scopes
from tests.cli.steer.steer_cases import QUEUE


@pytest.fixture
def broker(broker: RedisBroker) -> RedisBroker:
    """With two queued keys."""
    broker.add(QUEUE, ["shop/a", "bank/b"])
    return broker


@pytest.fixture
def kept(broker: RedisBroker, monkeypatch: pytest.MonkeyPatch) -> None:
    """An ingestor writes into the Lease what there is, while the command waits."""
    monkeypatch.setattr(scopes.time, "sleep", lambda _: broker.steer("kept", digest(broker.pauses().texts), ""))


@pytest.fixture
def unkept(monkeypatch: pytest.MonkeyPatch) -> None:
    """No ingestor writes anything into the Lease, and the command soon gives up."""
    monkeypatch.setattr(scopes, "KEPT_S", 0.0)
    monkeypatch.setattr(scopes.time, "sleep", lambda _: None)
