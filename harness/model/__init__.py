"""Types of scenarios, timelines, outcomes and reports. No I/O, and nothing of ours is imported here."""
