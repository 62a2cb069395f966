"""The way back: from the bundled controller to a Flagger, without a single analysis that nobody asked for."""
