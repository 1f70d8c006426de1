"""Sixty-four bytes of text at a time: which of them are a quote, a bracket or another byte, as the bits of one number.

The processor compares as many bytes as it has lanes for in one instruction; LLVM finds the instructions, whatever the
processor. Text is given by the address of its first byte, and 64 bytes from any position on must be readable.
"""

from typing import Any

import numpy as np
from llvmlite import ir
from numba import njit, types
from numba.cpython.unsafe.numbers import trailing_zeros
from numba.extending import intrinsic

U = np.uint64
WIDTH = U(64)
"""Bytes that are looked at together."""
_ZERO, _ONE = U(0), U(1)
_VECTOR, _QUARTER = ir.VectorType(ir.IntType(8), 64), ir.VectorType(ir.IntType(8), 16)

kernel = njit(nogil=True, cache=True, _nrt=False)  # type: ignore[call-overload]
"""Compiles what allocates nothing; a kernel of other kernels is compiled as one."""


def _compare(predicate: str, *, folded: bool = False) -> Any:
    """What gives the bits of the bytes that are equal to a byte, or less than it, as unsigned numbers.

    Folded ones have the bit 0x20 in any case.
    """

    def bits(typingctx, address, byte):  # type: ignore[no-untyped-def]
        def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
            at, wanted = arguments
            text = builder.load(builder.inttoptr(at, _VECTOR.as_pointer()))
            text.align = 1
            lane = builder.insert_element(ir.Constant(_VECTOR, ir.Undefined), wanted, ir.IntType(32)(0))
            splat = builder.shuffle_vector(lane, lane, ir.Constant(ir.VectorType(ir.IntType(32), 64), [0] * 64))
            if folded:
                text = builder.or_(text, ir.Constant(_VECTOR, [0x20] * 64))
            found = builder.icmp_unsigned(predicate, text, splat)
            return builder.bitcast(found, ir.IntType(64))

        return types.uint64(types.uint64, types.uint8), generate

    return intrinsic(bits)


@intrinsic
def _move(typingctx, target, source):  # type: ignore[no-untyped-def]
    """As `move16`, for Numba to compile."""

    def generate(context, builder, signature, arguments):  # type: ignore[no-untyped-def]
        to, of = (builder.inttoptr(address, _QUARTER.as_pointer()) for address in arguments)
        text = builder.load(of)
        text.align = 1
        builder.store(text, to).align = 1
        return context.get_dummy_value()

    return types.void(types.uint64, types.uint64), generate


_equal, _less, _folded = _compare("=="), _compare("<"), _compare("==", folded=True)


@kernel
def move16(target, source):  # type: ignore[no-untyped-def]
    """Copy sixteen bytes from one address to another."""
    _move(target, source)  # type: ignore[call-arg]


@kernel
def where(address, byte):  # type: ignore[no-untyped-def]
    """A bit for each of the 64 bytes from an address on that is this byte."""
    return _equal(address, byte)


@kernel
def where_less(address, byte):  # type: ignore[no-untyped-def]
    """A bit for each of the 64 bytes that is less than this byte."""
    return _less(address, byte)


@kernel
def where_folded(address, byte):  # type: ignore[no-untyped-def]
    """A bit for each of the 64 bytes that is this byte, which has the bit 0x20, or would be with it."""
    return _folded(address, byte)


@kernel
def lowest(bits):  # type: ignore[no-untyped-def]
    """The place of the lowest bit that is set; 64 where none is."""
    return U(trailing_zeros(bits)) if bits else WIDTH  # type: ignore[call-arg]


@kernel
def below(place):  # type: ignore[no-untyped-def]
    """The bits before a place, which is at most 64."""
    return (_ONE << place) - _ONE if place < WIDTH else ~_ZERO


@kernel
def between(marks):  # type: ignore[no-untyped-def]
    """The bits from each odd mark on, up to the even one after it: what lies in strings, if the marks are quotes."""
    inside = marks
    inside ^= inside << _ONE
    inside ^= inside << U(2)
    inside ^= inside << U(4)
    inside ^= inside << U(8)
    inside ^= inside << U(16)
    inside ^= inside << U(32)
    return inside
