"""Where traffic goes: one small protocol (`base.py`), one file per way to split traffic."""
