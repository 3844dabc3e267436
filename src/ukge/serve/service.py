"""All that can be asked, by name, of the run that is served now. The API and the explorer both ask here."""

from __future__ import annotations

from ukge.serve.asking import Asking
from ukge.serve.browsing import Browsing


class Service(Asking, Browsing):
    """Questions about facts and questions about the graph."""
