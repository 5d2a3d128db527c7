# SPDX-License-Identifier: Apache-2.0
"""Reads Prometheus text 0.0.4, and refuses what `promtool check metrics` would."""
import math
import re

NAME = re.compile(r"[a-zA-Z_:][a-zA-Z0-9_:]*\Z")
LABEL_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_]*\Z")
SAMPLE = re.compile(r"([a-zA-Z_:][a-zA-Z0-9_:]*)(?:\{(.*)\})? (\S+)\Z")
LABEL = re.compile(r'([a-zA-Z_][a-zA-Z0-9_]*)="((?:[^"\\\n]|\\[\\"n])*)"(,|\Z)')
TYPES = {"counter", "gauge", "histogram"}
UNITS = ("milliseconds", "minutes", "kilobytes", "megabytes", "percent")


class Bad(Exception):
    """The text breaks a rule of the format."""


def need(condition, *what):
    if not condition:
        raise Bad(what)


def unescape(text):
    return re.sub(r"\\(.)", lambda found: {"n": "\n"}.get(found[1], found[1]), text)


def labels_of(text):
    """A tuple of sorted (name, value)."""
    found, at = {}, 0
    while at < len(text or ""):
        match = LABEL.match(text, at)
        need(match, "labels", text)
        need(match[1] not in found, "a label twice", text)
        found[match[1]] = unescape(match[2])
        at = match.end()
    return tuple(sorted(found.items()))


class Family:
    def __init__(self, name, help_text):
        self.name, self.help, self.type = name, help_text, None
        self.samples = {}  # (suffix, labels) -> value

    def value(self, suffix="", **labels):
        return self.samples[suffix, tuple(sorted(labels.items()))]

    def add(self, name, labels, value):
        need(name.startswith(self.name), "a sample outside of its family", name)
        key = (name[len(self.name):], labels)
        need(key not in self.samples, "a sample twice", name, labels)
        self.samples[key] = value


def check_histogram(family):
    series = {}
    for (suffix, labels), value in family.samples.items():
        need(suffix in ("_bucket", "_sum", "_count"), "suffix", family.name, suffix)
        rest = tuple(pair for pair in labels if pair[0] != "le")
        one = series.setdefault(rest, {"buckets": []})
        if suffix == "_bucket":
            one["buckets"].append((float(dict(labels)["le"].replace("+Inf", "inf")), value))
        else:
            need("le" not in dict(labels), "le outside of a bucket", family.name)
            one[suffix] = value
    for rest, one in series.items():
        bounds = [bound for bound, _ in one["buckets"]]
        counts = [count for _, count in one["buckets"]]
        need(bounds == sorted(set(bounds)), "bounds", family.name, bounds)
        need(counts == sorted(counts), "buckets are not cumulative", family.name, rest, counts)
        need(bounds and bounds[-1] == math.inf, "no +Inf", family.name)
        need(counts[-1] == one["_count"], "+Inf is not the count", family.name, rest)
        need((one["_sum"] > 0) or one["_count"] == 0, "sum", family.name, rest)


def check_family(family):
    need(NAME.match(family.name), "name", family.name)
    need(family.help, "no help", family.name)
    need(family.type in TYPES, "type", family.name, family.type)
    need((family.type == "counter") == family.name.endswith("_total"), "_total", family.name)
    need(not family.name.endswith(("_count", "_sum", "_bucket")), "reserved", family.name)
    need(not any(unit in family.name for unit in UNITS), "not a base unit", family.name)
    for (suffix, labels), value in family.samples.items():
        need(family.type == "histogram" or suffix == "", "suffix", family.name, suffix)
        need(not math.isnan(value), "NaN", family.name)
        need(family.type == "gauge" or value >= 0, "below zero", family.name, labels)
        need(all(LABEL_NAME.match(name) and not name.startswith("__") for name, _ in labels),
             "label", labels)
    if family.type == "histogram":
        check_histogram(family)


def parse(text):
    """{name: Family}, checked."""
    need(text.endswith("\n"), "no line break at the end")
    families, current = {}, None
    for line in text[:-1].split("\n"):
        if line.startswith("# HELP "):
            _, _, name, help_text = line.split(" ", 3)
            need(name not in families, "HELP twice", name)
            current = families[name] = Family(name, help_text)
        elif line.startswith("# TYPE "):
            _, _, name, kind = line.split(" ")
            need(current and current.name == name and current.type is None and
                 not current.samples, "TYPE twice, late, or of another", name)
            current.type = kind
        else:
            match = SAMPLE.match(line)
            need(match and current and current.type, "line", line)
            current.add(match[1], labels_of(match[2]), float(match[3].replace("+Inf", "inf")))
    for family in families.values():
        check_family(family)
    return families
