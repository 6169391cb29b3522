"""Servers, certificates and rigs of tests/redis."""

from tests.redis.conftest import certificates, cluster, sentinels, server

__all__ = ["certificates", "cluster", "sentinels", "server"]
