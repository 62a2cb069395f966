"""Where drills run: embedded clusters, and clusters that exist already."""
