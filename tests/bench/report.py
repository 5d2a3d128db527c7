#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""A page and its plots from what the bench has written.

    tests/bench/report.py RUN.json DIRECTORY [--draft]

Writes DIRECTORY/results.md and DIRECTORY/results-*.svg. A run that was disturbed is no result: it is
refused, unless --draft marks the page as one.
"""
import html
import json
import math
import os
import sys

import found

WIDTH, HEIGHT, LEFT, TOP = 720, 360, 70, 40
COLOURS = ("#1f77b4", "#d62728", "#2ca02c", "#9467bd", "#8c564b")
HOW = """# Results

Made by `make results` from one run of `make bench` on one machine; numbers of two pages can't be compared, rows
of one page can. To make your own, on a quiet machine:

```sh
make deps-dev
make bench ARGS="--json $PWD/build/bench.json --callers 256 --sessions 10000 --files 100000 --output 1073741824"
make results
```

How the rows are measured is told in [benchmarks.md](benchmarks.md).
"""


def text(x, y, content, anchor="middle", size=12):
    return (f'<text x="{x:.0f}" y="{y:.0f}" font-size="{size}" text-anchor="{anchor}">'
            f'{html.escape(content)}</text>')


class Scale:
    """A logarithmic axis from one whole power of ten to another."""

    def __init__(self, values, start, end):
        values = [value for value in values if value > 0]
        self.low = math.floor(math.log10(min(values)))
        self.high = max(self.low + 1, math.ceil(math.log10(max(values))))
        self.start, self.end = start, end

    def __call__(self, value):
        share = (math.log10(max(value, 10 ** self.low)) - self.low) / (self.high - self.low)
        return self.start + share * (self.end - self.start)

    def ticks(self):
        return [10.0 ** power for power in range(self.low, self.high + 1)]


def tick(value):
    return f"{value:.0e}".replace("e+0", "e") if value >= 1e5 else f"{value:g}"


def svg(height, parts):
    return "\n".join([f'<svg xmlns="http://www.w3.org/2000/svg" width="{WIDTH}" height="{height}" '
                      f'font-family="sans-serif"><rect width="100%" height="100%" fill="white"/>',
                      *parts, "</svg>\n"])


def bars(rows, title):
    """One bar a row up to its p50, a thin one on to its p95."""
    left, line = 260, 22
    height = TOP + line * len(rows) + 40
    scale = Scale([value for row in rows for value in (row["p50"], row["p95"])], left, WIDTH - 30)
    parts = [text(WIDTH / 2, 22, title, size=15)]
    for value in scale.ticks():
        x = scale(value)
        parts.append(f'<line x1="{x:.0f}" y1="{TOP}" x2="{x:.0f}" y2="{height - 30}" stroke="#ddd"/>')
        parts.append(text(x, height - 12, f"{tick(value)} ms"))
    for number, row in enumerate(rows):
        y = TOP + line * number
        colour = COLOURS[0] if row["name"].startswith("kernd") else "#999"
        middle, late = scale(row["p50"]), scale(row["p95"])
        parts.append(text(left - 8, y + 15, row["name"], "end"))
        parts.append(f'<rect x="{left}" y="{y + 4}" width="{max(1, middle - left):.0f}" height="14" '
                     f'fill="{colour}"/>')
        parts.append(f'<rect x="{middle:.0f}" y="{y + 9}" width="{max(1, late - middle):.0f}" height="4" '
                     f'fill="{colour}"/>')
    return svg(height, parts)


def lines(curves, title):
    """Curves over one axis, both logarithmic."""
    x_scale = Scale([x for curve in curves for x, _ in curve["points"]], LEFT, WIDTH - 30)
    y_scale = Scale([y for curve in curves for _, y in curve["points"]], HEIGHT - 50, TOP)
    parts = [text(WIDTH / 2, 22, title, size=15), text(WIDTH / 2, HEIGHT - 10, curves[0]["x"])]
    for value in x_scale.ticks():
        parts.append(text(x_scale(value), HEIGHT - 30, tick(value)))
    for value in y_scale.ticks():
        y = y_scale(value)
        parts.append(f'<line x1="{LEFT}" y1="{y:.0f}" x2="{WIDTH - 30}" y2="{y:.0f}" stroke="#ddd"/>')
        parts.append(text(LEFT - 8, y + 4, tick(value), "end"))
    for number, curve in enumerate(curves):
        colour = COLOURS[number % len(COLOURS)]
        points = [(x_scale(x), y_scale(y)) for x, y in curve["points"]]
        parts.append(f'<polyline fill="none" stroke="{colour}" stroke-width="2" points="' +
                     " ".join(f"{x:.0f},{y:.0f}" for x, y in points) + '"/>')
        parts += [f'<circle cx="{x:.0f}" cy="{y:.0f}" r="3" fill="{colour}"/>' for x, y in points]
        parts.append(f'<rect x="{LEFT + 10}" y="{TOP + 4 + 18 * number}" width="12" height="12" '
                     f'fill="{colour}"/>')
        parts.append(text(LEFT + 28, TOP + 14 + 18 * number, f"{curve['name']} ({curve['y']})", "start"))
    return svg(HEIGHT, parts)


def plots(result):
    """{file name: SVG}: the latencies of one caller, and one plot for each thing that grows."""
    rows = [row for row in result["rows"] if row["group"].startswith("one caller")]
    made = {"results-latency.svg": bars(rows, "One caller: p50, thin up to p95")} if rows else {}
    by_axis = {}
    for curve in result["curves"]:
        by_axis.setdefault(curve["x"], []).append(curve)
    for axis, curves in by_axis.items():
        made[f"results-{axis.split()[0].strip(',')}.svg"] = lines(curves, f"Cost and {axis}")
    return made


def main(arguments):
    draft = "--draft" in arguments
    names = [argument for argument in arguments if argument != "--draft"]
    if len(names) != 2:
        sys.exit(__doc__)
    with open(names[0], encoding="utf-8") as file:
        result = json.load(file)
    if result["facts"]["disturbed"] and not draft:
        print("no results: " + ", ".join(result["facts"]["disturbed"]), file=sys.stderr)
        return 2
    made = plots(result)
    page = HOW + ("\n**A draft: the machine was disturbed.**\n" if draft else "") + "\n"
    page += "".join(f"![{name}]({name})\n\n" for name in made) + found.page(result) + "\n"
    os.makedirs(names[1], exist_ok=True)
    for name, content in {**made, "results.md": page}.items():
        with open(os.path.join(names[1], name), "w", encoding="utf-8") as file:
            file.write(content)
    return 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
