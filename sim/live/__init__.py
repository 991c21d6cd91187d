"""Real processes in real time: what `sim kill9` and `bench` start, load, kill and measure.

Nothing here is simulated. A seed repeats the plan of a run, not the run.
"""
