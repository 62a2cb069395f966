"""Knative Serving on an embedded cluster: real controllers, simulated containers, requests and ingress."""
