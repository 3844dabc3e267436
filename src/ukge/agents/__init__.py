"""The graph for language models: what can be asked of a run as tools of the Model Context Protocol (MCP).

Answers are the service's (`serve`), with its limits; here they get a sentence that can be quoted, and where they come
from. Nothing is judged here, and no name is looked up.
"""
