#!/usr/bin/python3 -I
# SPDX-License-Identifier: Apache-2.0
"""Stands in for kern where there is none: takes exactly what kernd is to give, and nothing else.

Every argument and variable is looked at, in order; whatever is missing, unknown or in the wrong
place is a usage error in kern's form, which kernd then shows. If all is right, bubblewrap makes the
box: the image is the host's own files. Images are what lies in the cache directory's "known", profiles
what KERN_CONFIG names.

arguments() and variables() are pure; test_engine_kern.py holds kern_arguments.txt against them.
"""
import ctypes
import json
import os
import re
import sys
import time

PR_SET_PDEATHSIG = 1
CACHE = os.path.join(os.environ.get("XDG_CACHE_HOME", "/nonexistent"), "kern")
VARIABLES = {"HOME", "PATH", "LANG", "XDG_RUNTIME_DIR", "XDG_CACHE_HOME", "XDG_CONFIG_HOME",
             "KERN_NO_SCOPE", "KERN_ALLOW_UNCAPPED", "KERN_CONFIG", "KERN_QUIET", "KERN_SECCOMP",
             "KERN_MAX_CONCURRENT", "KERN_STARTED_FD", "HTTPS_PROXY"}
OWN_MOUNTS = ["/workspace", "/run/kernd", "/run/secrets", "/run/kernd-lib"]
IN_MEMORY = ["/tmp", "/home/sandbox"]
PROGRAM = ["/run/kernd-lib/kernd-init", "in-image"]
UNCAPPED = "1024t"


class Refused(Exception):
    """What kern says, and its exit code."""

    def __init__(self, words, code=1):
        super().__init__(words)
        self.words = words
        self.code = code


def error(words):
    return Refused(f"error: {words}\nhint: see `kern --help`")


def usage(words):
    return error(f"usage: {words}")


class Words:
    """Words that are taken from the front, each by what it must be."""

    def __init__(self, words):
        self.words = words
        self.at = 0

    def next(self):
        if self.at >= len(self.words):
            raise usage("something is missing at the end")
        self.at += 1
        return self.words[self.at - 1]

    def peek(self):
        return self.words[self.at] if self.at < len(self.words) else None

    def rest(self):
        return self.words[self.at:]

    def expect(self, *wanted):
        for word in wanted:
            found = self.next()
            if found != word:
                raise usage(f"{found} where {word} is to be")

    def value(self, flag, pattern):
        self.expect(flag)
        found = self.next()
        if not re.fullmatch(pattern, found):
            raise usage(f"{flag} {found}")
        return found

    def values(self, flag, pattern):
        found = []
        while self.peek() == flag:
            found.append(self.value(flag, pattern))
        return found

    def optional(self, flag, pattern):
        return self.value(flag, pattern) if self.peek() == flag else None


def volumes(texts):
    words = []
    for text in texts:
        parts = text.split(":")
        if len(parts) not in (2, 3) or parts[2:] not in ([], ["ro"]) or parts[0][:1] != "/":
            raise usage(f"-v {text}")
        words += ["--ro-bind" if parts[2:] else "--bind", parts[0], parts[1]]
    return words


def own_mounts(given):
    words = volumes(given.values("-v", r"[^\n]+"))
    if words[2::3] != OWN_MOUNTS or words[3::3] != ["--ro-bind"] * 3:
        raise usage(f"kernd's own mounts are not {words}")
    return words


def check_memory(given, in_memory):
    """What lies in memory is capped as the memory is."""
    memory = given.value("--memory", r"[1-9][0-9]*|" + UNCAPPED)
    size = "" if memory == UNCAPPED else f":{memory}"
    if in_memory != [path + size for path in IN_MEMORY]:
        raise usage(f"--tmpfs {in_memory} with --memory {memory}")


def network(given):
    domains = given.optional("--egress-allow", r"[a-z0-9.-]+(,[a-z0-9.-]+)*")
    shared = domains is None and given.value("--net", "host|none") == "host"
    return [] if shared else ["--unshare-net"]


def check_profiles(given, profiles):
    while re.match(r"v(cpu|gpio|disk):", given.peek() or ""):
        found = given.next()
        if found not in profiles:
            raise error(f"config: no [[{found.split(':')[0]}]] profile of that name in kern.toml")


def arguments(words, images, profiles):
    """Those of `kern box`, as far as bubblewrap has words for them."""
    given = Words(words)
    given.expect("box")
    name = given.next()
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", name):
        raise usage(f"box {name}")
    image = given.value("--image", r"[a-z0-9][^ ]*")
    if image != "scratch" and image not in images and image.removesuffix(":latest") not in images:
        raise error(f"image '{image}' is not usable locally and `--pull never` was given")
    given.expect("--ro", "--pull", "never", "--no-uid-range", "--user", "0:0", "--stop-timeout", "0")
    made = ["--hostname", given.value("--hostname", r"[a-z]+")]
    made += ["--chdir", given.value("--workdir", "/workspace")]
    made += own_mounts(given)
    in_memory = given.values("--tmpfs", r"[^\n]+")
    for path in IN_MEMORY:
        made += ["--tmpfs", path]
    given.values("--cap-drop", r"(CAP_)?[A-Z_0-9]+")
    given.optional("--security-profile", "untrusted")
    apparmor = given.optional("--apparmor", r"[A-Za-z0-9_.][A-Za-z0-9_.-]*")
    check_memory(given, in_memory)
    given.optional("--cpus", r"[0-9]+(\.[0-9]+)?")
    given.value("--pids-limit", r"[1-9][0-9]*")
    made += network(given)
    check_profiles(given, profiles)
    made += volumes(given.values("-v", r"[^\n]+"))
    given.expect("--")
    if given.rest() != PROGRAM:
        raise usage(f"the program {given.rest()}")
    if apparmor is not None:
        raise Refused(f"kern: sandbox setup failed: --apparmor {apparmor}: is it loaded?", 125)
    return [*made, "--remount-ro", "/", "--", *PROGRAM]


def variables(given):
    """Refuses what is no business of kern's, and what is missing."""
    for name in sorted(given):
        if name not in VARIABLES and name not in ("LC_CTYPE", "PWD"):
            raise usage(f"the variable {name}")
    for name in ("KERN_NO_SCOPE", "KERN_ALLOW_UNCAPPED", "KERN_QUIET"):
        if given.get(name) != "1":
            raise usage(f"{name} is not 1")
    if not given.get("XDG_RUNTIME_DIR", "").endswith("/engine"):
        raise usage("the runtime directory is not private")


def known_images():
    try:
        with open(os.path.join(CACHE, "known"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return ["python:3.12-slim", "node:20-slim", "alpine:latest"]


def known_profiles():
    path = os.environ.get("KERN_CONFIG")
    if path is None:
        return []
    import tomllib
    with open(path, "rb") as file:
        return [f"{kind}:{row['name']}" for kind, rows in tomllib.load(file).items() for row in rows]


def system():
    words = ["--ro-bind", "/usr", "/usr", "--ro-bind", "/etc", "/etc", "--proc", "/proc",
             "--dev", "/dev", "--tmpfs", "/dev/shm"]
    for path in ("/bin", "/sbin", "/lib", "/lib64"):
        if os.path.islink(path):
            words += ["--symlink", os.readlink(path), path]
        elif os.path.isdir(path):
            words += ["--ro-bind", path, path]
    return words


def add_known(names):
    os.makedirs(CACHE, exist_ok=True)
    images = sorted({*known_images(), *names})
    with open(os.path.join(CACHE, "known"), "w", encoding="utf-8") as file:
        json.dump(images, file)


def load(given):
    if given[:1] != ["-i"] or len(given) != 2:
        raise usage("load -i FILE")
    import tarfile
    try:
        with tarfile.open(given[1]) as archive:
            names = json.load(archive.extractfile("manifest.json"))[0]["RepoTags"]
    except (OSError, KeyError, ValueError, tarfile.TarError):
        raise error("oci: not a docker-save archive (no manifest.json)") from None
    add_known(names)
    for name in names:
        print(f"loaded '{name}'")


def pull(given):
    """Says on its way what kern says; "slow/..." never comes, "gone/..." does not exist."""
    if len(given) != 1 or given[0].startswith("-"):
        raise usage("pull IMAGE")
    variables(os.environ)
    name = given[0]
    sys.stderr.write(f"→ image '{name}' not cached - pulling once\n→ resolving {name}\n")
    if name.startswith("slow/"):
        time.sleep(3600)
    if name.startswith("gone/"):
        raise error("curl failed: exit Some(22): 404")
    sys.stderr.write("→ layer 1/1\n")
    add_known([name])
    print(f"pulled {name}")


def box(given):
    # kern says more than why, and also when all is well: a warning before, a hint behind.
    sys.stderr.write("kern: warning: this is a stand-in\n")
    variables(os.environ)
    words = arguments(given, known_images(), known_profiles())
    # kern tells this when the box has ended: that it came to its end, and that a cap was in force.
    # Here nobody is left by then, and the pipe keeps it.
    os.write(int(os.environ["KERN_STARTED_FD"]), b"\1\1")
    os.set_inheritable(int(os.environ["KERN_STARTED_FD"]), False)
    # kern ends with kernd by the death signal that it gets from there. One that strikes bwrap
    # before its uid map leaves a child of it waiting for ever, so bwrap asks for its own.
    ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
    os.execv("/usr/bin/bwrap", [
        "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
        "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent", "--new-session",
        "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME",
        "/root", "--setenv", "FROM_IMAGE", "1", "--cap-drop", "ALL", "--uid", "0", "--gid",
        "0", *system(), *words])


def main():
    order = sys.argv[1:2]
    if order == ["--version"]:
        print("kern 0.0.0-stand-in")
    elif order == ["images"]:
        print(json.dumps([{"image": name, "size_bytes": 1000, "pulled": 1700000000,
                           "dangling": False} for name in known_images()]))
    elif order == ["load"]:
        load(sys.argv[2:])
    elif order == ["pull"]:
        pull(sys.argv[2:])
    else:
        box(sys.argv[1:])


if __name__ == "__main__":
    try:
        main()
    except Refused as refused:
        sys.stderr.write(refused.words + "\n")
        sys.exit(refused.code)
