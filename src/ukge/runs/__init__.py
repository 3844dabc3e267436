"""The run directory and what it holds: weights, names, settings, trace, the data it learnt from.

Nothing here trains, and nothing else writes into a run but through this room.
"""
