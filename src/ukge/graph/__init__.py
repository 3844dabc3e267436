"""Facts in and out: the uncertain graph, its readers and writers, splits, negative links and audit."""
