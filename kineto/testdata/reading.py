"""Reads traces with Python's json, for comparison.

Standard input holds documents, each after its length as four bytes. The answer
to each is a line of JSON: what was refused, or the events in plain words. Times
are nanoseconds, computed from the decimals as they are written.
"""

import json
import sys
from fractions import Fraction

TABLES = {
    **dict.fromkeys(("kernel", "Kernel", "gpu_memcpy", "Memcpy", "gpu_memset", "Memset"), "gpu_events"),
    **dict.fromkeys(("user_annotation", "gpu_user_annotation", "User"), "ranges"),
}


class Number(str):
    """A number as written."""


class Constant(str):
    """NaN, Infinity or -Infinity."""


def decode(data):
    if data[:2] in (b"\xff\xfe", b"\xfe\xff"):
        return data.decode("utf-16")
    return data.decode("utf-8-sig")


def plain(v):
    """Strict JSON with numbers as written and constants as text."""
    if isinstance(v, Number):
        return str(v)
    if isinstance(v, str):
        return json.dumps(str(v))
    if isinstance(v, list):
        return "[" + ",".join(map(plain, v)) + "]"
    if isinstance(v, dict):
        return "{" + ",".join(json.dumps(k) + ":" + plain(x) for k, x in v.items()) + "}"
    return json.dumps(v)


def nanoseconds(v):
    """An exact time, or None where v is no number or out of reach."""
    if not isinstance(v, Number) or len(v) > 60:
        return None
    exponent = v.lower().partition("e")[2]
    if exponent and abs(int(exponent)) > 40:
        return None
    ns = round(Fraction(v) * 1000)  # half to even
    return ns if -(2**63) < ns < 2**63 else None


def table(event):
    phase, category = event.get("ph"), event.get("cat")
    if type(phase) is not str or phase in ("B", "E", "C"):
        return None
    if phase in ("s", "t", "f"):
        return "flows"
    if phase == "M":
        return "metadata"
    if phase != "X":
        return "instants"
    if type(category) is not str:
        return "cpu_events"
    if category in ("Runtime", "Driver") or category.endswith(("_runtime", "_driver")):
        return "launches"
    return TABLES.get(category, "cpu_events")


def event(i, e):
    top = {k: v for k, v in e.items() if not isinstance(v, Constant)}
    times = "".join(f', "{k}": {ns}' for k in ("ts", "dur") if (ns := nanoseconds(e.get(k))) is not None)
    return f'{{"index": {i}, "table": {json.dumps(table(e))}, "keys": {plain(top)}{times}}}'


def answer(data):
    try:
        doc = json.loads(decode(data), parse_int=Number, parse_float=Number, parse_constant=Constant)
    except RecursionError:
        return '{"deep": true}'
    except ValueError as e:
        return json.dumps({"refused": str(e)[:200]})
    events = doc if isinstance(doc, list) else doc.get("traceEvents") if isinstance(doc, dict) else None
    if not isinstance(events, list):
        return '{"none": true}'
    kinds = {}
    for e in events:
        if isinstance(e, dict) and e:
            ph, cat = e.get("ph", ""), e.get("cat", "")
            if type(ph) is not str or type(cat) is not str:
                kinds = None
                break
            kinds[json.dumps([ph, cat])] = kinds.get(json.dumps([ph, cat]), 0) + 1
    read = ",".join(event(i, e) for i, e in enumerate(events) if isinstance(e, dict) and e)
    return f'{{"members": {len(events)}, "kinds": {json.dumps(kinds)}, "events": [{read}]}}'


def main():
    while head := sys.stdin.buffer.read(4):
        try:
            line = answer(sys.stdin.buffer.read(int.from_bytes(head, "big")))
        except RecursionError:
            line = '{"deep": true}'
        sys.stdout.write(line + "\n")
        sys.stdout.flush()


main()
