"""A run as a service: an HTTP API, and a page to explore the graph with. `ukge serve` starts it."""
