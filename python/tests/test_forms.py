"""One trace in many forms: white space, order of keys and events, encoding, compression. All tables are the same."""

import gzip
import json
import random
import struct
import zlib

import duckdb
import pyarrow as pa
import pytest
from conftest import ROOT, shared_dir
from lakes import tables

SEED = 20

# Columns that tell of the file itself. Rows of a trace are found by its name.
OF_THE_FILE = {"trace_id", "path", "source_bytes", "json_bytes", "content_digest"}
# A mark or UTF-16 is told as a repair.
OUTCOME = {"outcome", "outcome_reason", "repairs"}
# In the order of the source.
NUMBERS = {"activity_id"}
# Columns that hold positions of events.
POSITIONS = {"event_index", "launch_id", "iteration_range", "end_index"}


def sources():
    """Real traces whose events have one reading whatever their order, and small enough."""
    found = [p for p in sorted((ROOT / "testdata" / "own").glob("*.json.gz")) if p.stat().st_size < 100_000]
    found += sorted((ROOT / "testdata" / "visible").glob("0*.json"))
    if shared := shared_dir():
        found += [p for p in sorted(shared.glob("traces/kineto/*/*/*.json.gz")) if p.stat().st_size < 15_000 and "@" not in p.name]
    return found


def load(path):
    """The document, or None where Python does not read it: those are for other tests."""
    data = path.read_bytes()
    try:
        return json.loads(gzip.decompress(data) if data[:2] == b"\x1f\x8b" else data)
    except ValueError:
        return None


def write(doc, **how):
    return json.dumps(doc, ensure_ascii=False, **how).encode()


def shuffled(rng, v):
    """The same with the keys of every object in another order."""
    if isinstance(v, dict):
        items = list(v.items())
        rng.shuffle(items)
        return {k: shuffled(rng, x) for k, x in items}
    return [shuffled(rng, x) for x in v] if isinstance(v, list) else v


def moved(rng, doc):
    """The same with duration events in another order, and where each event stood before."""
    events = doc["traceEvents"] if isinstance(doc, dict) else doc
    places = [i for i, e in enumerate(events) if isinstance(e, dict) and e.get("ph") == "X"]
    other = places[:]
    rng.shuffle(other)
    order = list(range(len(events)))
    for to, frm in zip(places, other, strict=True):
        order[to] = frm
    out = [events[i] for i in order]
    return (doc | {"traceEvents": out} if isinstance(doc, dict) else out), order


def pieces(rng, data, n):
    cuts = sorted(rng.randrange(len(data)) for _ in range(n))
    return [data[a:b] for a, b in zip([0, *cuts], [*cuts, len(data)], strict=True)]


def block_gzip(data, size=50_000):
    out = b""
    for at in range(0, len(data), size):
        z = zlib.compressobj(6, zlib.DEFLATED, -15)
        part = data[at : at + size]
        body = z.compress(part) + z.flush()
        out += b"\x1f\x8b\x08\x04" + b"\0" * 5 + b"\xff\x06\0BC\x02\0" + struct.pack("<H", len(body) + 25)
        out += body + struct.pack("<II", zlib.crc32(part), len(part))
    return out


FORMS = {
    "indented": lambda rng, doc: write(doc, indent=rng.randrange(5)),
    "spaced": lambda rng, doc: write(doc, separators=(" , ", " :  ")),
    "escaped": lambda rng, doc: json.dumps(doc).encode(),
    "keys": lambda rng, doc: write(shuffled(rng, doc)),
    "utf16": lambda rng, doc: write(doc).decode().encode("utf-16"),
    "mark": lambda rng, doc: b"\xef\xbb\xbf" + write(doc),
    "members": lambda rng, doc: b"".join(gzip.compress(p, rng.randrange(1, 10)) for p in pieces(rng, write(doc), 4)),
    "blocks": lambda rng, doc: block_gzip(write(doc)),
    "zstd": lambda rng, doc: b"".join(pa.compress(p, codec="zstd", asbytes=True) for p in pieces(rng, write(doc), 2)),
}


def canonical(value):
    """JSON without regard to the order of keys."""
    if isinstance(value, str) and value[:1] in ("{", "["):
        try:
            return json.dumps(json.loads(value), sort_keys=True)
        except ValueError:
            pass
    return value


def rows(lake, orders=None, without=frozenset()):
    """The rows of all tables by trace, sorted; positions as they were before the events were moved."""
    con = duckdb.connect()
    name = {i: p.rsplit("/")[-1].split(".")[0] for i, p in con.sql(f"SELECT trace_id, path FROM '{lake}/traces/**/*.parquet'").fetchall()}
    out = {}
    for table in tables(lake):
        hive = "false" if table == "traces" else "true"
        q = con.sql(f"SELECT * FROM read_parquet('{lake}/{table}/**/*.parquet', hive_partitioning = {hive}, union_by_name = true)")
        if table == "diagnostics":  # places in the text are of the form
            q = q.aggregate("trace_id, code, sum(count)::BIGINT AS count")
            q = q.filter("code NOT IN ('utf16', 'byte_order_mark')")
        columns = q.columns
        for row in q.fetchall():
            cells = dict(zip(columns, row, strict=True))
            trace = name[cells["trace_id"]]
            if orders is not None:
                for c in POSITIONS & cells.keys():
                    cells[c] = None if cells[c] is None else orders[trace][cells[c]]
            kept = tuple((c, canonical(v)) for c, v in cells.items() if c not in OF_THE_FILE | without)
            out.setdefault((trace, table), []).append(kept)
    return {k: sorted(v, key=repr) for k, v in out.items()}


def convert(tracelake, folder, lake):
    tracelake("convert", "-q", folder, "-o", lake, "--run", "r", ok=(0, 3))
    return lake


@pytest.fixture(scope="module")
def docs():
    found = {f"t{i:02}": load(p) for i, p in enumerate(sources())}
    return {name: doc for name, doc in found.items() if doc is not None}


def put(folder, docs, form):
    folder.mkdir()
    for i, (name, doc) in enumerate(docs.items()):
        (folder / f"{name}.json").write_bytes(form(random.Random(SEED + i), doc))
    return folder


@pytest.fixture(scope="module")
def plain(tracelake, docs, tmp_path_factory):
    tmp = tmp_path_factory.mktemp("plain")
    lake = convert(tracelake, put(tmp / "in", docs, lambda _, doc: write(doc)), tmp / "lake")
    found = rows(lake)
    assert sum(len(v) for (_, table), v in found.items() if table == "activities") > 50
    assert {trace for trace, _ in found} == set(docs)
    return lake, found


def same(a, b):
    assert a.keys() == b.keys()
    for key in a:
        assert len(a[key]) == len(b[key]), key
        for x, y in zip(a[key], b[key], strict=True):
            if x != y:
                pytest.fail(f"{key}: {sorted(set(x) - set(y))} and {sorted(set(y) - set(x))} in {x}")


@pytest.mark.parametrize("form", FORMS)
def test_form(tracelake, docs, plain, form, tmp_path):
    lake = convert(tracelake, put(tmp_path / "in", docs, FORMS[form]), tmp_path / "lake")
    if form in ("utf16", "mark"):
        same(rows(plain[0], without=OUTCOME), rows(lake, without=OUTCOME))
    else:
        same(plain[1], rows(lake))


def test_order_of_events(tracelake, docs, plain, tmp_path):
    """Links, iterations and activities do not depend on which event stands first."""
    orders = {}
    folder = tmp_path / "in"
    folder.mkdir()
    for i, (name, doc) in enumerate(docs.items()):
        other, orders[name] = moved(random.Random(SEED + i), doc)
        (folder / f"{name}.json").write_bytes(write(other))
    same(rows(plain[0], without=NUMBERS), rows(convert(tracelake, folder, tmp_path / "lake"), orders, without=NUMBERS))
