"""Scenario files: found, read, checked, resolved for a variant, and their manifests rendered. No cluster is needed for any of it."""
