"""Training beyond one process: the entity table in row-wise shards over the ranks of a `torchrun`."""
