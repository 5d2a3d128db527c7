# SPDX-License-Identifier: Apache-2.0
"""The way to a server: where it is, starting it where none runs, one HTTP exchange."""
from __future__ import annotations

import contextlib
import http.client
import json
import os
import re
import shutil
import socket
import subprocess
from typing import Any, Iterator, Mapping, Optional, Union
from urllib.parse import quote, urlsplit

from .results import SandboxError, error_from

DEFAULT_PORT = 5376
IDLE_EXIT_S = 300  # a server that was started here leaves when nothing was asked for so long
START_LIMIT_S = 60
SMALL = 1 << 20  # a problem is never larger


class Server:
    """
    A kernd. Without arguments it is the user's own one, started when a call finds none; KERND_URL and
    KERND_TOKEN_FILE, or KERND_SOCKET, are read first. May be used by any number of threads.
    """

    def __init__(self, url: Optional[str] = None, *, token: Optional[str] = None,
                 token_file: Optional[str] = None, socket_path: Optional[str] = None) -> None:
        if url is None and socket_path is None:
            url = os.environ.get("KERND_URL") or None
            socket_path = None if url else os.environ.get("KERND_SOCKET") or None
        self._url = url
        self._token = None
        self._socket_path = socket_path
        self._may_start = url is None and socket_path is None
        if url is not None:
            self._token = token or _read_token(token_file or os.environ.get("KERND_TOKEN_FILE"))
        elif self._may_start:
            self._socket_path = _usual_socket()

    @contextlib.contextmanager
    def exchange(self, method: str, target: str, body: Union[None, bytes, Any] = None,
                 headers: Optional[Mapping[str, str]] = None) -> Iterator[http.client.HTTPResponse]:
        """
        One request and its answer, which is read inside the block; leaving it early ends the call.
        body: a JSON value, or bytes or an open file as they are. A refusal is a SandboxError.
        """
        sent = dict(headers or {})
        if isinstance(body, (dict, list)):
            body = json.dumps(body).encode()
            sent["Content-Type"] = "application/json"
        connection = self._connect()
        if self._token:
            sent["Authorization"] = f"Bearer {self._token}"
        try:
            connection.request(method, target, body, sent)
            reply = connection.getresponse()
            if reply.status >= 400:
                raise _refusal(reply)
            yield reply
        except (OSError, http.client.HTTPException) as failure:
            raise SandboxError(f"the exchange with kernd failed: {failure!r}",
                               code="disconnected") from failure
        finally:
            connection.close()

    def json(self, method: str, target: str, body: Any = None,
             headers: Optional[Mapping[str, str]] = None) -> Any:
        """The JSON of an answer; None where there is no body."""
        with self.exchange(method, target, body, headers) as reply:
            text = reply.read()
            return json.loads(text) if text else None

    def _connect(self) -> http.client.HTTPConnection:
        """A connection of its own for each exchange: closing it is how a call is given up."""
        try:
            return self._dial()
        except (FileNotFoundError, ConnectionRefusedError) as failure:
            if not self._may_start:
                raise SandboxError(f"nobody listens at {self._url or self._socket_path}",
                                   code="disconnected") from failure
        except OSError as failure:
            raise SandboxError(f"no connection to {self._url or self._socket_path}: {failure}",
                               code="disconnected") from failure
        self._take(_start())
        try:
            return self._dial()
        except OSError as failure:
            raise SandboxError(f"no connection to the server that was started, at "
                               f"{self._url or self._socket_path}: {failure}",
                               code="disconnected") from failure

    def _take(self, found: Mapping[str, str]) -> None:
        """Where `kernd start` has found or started a server; some listen on TCP alone."""
        self._socket_path = found.get("socket")
        if self._socket_path is None:
            self._token = _read_token(found.get("token"))
            self._url = found.get("url")
        else:
            self._url = self._token = None

    def _dial(self) -> http.client.HTTPConnection:
        if self._url is not None:
            at = urlsplit(self._url)
            if at.scheme != "http" or not at.hostname:
                raise SandboxError(f"{self._url} is no http://HOST:PORT", code="bad_value")
            connection = http.client.HTTPConnection(at.hostname, at.port or DEFAULT_PORT)
            connection.connect()
            return connection
        if self._socket_path is None:
            raise FileNotFoundError
        connection = http.client.HTTPConnection("localhost")
        connection.sock = socket.socket(socket.AF_UNIX, socket.SOCK_STREAM)
        try:
            connection.sock.connect(self._socket_path)
        except OSError:
            connection.close()
            raise
        return connection


def path_of(*parts: str) -> str:
    """A request target; a part's slashes divide it further."""
    return "/v1/" + "/".join(quote(part, safe="/") for part in parts)


def _refusal(reply: http.client.HTTPResponse) -> SandboxError:
    text = reply.read(SMALL)
    try:
        problem = json.loads(text)
    except ValueError:
        problem = {"detail": f"the server answered {reply.status}", "status": reply.status}
    return error_from(problem)


def _read_token(path: Optional[str]) -> str:
    if not path:
        raise SandboxError("a server on TCP wants its token", code="unauthorized",
                           remediation="name its file with token_file or KERND_TOKEN_FILE")
    try:
        with open(path, encoding="ascii") as file:
            return file.read().strip()
    except OSError as failure:
        raise SandboxError(f"the token file: {failure}", code="unauthorized") from failure


def _usual_socket() -> Optional[str]:
    """Where a server of the user is found without asking; `kernd start` knows the other places."""
    runtime = os.environ.get("XDG_RUNTIME_DIR")
    return os.path.join(runtime, "kernd", "kernd.sock") if runtime else None


def _start() -> Mapping[str, str]:
    """Starts the user's server unless it runs; where it is, by name: socket, url, token (a file)."""
    program = os.environ.get("KERND_BIN") or shutil.which("kernd")
    if not program:
        raise SandboxError("there is no kernd", code="disconnected",
                           remediation="put it on PATH, or its place into KERND_BIN")
    try:
        done = subprocess.run([program, "start", "--idle-exit", str(IDLE_EXIT_S)],
                              stdin=subprocess.DEVNULL, capture_output=True, text=True, check=False,
                              timeout=START_LIMIT_S)
    except (OSError, subprocess.TimeoutExpired) as failure:
        raise SandboxError(f"kernd did not start: {failure}", code="disconnected") from failure
    found = dict(re.findall(r" (\w+)=(\S+)", done.stdout))
    if done.returncode != 0 or not found.keys() & {"socket", "url"}:
        raise SandboxError(f"kernd did not start: {(done.stderr or done.stdout).strip()}",
                           code="disconnected")
    return found
