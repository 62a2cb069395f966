"""Clusters of k3s: in containers by k3d, or as processes by k3s itself."""
