# SPDX-License-Identifier: Apache-2.0
"""One call that runs something: waiting for its result, or hearing its output as it comes."""
from __future__ import annotations

import base64
import json
from typing import Any, Callable, Optional

from .results import ExecutionResult, SandboxError, error_from, result_from
from .server import Server, path_of

Callback = Optional[Callable[[bytes], None]]
PIECE = 65536


def call(server: Server, target: str, body: dict[str, Any], on_stdout: Callback = None,
         on_stderr: Callback = None) -> ExecutionResult:
    """What ran, ran; SandboxError when it could not."""
    if on_stdout is None and on_stderr is None:
        return result_from(server.json("POST", target, body, {"Accept": "application/json"}))
    if not target.endswith("/setup"):  # which tells text alone
        # base64, because a callback is promised the bytes as the program wrote them.
        body = {**body, "stdoutEncoding": "base64"}
    return _Follower(server, {"stdout": on_stdout, "stderr": on_stderr}).follow(target, body)


class _Follower:
    """Reads the events of one execution."""

    def __init__(self, server: Server, callbacks: dict[str, Callback]) -> None:
        self.server = server
        self.callbacks = callbacks
        self.output = {"stdout": bytearray(), "stderr": bytearray()}
        self.cut: set[str] = set()  # streams of which the events do not tell all
        self.results: list[Any] = []
        self.files: list[Any] = []

    def follow(self, target: str, body: dict[str, Any]) -> ExecutionResult:
        with self.server.exchange("POST", target, body,
                                  {"Accept": "application/x-ndjson"}) as reply:
            last = None
            for line in reply:
                last = json.loads(line)
                self.take(last)
        if last is None or last.get("type") not in ("exit", "error"):
            raise SandboxError("the stream of events was cut", code="disconnected")
        if last["type"] == "error":
            raise error_from(last)
        for name in self.cut:
            self.fetch_rest(last["id"], name)
        texts = {name: bytes(data).decode("utf-8", "replace")
                 for name, data in self.output.items()}
        return result_from({**last, **texts, "results": self.results, "files": self.files})

    def take(self, event: dict[str, Any]) -> None:
        kind = event["type"]
        if kind in self.output:
            exact = event.get("encoding") == "base64"
            self.hand_on(kind, base64.b64decode(event["data"]) if exact else event["data"].encode())
        elif kind == "truncated" and event.get("logOnly"):
            self.cut.add(event["stream"])
        elif kind == "result":
            self.results.append(event)
        elif kind == "file":
            self.files.append(event)

    def hand_on(self, name: str, data: bytes) -> None:
        self.output[name] += data
        callback = self.callbacks[name]
        if callback is not None:
            try:
                callback(data)
            except Exception:  # pylint: disable=broad-except
                pass  # a listener's mistake is none of the call's

    def fetch_rest(self, execution: str, name: str) -> None:
        """The log of events is bounded; the output itself is kept longer."""
        seen = len(self.output[name])
        try:
            with self.server.exchange("GET", path_of("executions", execution, name),
                                      headers={"Range": f"bytes={seen}-"}) as reply:
                while piece := reply.read(PIECE):
                    self.hand_on(name, piece)
        except SandboxError as failure:
            if failure.status != 416:  # nothing is behind what was seen
                raise
