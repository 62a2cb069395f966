"""What the rows of the transition table do. Each action takes a Scene and returns a Decision; none looks at the phase.

Messages are ours. Those that people search for keep a stable beginning: "New revision", "Rolling back", "Promotion".
"""
