"""Draws time and memory against the size of the trace, as SVG.

    bench/plot.py bench/results/TIME.json [MIX] > plot.svg

Both axes are logarithmic, so that what costs the same per byte is a straight
line with the slope of the grid's diagonal. Needs the standard library only.
"""

import argparse
import html
import json
import math
import pathlib

WIDTH, HEIGHT, LEFT, TOP, GAP, LEGEND = 380, 300, 60, 40, 80, 170
COLOURS = ("#1b6ca8", "#7fb3d5", "#0b3c5d", "#4f9a94", "#d1495b", "#edae49", "#8d6a9f", "#66785f", "#b5651d", "#333333", "#c0c000")


def best(runs):
    """The run that counts: of those that ended well the one with the least CPU."""
    good = [run for run in runs if run["status"] == 0]
    return min(good, key=lambda run: run["cpu_s"]) if good else None


def series(document, mix, field):
    """Points (MB, value) by reader, in order of size."""
    out = {}
    for trace in sorted(document["traces"], key=lambda trace: trace["bytes"]):
        if trace["mix"] != mix:
            continue
        for reader, runs in trace["runs"].items():
            if run := best(runs):
                out.setdefault(reader, []).append((trace["bytes"] / 1e6, max(run[field], 0.001)))
    return out


def decades(values):
    """The powers of ten around some values."""
    low, high = math.floor(math.log10(min(values))), math.ceil(math.log10(max(values)))
    return low, max(high, low + 1)


def panel(title, lines, colours, left):
    """One diagram."""
    points = [point for line in lines.values() for point in line]
    x0, x1 = decades([x for x, _ in points])
    y0, y1 = decades([y for _, y in points])

    def place(x, y):
        across = left + (math.log10(x) - x0) / (x1 - x0) * WIDTH
        return across, TOP + HEIGHT - (math.log10(y) - y0) / (y1 - y0) * HEIGHT

    out = [f'<text x="{left}" y="{TOP - 14}" font-weight="bold">{title}</text>']
    for power in range(x0, x1 + 1):
        x, _ = place(10**power, 10**y0)
        out.append(f'<path d="M{x:.1f} {TOP}v{HEIGHT}" stroke="#ddd"/>')
        out.append(f'<text x="{x:.1f}" y="{TOP + HEIGHT + 16}" text-anchor="middle">{10**power:g}</text>')
    for power in range(y0, y1 + 1):
        _, y = place(10**x0, 10**power)
        out.append(f'<path d="M{left} {y:.1f}h{WIDTH}" stroke="#ddd"/>')
        out.append(f'<text x="{left - 6}" y="{y + 4:.1f}" text-anchor="end">{10**power:g}</text>')
    out.append(f'<text x="{left + WIDTH / 2}" y="{TOP + HEIGHT + 34}" text-anchor="middle">MB of JSON</text>')
    for reader, line in lines.items():
        path = " ".join(f"{x:.1f},{y:.1f}" for x, y in (place(*point) for point in line))
        out.append(f'<polyline points="{path}" fill="none" stroke="{colours[reader]}" stroke-width="2"/>')
        for point in line:
            x, y = place(*point)
            out.append(f'<circle cx="{x:.1f}" cy="{y:.1f}" r="3" fill="{colours[reader]}"/>')
    return out


def draw(document, mix):
    """Returns the picture of one mix of events."""
    cpu, memory = series(document, mix, "cpu_s"), series(document, mix, "rss_mib")
    if not cpu:
        raise ValueError(f"no results for the mix {mix}")
    colours = {reader: COLOURS[i % len(COLOURS)] for i, reader in enumerate(cpu)}
    second = LEFT + WIDTH + GAP
    legend = second + WIDTH + 24
    out = [
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{legend + LEGEND}" height="{TOP + HEIGHT + 50}" '
        'font-family="sans-serif" font-size="12">',
        '<rect width="100%" height="100%" fill="white"/>',
        *panel(f"CPU seconds, {html.escape(mix)}", cpu, colours, LEFT),
        *panel("peak memory in MiB", memory, colours, second),
    ]
    for i, reader in enumerate(cpu):
        y = TOP + 12 + 20 * i
        out.append(f'<rect x="{legend}" y="{y - 9}" width="14" height="4" fill="{colours[reader]}"/>')
        out.append(f'<text x="{legend + 20}" y="{y}">{html.escape(reader)}</text>')
    return "\n".join([*out, "</svg>", ""])


def main():
    parser = argparse.ArgumentParser(description="Draws time and memory against size.")
    parser.add_argument("results", type=pathlib.Path)
    parser.add_argument("mix", nargs="?")
    arguments = parser.parse_args()
    document = json.loads(arguments.results.read_text())
    print(draw(document, arguments.mix or document["traces"][0]["mix"]), end="")


if __name__ == "__main__":
    main()
