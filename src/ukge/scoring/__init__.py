"""Plausibility functions g(h, r, t), one file each."""
