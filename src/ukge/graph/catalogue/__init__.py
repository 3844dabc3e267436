"""The catalogue: benchmarks by name, data sets by directory or file, and saving them again."""

from ukge.graph.catalogue.benchmarks import BENCHMARKS, Benchmark
from ukge.graph.catalogue.find import Place, cache_directory, load, locate, open_dataset, reference_to, refuse_reading
from ukge.graph.catalogue.folder import read_folder, save_dataset

__all__ = [
    "BENCHMARKS",
    "Benchmark",
    "Place",
    "cache_directory",
    "load",
    "locate",
    "open_dataset",
    "read_folder",
    "reference_to",
    "refuse_reading",
    "save_dataset",
]
