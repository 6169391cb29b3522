"""The decisions for a number of equal pods: ReplicaSets and ReplicationControllers."""
