# SPDX-License-Identifier: Apache-2.0
"""What calls give: results, faults, files, and the errors that are raised."""
from __future__ import annotations

import base64
import json
from dataclasses import dataclass, field
from typing import Any, Literal, Mapping, Optional


class SandboxError(RuntimeError):
    """
    The program's own mistake, or a server that can't: a bad option, a path outside the workspace, a
    box that could not start. What the sandbox did to running code is `ExecutionResult.fault`.

    code: stable, made for programs (None where no server said it); remediation: what can be done.
    """

    def __init__(self, message: str, *, code: Optional[str] = None, status: Optional[int] = None,
                 remediation: str = "") -> None:
        super().__init__(f"{message}. {remediation}" if remediation else message)
        self.code = code
        self.status = status
        self.remediation = remediation


class MountRefused(SandboxError):
    """A directory of this host that must not be seen by a box, or a target it must not cover."""


def error_from(problem: Mapping[str, Any]) -> SandboxError:
    """The exception for a problem (RFC 9457), which is the server's word, or that of an event."""
    fields = "; ".join(f"{entry.get('pointer')}: {entry.get('message')}"
                       for entry in problem.get("errors") or [])
    message = str(problem.get("detail") or problem.get("title") or "the server refused")
    kind = MountRefused if problem.get("code") == "mount_refused" else SandboxError
    return kind(f"{message} ({fields})" if fields and fields not in message else message,
                code=problem.get("code"), status=problem.get("status"),
                remediation=str(problem.get("remediation") or ""))


@dataclass
class SandboxFault:
    """What the sandbox did to the code, by evidence. A program that fails by itself has none."""

    type: Literal["timeout", "oom", "escape_blocked", "killed", "startup_failed", "output_limit",
                  "disk_full", "cancelled", "lost"]
    message: str
    evidence: Optional[str] = None


@dataclass
class FileInfo:
    """A file of the workspace, and what a call did to it."""

    path: str
    size: int
    change: Literal["created", "modified"] = "created"


@dataclass
class Result:
    """
    A rich result: the value of the last expression, what display() was given, a figure. `data` has
    one text for each MIME type it comes in; images are base64 there (png and jpeg give the bytes).
    """

    data: dict[str, str]
    is_main: bool = False

    @property
    def text(self) -> Optional[str]:
        return self.data.get("text/plain")

    @property
    def html(self) -> Optional[str]:
        return self.data.get("text/html")

    @property
    def markdown(self) -> Optional[str]:
        return self.data.get("text/markdown")

    @property
    def svg(self) -> Optional[str]:
        return self.data.get("image/svg+xml")

    @property
    def latex(self) -> Optional[str]:
        return self.data.get("text/latex")

    @property
    def json(self) -> Optional[str]:
        return self.data.get("application/json")

    @property
    def png(self) -> Optional[bytes]:
        return self._image("image/png")

    @property
    def jpeg(self) -> Optional[bytes]:
        return self._image("image/jpeg")

    def formats(self) -> list[str]:
        return list(self.data)

    def _image(self, media_type: str) -> Optional[bytes]:
        text = self.data.get(media_type)
        return None if text is None else base64.b64decode(text)


@dataclass
class ExecutionResult:
    """
    The outcome of one call. `fault` tells whether the sandbox acted; `exit_code` and the output are
    the program's own (-1: it has no exit code).
    """

    stdout: str
    stderr: str
    exit_code: int
    duration_ms: int
    fault: Optional[SandboxFault] = None
    files: list[FileInfo] = field(default_factory=list)
    truncated: bool = False
    results: list[Result] = field(default_factory=list)
    deleted: list[str] = field(default_factory=list)  # paths of the workspace that are gone
    id: Optional[str] = None  # of the execution, for GET /v1/executions/{id}
    usage: dict[str, Any] = field(default_factory=dict)

    @property
    def success(self) -> bool:
        return self.exit_code == 0 and self.fault is None

    def __bool__(self) -> bool:
        return self.success


def result_from(members: Mapping[str, Any]) -> ExecutionResult:
    """The result that a JSON object of the API describes."""
    fault = members.get("fault")
    exit_code = members.get("exitCode")
    changed = members.get("files") or []
    return ExecutionResult(
        stdout=members.get("stdout") or "", stderr=members.get("stderr") or "",
        exit_code=-1 if exit_code is None else exit_code,
        duration_ms=members.get("durationMs") or 0,
        fault=fault and SandboxFault(fault["type"], fault["message"], fault.get("evidence")),
        files=[FileInfo(file["path"], file["size"], file["change"]) for file in changed
               if file["change"] != "deleted" and not in_dependencies(file["path"])],
        truncated=bool(members.get("truncated")),
        results=[Result(texts_of(entry["data"]), bool(entry.get("isMain")))
                 for entry in members.get("results") or []],
        deleted=[file["path"] for file in changed if file["change"] == "deleted"],
        id=members.get("id"), usage=dict(members.get("usage") or {}))


def texts_of(data: Mapping[str, Any]) -> dict[str, str]:
    """JSON types are JSON in the API and text here."""
    return {media_type: value if isinstance(value, str) and "json" not in media_type
            else json.dumps(value, ensure_ascii=False)
            for media_type, value in data.items()}


def in_dependencies(path: str) -> bool:
    """What setup installed is no file of the program's."""
    return ".deps" in path.split("/")
