"""The decisions of a DaemonSet: one pod on every node that fits."""
