# SPDX-License-Identifier: Apache-2.0
"""Answers by what a description could tell apart: one of each kind is enough to be judged."""
import re

import speckit

WORD = re.compile(r"[a-zA-Z_-]{0,24}\Z")  # may be a value of an enumeration
SPACE = re.compile(r"\s")
# Of one exchange or one connection.
UNTOLD = {"date", "x-request-id", "connection", "keep-alive", "transfer-encoding", "content-length"}


class Operation:
    def __init__(self, method, path):
        self.method, self.name = method, f"{method} {path}"
        text = re.escape(path).replace(r"\{path\}", ".+")
        self.pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/?]+", text) + r"(\?|\Z)")
        self.target = re.sub(r"\{\w+\}", "x", path)  # one that any proxy takes


def operations(document):
    return [Operation(method, path) for method, path, _, _ in speckit.Spec(document).operations()]


def operation_of(known, made):
    """An exchange's operation, of two that fit the more literal one; None: the description has none."""
    found = [one for one in known if one.method == made.method and one.pattern.match(made.target)]
    return min(found, key=lambda one: one.name.count("{"), default=None)


def shape(value):
    """A JSON value without what a schema lets vary: digits, long texts, how many items of a kind."""
    if isinstance(value, dict):
        return frozenset((name if WORD.match(name) else "name", shape(item))
                         for name, item in value.items())
    if isinstance(value, list):
        return ("list", frozenset(map(shape, value)))
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, (int, float)):
        return type(value).__name__, (value > 0) - (value < 0)
    if WORD.match(value):
        return value
    return "text" if SPACE.search(value) else re.sub(r"[a-zA-Z0-9]+", "a", value[:64])


def kind(reply):
    """Two answers of one operation that are of one kind are the same to a judge."""
    headers = frozenset((name.lower(), shape(value)) for name, value in reply.headers
                        if name.lower() not in UNTOLD)
    is_json = reply.media_type.endswith("json") and reply.body
    return reply.status, reply.header("Content-Type"), headers, shape(reply.json) if is_json else None
