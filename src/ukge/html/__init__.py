"""HTML and SVG: the only room that writes markup.

Pages, notebook cards, pictures and the look of them are templates here, filled by `render`. Names come from data, and
data from anywhere: every value passes the templates' escaping, so nobody else puts angle brackets around one. What a
page says is decided by those who call; this room knows nothing of graphs, models or services.
"""

from ukge.html.render import render

__all__ = ["render"]
