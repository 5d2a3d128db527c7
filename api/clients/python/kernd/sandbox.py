# SPDX-License-Identifier: Apache-2.0
"""Sandbox: files that stay between calls, each of which has a fresh box. Kernel: variables stay too."""
from __future__ import annotations

import os
from dataclasses import dataclass, field
from typing import Any, BinaryIO, Literal, Mapping, Optional, Sequence, Union
from urllib.parse import urlencode

from . import checks
from .calls import PIECE, Callback, call
from .results import ExecutionResult, FileInfo, SandboxError, in_dependencies
from .server import Server, path_of

Language = Literal["python", "bash", "node"]
Seconds = Union[int, float]
INHERIT: Any = object()  # a callback that was not given; None is one that was turned off
PAGE = 10000
# A session whose program died goes by itself, after a day without a call.
IDLE_TIMEOUT_S = 86400


@dataclass
class Sandbox:
    """
    Files persist between calls, processes do not. Safe by default: no network, no directory of the
    host, limits on everything. `with Sandbox() as sandbox:`, or open() and close(). Calls may come
    from several threads.
    """

    image: Optional[str] = None  # an OCI image, where the server has an engine for them
    setup: Optional[str] = None  # run once when opened, with the network on: "pip install pandas"
    workspace: Optional[str] = None  # a directory of this host; by default one that goes at the end
    memory_mb: Optional[int] = 512
    cpus: Optional[float] = None  # cores; None: no cap
    pids: Optional[int] = 256
    timeout_s: Seconds = 30
    network: bool = False  # RELAXES ISOLATION: the host's network
    egress_allow: Optional[Sequence[str]] = None
    mounts: Optional[Mapping[str, Union[str, tuple[str, str]]]] = None  # {source: (target, "ro")}
    profiles: Optional[Sequence[str]] = None
    env: Optional[Mapping[str, str]] = None
    max_output_bytes: int = 64 << 20  # kept of stdout and of stderr
    enforce_limits: bool = True
    require_limits: bool = False  # refuse to run where the kernel does not enforce the caps
    security_profile: Optional[str] = None
    apparmor: Optional[str] = None
    cap_drop: Sequence[str] = ("ALL",)
    deps_readonly: bool = False  # calls can't change what setup installed
    track_files: bool = True  # tell which files a call changed
    on_stdout: Callback = None  # hears the bytes as they come
    on_stderr: Callback = None
    server: Optional[Server] = None

    _id: Optional[str] = field(default=None, init=False, repr=False)
    _server: Any = field(default=None, init=False, repr=False)

    def __post_init__(self) -> None:
        checks.seconds(self.timeout_s)
        if not isinstance(self.max_output_bytes, int) or self.max_output_bytes <= 0:
            raise SandboxError("max_output_bytes must be above 0", code="bad_value")
        checks.mounts(self.mounts or {})
        checks.tokens("profiles", self.profiles or [], checks.PROFILE)
        allowed = checks.tokens("egress_allow", self.egress_allow or [], checks.DOMAIN)
        if self.apparmor is not None:
            checks.token("apparmor", self.apparmor, checks.APPARMOR)
        checks.tokens("cap_drop", self.cap_drop, checks.CAPABILITY)
        checks.variables(self.env or {})
        if allowed and self.network:
            raise SandboxError("egress_allow and network exclude each other", code="bad_value")

    # ---- life ----

    def open(self) -> Sandbox:
        """Makes the session and runs `setup`. Once it is open this does nothing."""
        if self._id is None:
            self._server = self.server or Server()
            body = {**self._options(), "depsReadonly": self.deps_readonly,
                    "idleTimeoutS": IDLE_TIMEOUT_S}
            self._id = self._server.json("POST", "/v1/sessions", body)["id"]
            try:
                self._set_up()
            except BaseException:
                self.close()
                raise
        return self

    def close(self) -> None:
        """Ends what runs and removes the files, unless they are in a `workspace` of the host."""
        session, self._id = self._id, None
        if session is not None:
            try:
                self._server.json("DELETE", path_of("sessions", session))
            except SandboxError:
                pass  # it is gone, or goes by itself

    def __enter__(self) -> Sandbox:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()

    # ---- running ----

    def run_code(self, code: str, *, language: Language = "python",
                 timeout_s: Optional[Seconds] = None, on_stdout: Callback = INHERIT,
                 on_stderr: Callback = INHERIT) -> ExecutionResult:
        """Runs code in a fresh box on the workspace. An option given here is for this call alone."""
        target = self._target("runCode")
        return self._call(target, _code(code, language), timeout_s, on_stdout, on_stderr)

    def run(self, command: Sequence[str], *, timeout_s: Optional[Seconds] = None,
            on_stdout: Callback = INHERIT, on_stderr: Callback = INHERIT) -> ExecutionResult:
        """Runs a program: a list, never a line for a shell."""
        target = self._target("run")
        return self._call(target, {"command": checks.command(command)}, timeout_s, on_stdout,
                          on_stderr)

    def kernel(self, *, timeout_s: Optional[Seconds] = None,
               on_timeout: Literal["kill", "interrupt"] = "kill") -> Kernel:
        """
        A python interpreter that keeps its variables: `with sandbox.kernel() as kernel:`. A cell that
        takes longer than timeout_s ends the kernel, or with on_timeout="interrupt" only itself.
        """
        self._target()
        limit = self.timeout_s if timeout_s is None else checks.seconds(timeout_s)
        return Kernel(self, limit, on_timeout)

    # ---- files ----

    def write_file(self, path: str, data: Union[bytes, str]) -> None:
        """Makes or replaces a file of the workspace, in one step."""
        content = data.encode() if isinstance(data, str) else bytes(data)
        self._server.json("PUT", self._target("files", checks.path(path)), content,
                          {"Content-Type": "application/octet-stream"})

    def read_file(self, path: str, *, max_bytes: Optional[int] = None) -> bytes:
        """The bytes of a file; SandboxError when it is larger than max_bytes."""
        target = self._target("files", checks.path(path))
        with self._server.exchange("GET", target) as reply:
            if max_bytes is not None and int(reply.getheader("Content-Length", "0")) > max_bytes:
                raise SandboxError(f"{path!r} is larger than {max_bytes} bytes", code="too_large")
            return reply.read()

    def list_files(self, subdir: str = "") -> list[FileInfo]:
        """All regular files of the workspace or of a directory of it, without what setup installed."""
        target = self._target("files")
        query = {"recursive": "true", "limit": str(PAGE)}
        if subdir:
            query["path"] = checks.path(subdir)
        found = []
        while True:
            page = self._server.json("GET", f"{target}?{urlencode(query)}")
            found += [FileInfo(file["path"], file["size"]) for file in page["items"]
                      if file["type"] == "file" and not in_dependencies(file["path"])]
            if not page["nextCursor"]:
                return found
            query["cursor"] = page["nextCursor"]

    def snapshot(self, dest: Union[str, os.PathLike[str]]) -> None:
        """Writes all files of the workspace to an archive (.tar.gz) on this host."""
        target = self._target("archive") + "?format=tar.gz"
        with self._server.exchange("GET", target) as reply, _open(dest, "wb") as file:
            while piece := reply.read(PIECE):
                file.write(piece)

    def restore(self, src: Union[str, os.PathLike[str]]) -> None:
        """Puts the files of an archive into the workspace: all of them, or none if one is hostile."""
        target = self._target("archive")
        with _open(src, "rb") as file:
            headers = {"Content-Type": "application/octet-stream",
                       "Content-Length": str(os.fstat(file.fileno()).st_size)}
            self._server.json("PUT", target, file, headers)

    # ---- within ----

    def _options(self) -> dict[str, Any]:
        """What differs from the server's own defaults is said; so what an engine can't do is only
        refused where it was asked for."""
        options: dict[str, Any] = {
            "image": self.image, "workspace": self.workspace, "memoryMb": self.memory_mb,
            "cpus": self.cpus, "pids": self.pids, "timeoutS": self.timeout_s,
            "network": self.network, "egressAllow": list(self.egress_allow or []) or None,
            "mounts": checks.mounts(self.mounts or {}) or None,
            "profiles": list(self.profiles or []) or None, "env": dict(self.env or {}) or None,
            "maxOutputBytes": self.max_output_bytes, "enforceLimits": self.enforce_limits,
            "requireLimits": self.require_limits, "securityProfile": self.security_profile,
            "apparmor": self.apparmor, "capDrop": list(self.cap_drop),
            "trackFiles": self.track_files,
        }
        return {name: value for name, value in options.items() if value is not None}

    def _set_up(self) -> None:
        if not self.setup:
            return
        done = call(self._server, self._target("setup"), {"command": self.setup}, self.on_stdout,
                    self.on_stderr)
        if not done.success:
            said = (done.stderr or done.stdout).strip()[:400]
            why = done.fault.message if done.fault else f"exit code {done.exit_code}"
            raise SandboxError(f"setup failed ({why}): {said}", code="setup_failed")

    def _target(self, *parts: str) -> str:
        if self._id is None:
            raise SandboxError("the sandbox is not open: use it in a with statement, or open() it",
                               code="not_open")
        return path_of("sessions", self._id, *parts)

    def _call(self, target: str, body: dict[str, Any], timeout_s: Optional[Seconds],
              on_stdout: Callback, on_stderr: Callback) -> ExecutionResult:
        if timeout_s is not None:
            body["timeoutS"] = checks.seconds(timeout_s)
        return call(self._server, target, body,
                    self.on_stdout if on_stdout is INHERIT else on_stdout,
                    self.on_stderr if on_stderr is INHERIT else on_stderr)


class Kernel:
    """A python interpreter that keeps its variables from cell to cell. See Sandbox.kernel."""

    def __init__(self, sandbox: Sandbox, timeout_s: Seconds, on_timeout: str = "kill") -> None:
        self._sandbox = sandbox
        self._options = {"timeoutS": timeout_s}
        self._on_timeout = on_timeout
        self._target: Optional[str] = None

    def open(self) -> Kernel:
        if self._target is None:
            server, target = self._sandbox._server, self._sandbox._target("kernels")
            made = server.json("POST", target, self._options)
            self._target = self._sandbox._target("kernels", made["id"])
        return self

    def run_code(self, code: str, *, timeout_s: Optional[Seconds] = None) -> ExecutionResult:
        """Runs a cell. An exception in it leaves the kernel and its variables as they are."""
        if self._target is None:
            raise SandboxError("the kernel is not open", code="not_open")
        body: dict[str, Any] = {"code": code, "onTimeout": self._on_timeout}
        if timeout_s is not None:
            body["timeoutS"] = checks.seconds(timeout_s)
        return call(self._sandbox._server, self._target + "/cells", body)

    def close(self) -> None:
        target, self._target = self._target, None
        if target is not None:
            try:
                self._sandbox._server.json("DELETE", target)
            except SandboxError:
                pass  # gone with its session

    def __enter__(self) -> Kernel:
        return self.open()

    def __exit__(self, *_: object) -> None:
        self.close()


def run_code(code: str, *, language: Language = "python", **options: Any) -> ExecutionResult:
    """Runs code in a box of which nothing is left. The options are those of Sandbox."""
    sandbox = Sandbox(**options)
    if sandbox.setup:
        with sandbox:
            return sandbox.run_code(code, language=language)
    body = {**sandbox._options(), **_code(code, language)}
    return call(sandbox.server or Server(), "/v1/runCode", body, sandbox.on_stdout,
                sandbox.on_stderr)


def _open(path: Union[str, os.PathLike[str]], mode: str) -> BinaryIO:
    try:
        return open(path, mode)
    except OSError as failure:
        raise SandboxError(f"the archive: {failure}", code="archive_not_opened") from failure


def _code(code: str, language: str) -> dict[str, Any]:
    if language not in ("python", "bash", "node"):
        raise SandboxError(f"there is no language {language!r}: python, bash or node",
                           code="bad_value")
    return {"code": code, "language": language}
