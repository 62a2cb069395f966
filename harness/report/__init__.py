"""Reports for people and machines, all derived from one DrillReport."""
