"""Proxies named by the environment, read once when the configuration is loaded.

aiohttp's own look-up (`trust_env`) reads environment and netrc for every request and makes each three to four
times dearer. Rules as in Go's net/http ProxyFromEnvironment: loopback never goes through a proxy; NO_PROXY
holds hosts, `.suffixes`, addresses and networks, or `*`.
"""

import ipaddress
from collections.abc import Mapping
from urllib.parse import urlsplit


def proxy_from_environment(server: str, environment: Mapping[str, str]) -> str:
    """The proxy URL for `server`, or "" for a direct connection."""
    parts = urlsplit(server)
    name = f"{parts.scheme}_proxy"
    proxy = environment.get(name.upper()) or environment.get(name) or ""
    host = (parts.hostname or "").lower()
    excluded = environment.get("NO_PROXY") or environment.get("no_proxy") or ""
    if not proxy or _is_loopback(host) or any(_matches(host, rule) for rule in excluded.split(",")):
        return ""
    return proxy if "://" in proxy else f"http://{proxy}"


def _is_loopback(host: str) -> bool:
    address = _address(host)
    return host == "localhost" or (address is not None and address.is_loopback)


def _matches(host: str, rule: str) -> bool:
    rule = rule.strip().lower()
    if not rule:
        return False
    if rule == "*":
        return True
    address = _address(host)
    if address is not None:
        try:
            return address in ipaddress.ip_network(rule, strict=False)
        except ValueError:
            return False
    suffix = rule.removeprefix("*")
    return host == suffix.lstrip(".") or host.endswith(suffix if suffix.startswith(".") else f".{suffix}")


def _address(host: str) -> ipaddress.IPv4Address | ipaddress.IPv6Address | None:
    try:
        return ipaddress.ip_address(host)
    except ValueError:
        return None
