"""Stand-ins for the world outside the cluster, on this machine's loopback, one set for each drill."""
