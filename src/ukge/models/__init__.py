"""Plausibility and confidence: scorers g, links φ, weights, and what they say about facts by id (eq. 1 to 4).

A formula stands here once. Nothing here knows graphs, training or files.
"""
