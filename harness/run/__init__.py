"""Running drills: journal, namespace, recorder, steps, teardown, sweep."""
