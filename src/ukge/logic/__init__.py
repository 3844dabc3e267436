"""Rules: their syntax, Łukasiewicz logic, mining, grounding, and inference by rules alone.

What is counted over the whole graph is an Ibis expression, run by `ukge.logic.engine`; nothing here knows models.
"""
