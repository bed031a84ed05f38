"""The figures that a run is held against."""

# Measure, the figure from the best runs, how it is compared, the bound that has
# to be met, and the limit aimed at.
TARGETS = (
    ("CPU of stormlog over tracelake", ("stormlog", "cpu_s", "tracelake json, 1 proc"), ">=", 10.0, 35.0),
    ("CPU of HTA parse over tracelake", ("HTA parse", "cpu_s", "tracelake json, 1 proc"), ">=", 15.0, 50.0),
    ("CPU of DuckDB over tracelake", ("DuckDB read_json", "cpu_s", "tracelake json, 1 proc"), ">=", 15.0, 50.0),
    ("CPU of sonic over tracelake", ("sonic structs", "cpu_s", "tracelake json, 1 proc"), ">=", 0.8, 2.5),
    ("CPU of gzip over plain", ("tracelake gz, 1 proc", "cpu_s", "tracelake json, 1 proc"), "<=", 1.6, 1.3),
    ("wall of 1 proc over 2, plain", ("tracelake json, 1 proc", "wall_s", "tracelake json, 2 proc"), ">=", 1.6, 1.9),
    ("peak RSS in MiB, plain, 2 proc", ("tracelake json, 2 proc", "rss_mib", None), "<=", 400.0, 150.0),
    ("peak RSS in MiB, gzip, 2 proc", ("tracelake gz, 2 proc", "rss_mib", None), "<=", 400.0, 200.0),
)


def check(best):
    """Compares the best runs with the targets. Returns one entry per target."""
    out = []
    for title, (reader, field, base), sign, bound, limit in TARGETS:
        if reader not in best or base and base not in best:
            out.append({"title": title, "met": None, "text": f"  ?   {title}: not measured"})
            continue
        value = getattr(best[reader], field)
        if base:
            value /= getattr(best[base], field)
        met, at_limit = (value >= x if sign == ">=" else value <= x for x in (bound, limit))
        mark = "ok  " if met else "MISS"
        text = f"{mark}  {title}: {value:.2f}, target {sign} {bound:g}, limit aimed at {limit:g}{' reached' if at_limit else ''}"
        line = {"title": title, "value": round(value, 3), "bound": bound, "limit": limit}
        out.append(line | {"met": met, "at_limit": at_limit, "text": text})
    return out
