"""Packed masks in the engines' layout: a row of 32-bit words for each answer, a bit for each id.

A mask is an array of numpy, a tensor of torch in main memory, or any other writable buffer of 32-bit integers.
"""

from __future__ import annotations

from collections.abc import Callable
from ctypes import addressof, c_char, c_uint32, memset
from typing import Any, NamedTuple

from ..errors import RequestError


def row_of(bitmask: Any, row: int, size: int) -> tuple[int, int]:
    """The address of a row, and its bytes. ``size``: how many ids it must have bits for.

    Raises `RequestError` if ``bitmask`` is not one, or is too small.
    """
    if hasattr(bitmask, "data_ptr"):
        shape = tuple(bitmask.shape)
        address = bitmask.data_ptr() if _is_mask_of_torch(bitmask) else 0
    else:
        try:
            view = memoryview(bitmask)
            # Of the view, as numpy makes an array's own buffer anew each time.
            begin = addressof(c_char.from_buffer(view))
        except (TypeError, ValueError):  # no buffer, or one that is empty, read-only or in several parts
            raise _refused(bitmask) from None
        shape = view.shape or ()
        address = begin if view.format in _INTEGERS and view.itemsize == 4 else 0
    if not address or not 1 <= len(shape) <= 2:
        raise _refused(bitmask)
    rows, words = shape if len(shape) == 2 else (1, shape[0])
    if not 0 <= row < rows:
        raise RequestError(f"row: expected a row of the bitmask, which has {rows}, found {row!r:.40}")
    if words * 32 < size:
        raise RequestError(
            f"bitmask: expected at least {(size + 31) // 32} words a row, for {size} ids, found {words}"
        )
    return address + row * words * 4, words * 4


class Row(NamedTuple):
    """A row of a mask, which is the same at the next fill: ``bitmask`` and its ``row``; where that is.

    ``held``: an export of the buffer, which cannot move or shrink as long as there is one. ``asked``: asks a tensor,
    which may, where it is; it was at ``begin``.
    """

    bitmask: Any
    row: int
    address: int
    size: int
    held: memoryview | None
    asked: Callable[[], int] | None
    begin: int

    @classmethod
    def of(cls, bitmask: Any, row: int, size: int) -> Row:
        """The row. Raises as `row_of`."""
        address, size = row_of(bitmask, row, size)
        asked = getattr(bitmask, "data_ptr", None)
        held = memoryview(bitmask) if asked is None else None
        return cls(bitmask, row, address, size, held, asked, address - row * size)


NO_ROW = Row(object(), -1, 0, 0, None, None, 0)
"""Before the first fill."""
_INTEGERS = ("i", "I", "l", "L", "<i", "<I", "=i", "=I")


def _is_mask_of_torch(tensor: Any) -> bool:
    return (
        str(tensor.dtype) == "torch.int32" and tensor.is_contiguous() and str(tensor.device).startswith("cpu")
    )


def _refused(bitmask: Any) -> RequestError:
    return RequestError(
        "bitmask: expected one or two dimensions of 32-bit integers in main memory, as numpy.zeros((rows, words), "
        f"dtype=numpy.int32) makes them, found {type(bitmask).__name__}"
    )


def allow_all(address: int, size: int) -> None:
    """Sets all bits of a row of ``size`` bytes."""
    memset(address, 0xFF, size)


def allow_none(address: int, size: int) -> None:
    """Clears all bits of a row of ``size`` bytes."""
    memset(address, 0, size)


def allow(address: int, id: int) -> None:
    """Sets the bit of an id."""
    c_uint32.from_address(address + (id >> 5) * 4).value |= 1 << (id & 31)
