#!/usr/bin/python3 -I
# SPDX-License-Identifier: Apache-2.0
"""Stands in for kern where there is none: takes exactly what kernd is to give, and nothing else.

Every argument and variable is looked at, in order; whatever is missing, unknown or in the wrong
place is a usage error in kern's form, which kernd then shows. If all is right, bubblewrap makes the
box: the image is the host's own files. Images are what lies in the cache directory's "known".
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
             "KERN_MAX_CONCURRENT", "HTTPS_PROXY"}


def fail(words, code=1):
    # kern says more than why: a warning before, a hint behind.
    sys.stderr.write(f"kern: warning: this is a stand-in\nerror: {words}\nhint: see `kern --help`\n")
    sys.exit(code)


def usage(words):
    fail(f"usage: {words}")


class Arguments:
    def __init__(self, words):
        self.words = words
        self.at = 0

    def next(self):
        if self.at >= len(self.words):
            usage("something is missing at the end")
        self.at += 1
        return self.words[self.at - 1]

    def peek(self):
        return self.words[self.at] if self.at < len(self.words) else None

    def expect(self, *wanted):
        for word in wanted:
            found = self.next()
            if found != word:
                usage(f"{found} where {word} is to be")

    def value(self, flag, pattern):
        self.expect(flag)
        found = self.next()
        if not re.fullmatch(pattern, found):
            usage(f"{flag} {found}")
        return found

    def values(self, flag, pattern):
        found = []
        while self.peek() == flag:
            found.append(self.value(flag, pattern))
        return found


def known_images():
    try:
        with open(os.path.join(CACHE, "known"), encoding="utf-8") as file:
            return json.load(file)
    except FileNotFoundError:
        return ["python:3.12-slim", "node:20-slim", "alpine:latest"]


def volume(words, text):
    parts = text.split(":")
    if len(parts) not in (2, 3) or parts[2:] not in ([], ["ro"]) or parts[0][:1] != "/":
        usage(f"-v {text}")
    words += ["--ro-bind" if parts[2:] else "--bind", parts[0], parts[1]]


def parse(given):
    """The rest of bubblewrap's arguments."""
    arguments, words = Arguments(given), []
    arguments.expect("box")
    name = arguments.next()
    if not re.fullmatch(r"[A-Za-z0-9_][A-Za-z0-9_.-]{0,63}", name):
        usage(f"box {name}")
    image = arguments.value("--image", r"[^ ]+")
    if image != "scratch" and image not in known_images() + [f"{i}:latest" for i in known_images()]:
        fail(f"image '{image}' is not usable locally and `--pull never` was given")
    arguments.expect("--ro", "--pull", "never", "--no-uid-range", "--user", "0:0",
                     "--stop-timeout", "0")
    words += ["--hostname", arguments.value("--hostname", r"[a-z]+")]
    words += ["--chdir", arguments.value("--workdir", "/workspace")]
    mounts = arguments.values("-v", r"[^\n]+")
    if [text.split(":")[1] for text in mounts] != ["/workspace", "/run/kernd", "/run/secrets",
                                                   "/run/kernd-lib"]:
        usage("kernd's own mounts")
    for text in mounts:
        volume(words, text)
    tmpfs = arguments.values("--tmpfs", r"/[a-z/]+(:[1-9][0-9]*)?")
    for text in tmpfs:
        words += ["--tmpfs", text.split(":")[0]]
    arguments.values("--cap-drop", r"(CAP_)?[A-Z_0-9]+")
    if arguments.peek() == "--security-profile":
        arguments.value("--security-profile", "untrusted")
    if arguments.peek() == "--apparmor":
        profile = arguments.value("--apparmor", r"[A-Za-z0-9_.-]+")
        sys.stderr.write(f"kern: sandbox setup failed: --apparmor {profile}: is it loaded?\n")
        sys.exit(125)
    arguments.value("--memory", r"[1-9][0-9]*t?")
    if arguments.peek() == "--cpus":
        arguments.value("--cpus", r"[0-9.]+")
    arguments.value("--pids-limit", r"[1-9][0-9]*")
    if arguments.peek() == "--egress-allow":
        arguments.value("--egress-allow", r"[a-z0-9.,-]+")
        words += ["--unshare-net"]
    elif arguments.value("--net", "host|none") == "none":
        words += ["--unshare-net"]
    while re.match(r"v(cpu|gpio|disk):", arguments.peek() or ""):
        fail(f"config: no [[{arguments.next().split(':')[0]}]] profile of that name in kern.toml")
    for text in arguments.values("-v", r"[^\n]+"):
        volume(words, text)
    arguments.expect("--")
    program = arguments.words[arguments.at:]
    if program != ["/run/kernd-lib/kernd-init", "in-image"]:
        usage(f"the program {program}")
    return words + ["--remount-ro", "/", "--", *program]


def check_environment():
    for name in os.environ:
        if name not in VARIABLES and name not in ("LC_CTYPE", "PWD"):
            usage(f"the variable {name}")
    for name in ("KERN_NO_SCOPE", "KERN_ALLOW_UNCAPPED"):
        if os.environ.get(name) != "1":
            usage(f"{name} is not 1")
    if not os.environ.get("XDG_RUNTIME_DIR", "").endswith("/engine"):
        usage("the runtime directory is not private")


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
        usage("load -i FILE")
    import tarfile
    try:
        with tarfile.open(given[1]) as archive:
            names = json.load(archive.extractfile("manifest.json"))[0]["RepoTags"]
    except (OSError, KeyError, ValueError, tarfile.TarError):
        fail("oci: not a docker-save archive (no manifest.json)")
    add_known(names)
    for name in names:
        print(f"loaded '{name}'")


def pull(given):
    """Says on its way what kern says; "slow/..." never comes, "gone/..." does not exist."""
    if len(given) != 1 or given[0].startswith("-"):
        usage("pull IMAGE")
    check_environment()
    name = given[0]
    sys.stderr.write(f"→ image '{name}' not cached - pulling once\n→ resolving {name}\n")
    if name.startswith("slow/"):
        time.sleep(3600)
    if name.startswith("gone/"):
        fail("curl failed: exit Some(22): 404")
    sys.stderr.write("→ layer 1/1\n")
    add_known([name])
    print(f"pulled {name}")


def main():
    check = sys.argv[1:2]
    if check == ["--version"]:
        print("kern 0.0.0-stand-in")
    elif check == ["images"]:
        print(json.dumps([{"image": name, "size_bytes": 1000, "pulled": 1700000000,
                           "dangling": False} for name in known_images()]))
    elif check == ["load"]:
        load(sys.argv[2:])
    elif check == ["pull"]:
        pull(sys.argv[2:])
    else:
        check_environment()
        words = parse(sys.argv[1:])
        # kern ends with kernd by the death signal that it gets from there. One that strikes bwrap
        # before its uid map leaves a child of it waiting for ever, so bwrap asks for its own.
        ctypes.CDLL(None).prctl(PR_SET_PDEATHSIG, 0, 0, 0, 0)
        os.execv("/usr/bin/bwrap", [
            "bwrap", "--unshare-user", "--unshare-pid", "--unshare-ipc", "--unshare-uts",
            "--unshare-cgroup-try", "--as-pid-1", "--die-with-parent", "--new-session",
            "--clearenv", "--setenv", "PATH", "/usr/local/bin:/usr/bin:/bin", "--setenv", "HOME",
            "/root", "--setenv", "FROM_IMAGE", "1", "--cap-drop", "ALL", "--uid", "0", "--gid",
            "0", *system(), *words])


main()
