"""From a timeline to findings and a verdict: pure functions that never talk to a cluster."""
