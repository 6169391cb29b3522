"""Simulated nodes: they register, take pods, run them, make them ready and end them.

Entry points: `NodeSettings`, `Simulator`, `StorePodApi`.
"""

from oarlock.cluster.embedded.nodes.podapi import PodApi, StorePodApi
from oarlock.cluster.embedded.nodes.settings import NodeSettings
from oarlock.cluster.embedded.nodes.simulator import Simulator

__all__ = ["NodeSettings", "PodApi", "Simulator", "StorePodApi"]
