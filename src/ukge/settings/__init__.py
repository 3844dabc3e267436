"""Every setting, once: what it is called, what it may be, and what the paper's models set it to.

Knows nothing but errors and registries; every room above may read settings, none changes them.
"""
