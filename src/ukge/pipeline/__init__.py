"""From a file to calibrated answers in one call: what the other rooms do, one after the other, within a time.

What belongs here decides which of them is asked for how long, and keeps how far it came. It trains, fits and judges
nothing itself.
"""

from ukge.pipeline.stages import Fitted, fit

__all__ = ["Fitted", "fit"]
