"""Comparison: what several subjects made of the same scenario, in normal form, side by side."""
