"""From facts to weights: the objective, unseen facts, engines, the only loop, the estimator.

What is minimised is a term of the objective, what watches is a callback. Nothing of the test facts comes in here.
"""
