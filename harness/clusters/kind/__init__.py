"""Clusters of kind: real kubelets in containers on this machine."""
