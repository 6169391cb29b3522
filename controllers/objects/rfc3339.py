"""Times as the Kubernetes API spells them."""

from datetime import UTC, datetime


def rfc3339(unix_ms: int) -> str:
    """Whole seconds in UTC, such as 2024-05-01T10:00:00Z; the fraction is cut off."""
    return datetime.fromtimestamp(unix_ms // 1000, UTC).strftime("%Y-%m-%dT%H:%M:%SZ")
