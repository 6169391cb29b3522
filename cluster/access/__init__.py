"""Which API server to talk to, and as whom: kubeconfigs, credentials, TLS, proxies."""
