# SPDX-License-Identifier: Apache-2.0
"""Answers by what a description could tell apart: one of each kind is enough to be judged."""
import re

import speckit

WORD = re.compile(r"[a-zA-Z_-]{0,24}\Z")  # may be a value of an enumeration
# Of one exchange or one connection.
UNTOLD = {"date", "x-request-id", "connection", "keep-alive", "transfer-encoding", "content-length"}


class Operations:
    """The description's operations, found by what was asked."""

    def __init__(self, document):
        self.rows = [(method, self._pattern(path), f"{method} {path}")
                     for method, path, _, _ in speckit.Spec(document).operations()]
        self.names = {name for _, _, name in self.rows}

    @staticmethod
    def _pattern(path):
        text = re.escape(path).replace(r"\{path\}", ".+")
        return re.compile(re.sub(r"\\\{\w+\\\}", "[^/?]+", text) + r"(\?|\Z)")

    def of(self, made):
        """The name of an exchange's operation, of two that fit the more literal one; None: there is none."""
        found = [name for method, pattern, name in self.rows
                 if method == made.method and pattern.match(made.target)]
        return min(found, key=lambda name: name.count("{"), default=None)


def shape(value):
    """A JSON value without what a schema lets vary: digits, long texts, how many items of a kind."""
    if isinstance(value, dict):
        return tuple(sorted((name if WORD.match(name) else "name", shape(item))
                            for name, item in value.items()))
    if isinstance(value, list):
        return frozenset(map(shape, value))
    if isinstance(value, bool) or value is None:
        return str(value)
    if isinstance(value, (int, float)):
        return type(value).__name__, (value > 0) - (value < 0)
    return value if WORD.match(value) else re.sub(r"[0-9a-f]+", "0", value[:64])


def kind(operations, made):
    """Two exchanges of one kind are as good as the same to a judge."""
    reply = made.reply
    headers = frozenset((name.lower(), shape(value)) for name, value in reply.headers
                        if name.lower() not in UNTOLD)
    is_json = reply.media_type.endswith("json") and reply.body and not reply.header("Content-Encoding")
    body = shape(reply.json) if is_json and reply.media_type != "application/x-ndjson" else None
    return operations.of(made), made.method == "HEAD", reply.status, headers, body
