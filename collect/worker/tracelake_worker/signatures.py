"""Operators and their arguments in the compact text that operator benchmarks read:
((T([2, 3], f32), 1), {}) with a stride where the tensor is not contiguous."""

CODES = {
    "bfloat16": "bf16",
    "float64": "f64",
    "float32": "f32",
    "float16": "f16",
    "int8": "i8",
    "int16": "i16",
    "int32": "i32",
    "int64": "i64",
    "bool": "b8",
    "uint8": "u8",
    "complex64": "c64",
    "complex128": "c128",
    "float8_e4m3fn": "f8e4m3fn",
    "float8_e5m2": "f8e5m2",
}


def signature(inputs, kwargs):
    args = "".join(_text(v) + ", " for v in inputs)
    words = ", ".join(f"{k!r}: {_text(v)}" for k, v in kwargs.items())
    return f"(({args.removesuffix(' ') if len(inputs) == 1 else args.removesuffix(', ')}), {{{words}}})"


def _text(value):
    if isinstance(value, dict) and "shape" in value:
        dtype = CODES.get(value["dtype"], value["dtype"])
        shape, stride = value["shape"], value["stride"]
        plain = stride is None or stride == contiguous(shape)
        return f"T({shape}, {dtype})" if plain else f"T({shape}, {dtype}, stride={tuple(stride)})"
    if isinstance(value, list):
        return "[" + ", ".join(_text(v) for v in value) + "]"
    return repr(value)


def contiguous(shape):
    """Strides of a contiguous tensor of that shape."""
    out, step = [], 1
    for size in reversed(shape):
        out.append(step)
        step *= max(size, 1)
    return out[::-1]


def has_tensor(values):
    return any((isinstance(v, dict) and "shape" in v) or (isinstance(v, list) and has_tensor(v)) for v in values)
