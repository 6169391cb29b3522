"""The API server as labels name it."""

from __future__ import annotations

from urllib.parse import urlsplit

from oarlock.cluster.access import config
from oarlock.cluster.access.errors import ConfigError
from oarlock.workers.process.settings import Settings


def host_label(settings: Settings) -> str:
    """Host and port, never a user or a password; "" where no server is known (yet)."""
    try:
        parts = urlsplit(config.load(settings.kubeconfig or None).server)
        host = parts.hostname or ""
        return f"{host}:{parts.port}" if parts.port else host
    except (ConfigError, ValueError):
        return ""
