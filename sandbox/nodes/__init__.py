"""Simulated nodes: they register, take pods, run them, make them ready and end them.

Entry points: `NodeSettings`, `Simulator`, `StorePodApi`.
"""

from oarlock.sandbox.nodes.api.pod_api import PodApi, StorePodApi
from oarlock.sandbox.nodes.settings import NodeSettings
from oarlock.sandbox.nodes.simulator import Simulator

__all__ = ["NodeSettings", "PodApi", "Simulator", "StorePodApi"]
