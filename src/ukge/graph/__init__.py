"""Facts in and out: the uncertain graph, its readers and writers, THE INDEX, splits, negative links and audit.

Whoever looks facts up asks `ukge.graph.index`; whoever needs a data set asks `ukge.graph.catalogue`. Nothing here knows
rules, models or runs.
"""
