"""Drains in memory: ``scripts/drain.lua`` in Python."""

from __future__ import annotations

from oarlock.broker.memory.state import EpochState
from oarlock.broker.memory.steering.pauses import audit

SILENT_MS = 86_400_000


def drain(state: EpochState, now: int, act: str, name: str, text: str) -> list[str] | None:
    """The workers that are to leave; None where there is no such worker or supervisor."""
    if act not in ("drain", "undrain"):
        raise ValueError(act)
    state.drains = {each: at for each, at in state.drains.items() if at > now - SILENT_MS}
    if act == "undrain":
        if state.drains.pop(name, None) is None:
            return None
        audit(state, f"undrain {name}", text)
        return []
    state.wake_all(now)
    leaving = sorted(each for each, (supervisor, _) in state.holders.items() if name in (each, supervisor))
    supervises = name in state.drains or any(name == supervisor for supervisor, _ in state.holders.values())
    if not leaving and not supervises:
        return None
    state.leaving |= set(leaving)
    if supervises:
        state.drains[name] = now
    audit(state, f"drain {name}", text)
    return leaving
