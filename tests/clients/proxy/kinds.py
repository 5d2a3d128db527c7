# SPDX-License-Identifier: Apache-2.0
"""Answers by what a description could tell apart: one of each kind is enough to be judged."""
import re

import speckit

SPACE = re.compile(r"\s")
# Of one exchange or one connection.
UNTOLD = {"date", "x-request-id", "connection", "keep-alive", "transfer-encoding", "content-length"}


class Operation:
    def __init__(self, method, path):
        self.method, self.name = method, f"{method} {path}"
        text = re.escape(path).replace(r"\{path\}", ".+")
        self.pattern = re.compile(re.sub(r"\\\{\w+\\\}", "[^/?]+", text) + r"(\?|\Z)")
        self.target = re.sub(r"\{\w+\}", "x", path)  # one that any proxy takes


def names_and_values(node):
    """Each name of a member, and each text that is a value of an enumeration."""
    if isinstance(node, dict):
        for name, item in node.items():
            yield name
            if name in ("enum", "const"):
                yield from (word for word in (item if isinstance(item, list) else [item])
                            if isinstance(word, str))
            yield from names_and_values(item)
    elif isinstance(node, list):
        for item in node:
            yield from names_and_values(item)


class Kinds:
    def __init__(self, document):
        self.operations = [Operation(method, path)
                           for method, path, _, _ in speckit.Spec(document).operations()]
        self.words = set(names_and_values(document))

    def operation_of(self, made):
        """An exchange's operation, of two that fit the more literal one; None: there is none."""
        found = [one for one in self.operations
                 if one.method == made.method and one.pattern.match(made.target)]
        return min(found, key=lambda one: one.name.count("{"), default=None)

    def shape(self, value):
        """A JSON value without what a schema lets vary: numbers, texts, how many items of a kind."""
        if isinstance(value, dict):
            return frozenset((name if name in self.words else "name", self.shape(item))
                             for name, item in value.items())
        if isinstance(value, list):
            return "list", frozenset(map(self.shape, value))
        if isinstance(value, bool) or value is None:
            return str(value)
        if isinstance(value, (int, float)):
            return type(value).__name__, (value > 0) - (value < 0)
        if value in self.words or not value:
            return value
        return "text" if SPACE.search(value) else re.sub(r"[a-zA-Z0-9]+", "a", value[:64])

    def kind(self, reply):
        """Two answers of one operation that are of one kind are the same to a judge."""
        headers = frozenset((name.lower(), self.shape(value)) for name, value in reply.headers
                            if name.lower() not in UNTOLD)
        is_json = reply.media_type.endswith("json") and reply.body
        body = self.shape(reply.json) if is_json else None
        return reply.status, reply.header("Content-Type"), headers, body
