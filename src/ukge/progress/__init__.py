"""How long work shows itself: steps and shares of them, bars on terminals and in notebooks, lines in logs.

Knows no work itself: whoever works tells a `Tell` how far it is.
"""
