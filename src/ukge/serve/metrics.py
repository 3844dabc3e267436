"""Figures for Prometheus."""

from __future__ import annotations

from prometheus_client import CollectorRegistry, Counter, Gauge, Histogram, generate_latest

SECONDS = (0.002, 0.005, 0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10)
SIZES = (1, 2, 4, 8, 16, 32)


class Metrics:
    """What is counted. Routes are counted by their pattern, so that what clients send cannot make new series."""

    def __init__(self) -> None:
        self.registry = CollectorRegistry()
        self.requests = Counter(
            "ukge_requests", "Requests answered", ["route", "method", "status"], registry=self.registry
        )
        self.seconds = Histogram(
            "ukge_request_seconds", "Time to answer", ["route"], registry=self.registry, buckets=SECONDS
        )
        self.in_flight = Gauge("ukge_requests_in_flight", "Requests being answered", registry=self.registry)
        self.together = Histogram(
            "ukge_rank_queries_per_pass", "Rank queries answered in one pass", registry=self.registry, buckets=SIZES
        )
        self.reloads = Counter("ukge_reloads", "Runs loaded after the first", ["outcome"], registry=self.registry)
        self.facts = Gauge("ukge_facts", "Observed facts", registry=self.registry)
        self.entities = Gauge("ukge_entities", "Entities", registry=self.registry)
        self.recall = Gauge("ukge_search_recall", "Recall of the ten best answers", registry=self.registry)
        for outcome in ("loaded", "refused"):
            self.reloads.labels(outcome)

    def text(self) -> bytes:
        """Return all figures in Prometheus' text format."""
        return generate_latest(self.registry)
