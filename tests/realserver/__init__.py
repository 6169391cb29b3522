"""A real Kubernetes API server on this machine: obtained, started and ended.

`programs.obtain` gives the programs, `server.RealServer` runs etcd and kube-apiserver, `companions` the rest of
upstream's control plane. `python -m tests.realserver` obtains programs from the command line.
"""
