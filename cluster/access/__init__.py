"""Who we are to which API server: kubeconfigs, credentials, TLS, proxies."""
