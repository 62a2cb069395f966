"""Clusters that another tool makes on this machine (kind, k3d, k3s): records, life, images."""
