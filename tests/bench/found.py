# SPDX-License-Identifier: Apache-2.0
"""What a run of the bench found: rows, curves, memory, and which budgets they keep."""
import json
import os
import platform
import re
import statistics

# (what, where to find it, at most or at least, of what). A number is in the unit of the row; a text
# names the row of a peer and what may be added to it (ms) or what it is multiplied with.
BUDGETS = [
    ("runCode python from a fresh box, p50", "kernd runCode python", "p50", "<=", 5),
    ("runCode node from a fresh box, p50", "kernd runCode node", "p50", "<=", 5),
    ("run [\"true\"] over the bare launcher, p50", "kernd run [\"true\"]", "p50", "<=",
     ("bwrap true", 1.0, 1)),
    ("cell 1+1 of a warm kernel, p50", "kernd cell 1+1", "p50", "<=", 0.5),
    ("first byte after it was written, p50", "kernd first byte, NDJSON", "p50", "<=", 0.5),
    ("python boxes per second, beside bwrap + python", "kernd runCode python, 16 callers", "rate",
     ">=", ("bwrap python, as many as cores", 0, 1)),
    ("booted python boxes per second, beside bwrap + python", "kernd runCode python, 16 callers, booted",
     "rate", ">=", ("bwrap python, as many as cores", 0, 1)),
    ("a caller's p99 while another has 64 calls under way", "kernd run [\"true\"], beside 64 others", "p99",
     "<=", ("kernd run [\"true\"], alone", 0, 3)),
    ("forked python boxes per second, beside kern-sandbox",
     "kernd: runCode python, 4 callers", "rate", ">=",
     ("kern-sandbox: runCode python, 4 callers", 0, 2.5)),
    ("1 GiB of output, beside the bare pipe", "kernd 1 GiB of output", "rate", ">=",
     ("bare 1 GiB of output", 0, 0.5)),
    ("idle daemon, resident", "idle daemon", "mib", "<=", 8),
    ("idle session, resident", "idle session", "mib", "<=", 8 / 1024),
]


def quantile(values, share):
    ordered = sorted(values)
    return ordered[min(len(ordered) - 1, int(share * len(ordered)))]


class Found:
    def __init__(self):
        self.rows, self.curves, self.notes = [], [], []

    def times(self, group, name, times, **more):
        """more: cpu, mean milliseconds of a call; rate, calls per second."""
        p99 = quantile(times, .99) if len(times) >= 100 else None
        self.rows.append({"group": group, "name": name, "p50": quantile(times, .5),
                          "p95": quantile(times, .95), "p99": p99, "runs": len(times),
                          "times": times, **more})

    def rate(self, group, name, rate, unit="calls/s"):
        self.rows.append({"group": group, "name": name, "rate": rate, "unit": unit})

    def memory(self, name, mib):
        self.rows.append({"group": "memory", "name": name, "mib": mib})

    def curve(self, name, x_name, y_name, points):
        self.curves.append({"name": name, "x": x_name, "y": y_name, "points": points})

    def row(self, name):
        return next((row for row in self.rows if row["name"] == name), None)

    def budgets(self):
        """(what, bound, found, kept) of those whose rows were measured."""
        rows = []
        for what, name, field, order, bound in BUDGETS:
            row = self.row(name)
            if isinstance(bound, tuple):
                peer = self.row(bound[0])
                bound = None if peer is None else (peer[field] + bound[1]) * bound[2]
            if row is not None and bound is not None:
                kept = row[field] <= bound if order == "<=" else row[field] >= bound
                rows.append((what, f"{order} {number(bound)}", number(row[field]), kept))
        return rows

    def as_json(self, **facts):
        return json.dumps({"facts": {**machine(), **facts}, "rows": self.rows, "curves": self.curves,
                           "notes": self.notes, "budgets": self.budgets()}, indent=1)


def machine():
    with open("/proc/cpuinfo", encoding="utf-8", errors="replace") as file:
        model = next((line.split(":", 1)[1].strip() for line in file if "model name" in line), "?")
    return {"machine": platform.machine(), "processor": model, "cpus": os.cpu_count(),
            "kernel": platform.release(), "python": platform.python_version()}


def number(value):
    if value is None:
        return ""
    return f"{value:.3g}" if abs(value) < 1 else f"{value:.2f}" if value < 100 else f"{value:.0f}"


# What a row of ours stands beside.
PEERS = {"kernd run [\"true\"]": "bwrap true", "kernd runCode python": "bwrap python",
         "kernd runCode bash": "bwrap bash", "kernd runCode node": "bwrap node",
         "kernd cell 1+1": "jupyter cell 1+1", "kernd first byte, NDJSON": "bare pipe",
         "kernd runCode python, 16 callers": "bwrap python, as many as cores",
         "kernd 1 GiB of output": "bare 1 GiB of output"}


# And whoever takes turns with the binding.
TURNS = re.compile(r"kernd (?:on|with) \w+: (.*)")


def peer_name(name):
    turn = TURNS.fullmatch(name)
    return f"kern-sandbox: {turn[1]}" if turn else PEERS.get(name)


def ratio(rows, row):
    peer = next((other for other in rows if other["name"] == peer_name(row["name"])), None)
    field = "rate" if "rate" in row else "p50"
    return "" if peer is None else f"{row[field] / peer[field]:.2f} x {peer['name']}"


def table(rows):
    """Markdown. Milliseconds, but for what says otherwise."""
    lines = ["| load | row | p50 | p95 | p99 | CPU per call | per second | runs | beside |",
             "|---|---|---|---|---|---|---|---|---|"]
    for row in rows:
        rate = "" if "rate" not in row else \
            f"{number(row['rate'])} {'' if 'p50' in row else row.get('unit', '')}".strip()
        if "mib" in row:
            rate = f"{row['mib']:.3g} MiB"
        cells = [row["group"], row["name"], *(number(row.get(key)) for key in ("p50", "p95", "p99")),
                 number(row.get("cpu")), rate, str(row.get("runs", "")), ratio(rows, row)]
        lines.append("| " + " | ".join(cells) + " |")
    return "\n".join(lines)


def budget_table(budgets):
    lines = ["| what | must be | found | kept |", "|---|---|---|---|"]
    lines += [f"| {what} | {bound} | {found} | {'yes' if kept else 'no'} |"
              for what, bound, found, kept in budgets]
    return "\n".join(lines)


def mean(values):
    return statistics.fmean(values) if values else None


def curve_table(curve):
    lines = [f"| {curve['x']} | {curve['name']}: {curve['y']} |", "|---|---|"]
    lines += [f"| {x} | {number(y)} |" for x, y in curve["points"]]
    return "\n".join(lines)


def page(result):
    """All of a run as Markdown."""
    facts = result["facts"]
    parts = [f"{facts['machine']}, {facts['processor']}, {facts['cpus']} CPUs, Linux {facts['kernel']}, "
             f"{facts['launcher']}; {facts['rounds']} rounds; {facts['spares']} spares; processors "
             f"{facts['busy']:.0%} busy; {facts['seconds']} s", table(result["rows"])]
    if result["budgets"]:
        parts.append(budget_table(result["budgets"]))
    parts += [curve_table(curve) for curve in result["curves"]]
    parts += result["notes"]
    reasons = facts["disturbed"]
    parts.append("no verdict: " + ", ".join(reasons) if reasons else "quiet enough to count")
    return "\n\n".join(parts)
