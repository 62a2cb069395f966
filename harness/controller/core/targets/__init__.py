"""The kinds of targets: one small protocol (`base.py`), one file per kind."""
