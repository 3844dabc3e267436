"""Published models, one file each: tables, formulas, losses and settings. A file that lies here is found by itself."""

from __future__ import annotations

from importlib import import_module
from pkgutil import iter_modules

for _each in iter_modules(__path__):
    import_module(f"{__name__}.{_each.name}")
