"""Rules: their syntax, Łukasiewicz logic, mining, grounding, and inference by rules alone."""
