# SPDX-License-Identifier: Apache-2.0
"""Exchanges of tests, kept for who judges them later.

With KERND_TEST_RECORD=FOLDER each test file leaves one there, a line of JSON for each exchange; `load`
reads them. `recorded` is the same within one process.
"""
import base64
import collections
import contextlib
import json
import os
import threading

import wire

Exchange = collections.namedtuple("Exchange", "method target headers body reply")
# What is larger is content of files, which no description speaks of.
LARGEST = 1 << 20


@contextlib.contextmanager
def told_to(listener):
    """Whatever is exchanged inside is told to a function, too."""
    exchange = wire.Connection.exchange

    def listen(connection, method, target, headers=(), body=None):
        reply = exchange(connection, method, target, headers, body)
        listener(Exchange(method, target, dict(headers), body, reply))
        return reply

    wire.Connection.exchange = listen
    try:
        yield
    finally:
        wire.Connection.exchange = exchange


@contextlib.contextmanager
def recorded():
    """A list that fills with the exchanges of whatever runs inside."""
    found = []
    with told_to(found.append):
        yield found


def _text(data):
    return None if data is None else base64.b64encode(data).decode()


def _data(text):
    return None if text is None else base64.b64decode(text)


def _line(made):
    reply = made.reply
    return json.dumps([made.method, made.target, made.headers, _text(made.body), reply.version,
                       reply.status, reply.headers, _text(reply.body)])


def _exchange(line):
    method, target, headers, body, version, status, reply_headers, reply_body = json.loads(line)
    reply = wire.Reply(version, status, [tuple(pair) for pair in reply_headers], _data(reply_body),
                       [], False)
    return Exchange(method, target, headers, _data(body), reply)


def recording(name):
    """What a test file runs in: nothing special, or its exchanges are kept."""
    folder = os.environ.get("KERND_TEST_RECORD")
    return _kept(os.path.join(folder, f"{name}.{os.getpid()}.jsonl")) if folder \
        else contextlib.nullcontext()


@contextlib.contextmanager
def _kept(path):
    os.makedirs(os.path.dirname(path), exist_ok=True)
    lock = threading.Lock()
    with open(path, "w", encoding="ascii") as file:
        def keep(made):
            if len(made.body or b"") + len(made.reply.body) <= LARGEST:
                line = _line(made)
                with lock:
                    file.write(line + "\n")

        with told_to(keep):
            yield


def load(folder):
    """(name of the test file, its exchanges), for each."""
    for entry in sorted(os.listdir(folder)):
        with open(os.path.join(folder, entry), encoding="ascii") as file:
            yield entry.split(".")[0], [_exchange(line) for line in file]
