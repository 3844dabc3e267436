"""Asking for a row before it is needed: the tables of a large graph fit into no cache, and rows come at random.

Numba has no prefetch of its own, so this hands LLVM's to the kernels. It changes no result.
"""

from __future__ import annotations

from typing import Any

from llvmlite import ir  # type: ignore[import-untyped, unused-ignore]
from numba.core import cgutils, types
from numba.extending import intrinsic

from ukge.learning.engines.fused.ops import inlined

LINE = 16
"""Floats per cache line."""

READ, DATA = 0, 1
NEAR, FAR = 3, 2
"""What LLVM's `prefetch` is told: for reading, data rather than code, and into the first or the second cache."""


def _prefetch(level: int) -> Any:
    """Return a compiled function that prefetches the cache line of table[row, column]."""

    def line(_: Any, table: Any, row: Any, column: Any) -> Any:  # noqa: ARG001 — Numba wants them by name
        return types.void(table, types.int64, types.int64), generate

    def generate(context: Any, builder: Any, signature: Any, arguments: Any) -> Any:
        item_pointer: Any = cgutils.get_item_pointer
        kind = signature.args[0]
        array = context.make_array(kind)(context, builder, arguments[0])
        place = item_pointer(context, builder, kind, array, arguments[1:])
        pointer = builder.bitcast(place, cgutils.voidptr_t)
        word = ir.IntType(32)
        form = ir.FunctionType(ir.VoidType(), [pointer.type, word, word, word])
        prefetch = builder.module.declare_intrinsic("llvm.prefetch", [pointer.type], form)
        builder.call(prefetch, [pointer, word(READ), word(level), word(DATA)])
        return context.get_dummy_value()

    return intrinsic(line)


near_line = _prefetch(NEAR)
far_line = _prefetch(FAR)


@inlined
def prefetch_row(table, row):  # type: ignore[no-untyped-def]
    """Ask for a row of a float32 table that is needed at once; rows need not begin at a cache line."""
    width = table.shape[1]
    for d in range(0, width, LINE):
        near_line(table, row, d)
    near_line(table, row, width - 1)


@inlined
def prefetch_far_row(table, row):  # type: ignore[no-untyped-def]
    """Ask for a row that is needed later: the second cache can wait for more lines at once than the first."""
    width = table.shape[1]
    for d in range(0, width, LINE):
        far_line(table, row, d)
    far_line(table, row, width - 1)
