"""The embedded cluster: a real Kubernetes control plane as plain processes, with simulated nodes."""
