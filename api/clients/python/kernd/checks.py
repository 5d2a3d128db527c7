# SPDX-License-Identifier: Apache-2.0
"""
What is refused before a server is asked, so that a mistake shows where it was made. The server checks
all of it, and more, again.
"""
from __future__ import annotations

import math
import os
import posixpath
import re
from typing import Any, Iterable, Mapping, Sequence

from .results import MountRefused, SandboxError

# \Z, not $: that also matches before a newline at the end.
PROFILE = re.compile(r"(?:vcpu|vgpio|vdisk):[A-Za-z0-9][A-Za-z0-9._-]*\Z")
DOMAIN = re.compile(r"(?=.{1,253}\Z)(?:[A-Za-z0-9](?:[A-Za-z0-9-]{0,61}[A-Za-z0-9])?\.)+"
                    r"[A-Za-z]{2,63}\Z")
CAPABILITY = re.compile(r"(?=.{1,32}\Z)(?:CAP_)?[A-Z][A-Z0-9]*(?:_[A-Z0-9]+)*\Z")
APPARMOR = re.compile(r"[A-Za-z0-9_.][A-Za-z0-9_.-]{0,127}\Z")

PRIVATE_SOURCES = {"/", "/etc", "/root", "/boot", "/proc", "/sys", "/dev", "/var/run/docker.sock",
                   "/run/docker.sock"}
ESSENTIAL_TARGETS = {"/", "/proc", "/sys", "/dev"}


def seconds(value: Any) -> float:
    """A time limit that was given."""
    if isinstance(value, bool) or not isinstance(value, (int, float)) or not value > 0 \
            or math.isinf(value):
        raise SandboxError("timeout_s must be a number of seconds above 0", code="bad_value")
    return value


def tokens(name: str, values: Any, pattern: re.Pattern[str]) -> list[str]:
    """The words of an option that takes a list of them."""
    if isinstance(values, str) or not isinstance(values, Iterable):
        raise SandboxError(f"{name} takes a list of words, not one: [{values!r}]", code="bad_value")
    listed = list(values)
    for value in listed:
        token(name, value, pattern)
    return listed


def token(name: str, value: Any, pattern: re.Pattern[str]) -> str:
    if not isinstance(value, str) or not pattern.match(value):
        raise SandboxError(f"{value!r} does not fit {name}", code="bad_value")
    return value


def variables(env: Mapping[str, str]) -> dict[str, str]:
    for name, value in env.items():
        if not isinstance(name, str) or not isinstance(value, str) or "\0" in name + value:
            raise SandboxError(f"env: {name!r} must be a text without NUL", code="bad_value")
    return dict(env)


def mounts(given: Mapping[str, Any]) -> dict[str, list[str]]:
    """{source: target} and {source: (target, mode)}, as the API has them."""
    checked = {}
    for source, spec in given.items():
        target, mode = (spec, "rw") if isinstance(spec, str) else _pair(spec)
        _check_source(source)
        _check_target(target)
        checked[source] = [target, mode]
    return checked


def command(given: Any) -> list[str]:
    if isinstance(given, (str, bytes)):
        raise SandboxError('run() takes a list, not a text: run(["sh", "-c", "..."])',
                           code="bad_value")
    words = list(given) if isinstance(given, Sequence) else []
    if not words or not all(isinstance(word, str) and "\0" not in word for word in words):
        raise SandboxError("run() takes a list of texts without NUL, at least one",
                           code="bad_value")
    return words


def path(given: str) -> str:
    """A path of the workspace, without the detours that a URL can't have."""
    short = posixpath.normpath(given)
    if given.startswith("/") and not short.startswith("/workspace/") or short in ("", ".", "..") \
            or short.startswith("../") or "\0" in given:
        raise SandboxError(f"{given!r} is no path within the workspace", code="bad_path")
    return short.removeprefix("/workspace/")


def _pair(spec: Any) -> tuple[str, str]:
    if not isinstance(spec, (tuple, list)) or len(spec) != 2 or spec[1] not in ("ro", "rw"):
        raise MountRefused(f"{spec!r} is neither a target nor (target, 'ro' or 'rw')")
    return spec[0], spec[1]


def _check_source(source: Any) -> None:
    if not isinstance(source, str) or not os.path.isabs(source):
        raise MountRefused(f"the source of a mount must be absolute: {source!r}")
    real = os.path.realpath(source)
    if not os.path.exists(real):
        raise MountRefused(f"the source of a mount does not exist: {source!r}")
    home = os.path.realpath(os.path.expanduser("~"))
    if source in PRIVATE_SOURCES or real in PRIVATE_SOURCES or real == home:
        raise MountRefused(f"a box must not see {source!r}")


def _check_target(target: Any) -> None:
    if not isinstance(target, str) or not os.path.isabs(target) or ".." in target.split("/"):
        raise MountRefused(f"the target of a mount must be absolute, without '..': {target!r}")
    if "/" + "/".join(part for part in target.split("/") if part not in ("", ".")) \
            in ESSENTIAL_TARGETS:
        raise MountRefused(f"a mount must not cover {target!r}")
