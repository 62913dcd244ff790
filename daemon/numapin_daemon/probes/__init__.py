"""The kubelet's probes of a daemon: /healthz and /readyz, and /metrics beside them."""
