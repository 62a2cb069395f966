"""The bundled controller: API-compatible with Canary (flagger.app/v1beta1), out of cluster, crash-only.

`core` is pure: raw dicts in, a `Decision` out. `shell` watches, queues and writes. `python -m harness.controller` starts it.
ConfigMaps and Secrets are not tracked yet; see README.md here for this and every other limit and difference.
"""
