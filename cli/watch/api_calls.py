"""How often processes asked the API server. Only they know: each counts in memory and says it at its /metrics."""

from __future__ import annotations

from collections.abc import Sequence
from concurrent.futures import ThreadPoolExecutor
from urllib.parse import urlsplit

from oarlock.cli.watch.fleet_look import ApiCalls

# What reads the answers is imported where it is used: it is slow to load, and most looks have no address.

READ_WITHIN_S = 0.5
BYTES_MAX = 4_000_000
AT_ONCE_MAX = 16
FAMILY = "rest_client_requests_total"


def metrics_address(text: str) -> str:
    """The address of /metrics that a URL means, which may leave the path out. Raises ValueError that says the mend."""
    parts = urlsplit(text)
    if parts.scheme not in ("http", "https") or not parts.hostname or "@" in parts.netloc:
        raise ValueError(f"{parts.netloc.rpartition('@')[2] or text!r} is no such address; write http://HOST:PORT")
    return f"{parts.scheme}://{parts.netloc}{parts.path.rstrip('/') or '/metrics'}"


def read_api_calls(addresses: Sequence[str]) -> tuple[ApiCalls, ...]:
    """Of each process that answers. One that is away, or is none of ours, is left out: the look says how many of how
    many answered.
    """
    if not addresses:
        return ()
    with ThreadPoolExecutor(min(AT_ONCE_MAX, len(addresses))) as threads:
        return tuple(each for each in threads.map(_read, addresses) if each is not None)


def _read(address: str) -> ApiCalls | None:
    from urllib.request import urlopen  # noqa: PLC0415

    try:
        with urlopen(address, timeout=READ_WITHIN_S) as answer:  # noqa: S310 - http or https, given by the user
            text = answer.read(BYTES_MAX).decode(errors="replace")
        return api_calls_of(urlsplit(address).netloc, text)
    except (OSError, ValueError):  # URLError is an OSError; a text that is no metrics a ValueError
        return None


def api_calls_of(process: str, text: str) -> ApiCalls | None:
    """From the text of /metrics; None where it does not count requests. Raises ValueError for lines that are no
    metrics.
    """
    from prometheus_client.parser import text_string_to_metric_families  # noqa: PLC0415

    lines = "".join(f"{line}\n" for line in text.splitlines() if line.startswith(f"{FAMILY}{{"))
    counts = [
        (sample.labels.get("code"), int(sample.value))
        for family in text_string_to_metric_families(lines)
        for sample in family.samples
    ]
    if not counts and f"# TYPE {FAMILY.removesuffix('_total')}" not in text:
        return None
    return ApiCalls(process, sum(count for _, count in counts), sum(count for code, count in counts if code == "429"))
