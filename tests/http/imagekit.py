# SPDX-License-Identifier: Apache-2.0
"""An OCI image of this host's own programs, in the form that `docker save` writes.

What tests need of an image (sh, bash, coreutils, python3 with its packages, node, npm) is on the machine that runs them:
the image is those files, the libraries that they load and a few of /etc. Nothing is fetched.

    python3 imagekit.py FILE [NAME ...]     writes the archive, under these names

cache(kern, user) has a real kern load it, once for all tests of this host, and tells where.
"""
import fcntl
import hashlib
import io
import json
import os
import pwd
import re
import subprocess
import sys
import tarfile
import tempfile

NAMES = ("python:3.12-slim", "node:20-slim", "alpine:latest")
PROGRAMS = ("bash", "sh", "env", "true", "false", "echo", "cat", "ls", "cp", "mv", "rm", "ln",
            "mkdir", "mkfifo", "rmdir", "touch", "chmod", "stat", "sleep", "seq", "head", "tail",
            "wc", "sort", "tr", "cut", "dd", "date", "id", "uname", "tty", "nproc", "yes", "tee",
            "printf", "printenv", "pwd", "basename", "dirname", "readlink", "realpath", "sha256sum",
            "base64", "timeout", "nohup", "setsid", "kill", "grep", "sed", "awk", "find", "xargs",
            "ps", "df", "du", "mount", "unshare", "hostname", "python3", "node", "perl", "truncate",
            "expr", "test", "od", "mktemp", "nice", "ulimit", "whoami", "tar", "gzip", "diff",
            "sync", "split", "uniq", "chown", "mknod", "getent", "ldd", "strace")
DIRECTORIES = ("dev", "proc", "sys", "run", "tmp", "root", "home/sandbox", "workspace", "var/tmp",
               "run/kernd", "run/kernd-lib", "run/secrets", "etc", "usr/local/bin")
ETC = {
    "etc/passwd": "root:x:0:0:root:/root:/bin/sh\nnobody:x:65534:65534:nobody:/:/usr/sbin/nologin\n",
    "etc/group": "root:x:0:\nnogroup:x:65534:\n",
    "etc/hosts": "127.0.0.1 localhost\n",
    "etc/nsswitch.conf": "passwd: files\ngroup: files\nhosts: files dns\n",
}
# pip, and numpy, pandas and matplotlib with what they import, as far as the machine has them.
PACKAGES = tuple(f"/usr/lib/python3/dist-packages/{name}" for name in (
    "pip", "setuptools", "wheel", "numpy", "pandas", "matplotlib", "mpl_toolkits", "PIL", "certifi",
    "contourpy", "cycler.py", "dateutil", "defusedxml", "fontTools", "kiwisolver", "packaging",
    "pyparsing", "pytz", "six.py"))
AUTHORITIES = "/etc/ssl/certs/ca-certificates.crt"  # whose registries npm believes
# As it is run, whatever an editor makes of the file meanwhile.
with open(__file__, encoding="utf-8") as source:
    SOURCE = source.read()
DATA = ("/usr/share/matplotlib", "/etc/matplotlibrc", "/usr/share/zoneinfo", AUTHORITIES)
SEARCH = ("/usr/bin", "/bin", "/usr/sbin", "/sbin")
# Of python's library: not what no test imports, and no compiled files (they come back by themselves).
LEFT_OUT = {"__pycache__", "test", "tests", "idlelib", "lib2to3", "ensurepip", "pydoc_data",
            "dist-packages", "config-3.11-x86_64-linux-gnu"}


def find(name):
    return next((os.path.join(place, name) for place in SEARCH
                 if os.path.exists(os.path.join(place, name))), None)


def libraries(path):
    """What the dynamic linker would load, by its own word; nothing for scripts and static ones."""
    said = subprocess.run(["ldd", path], capture_output=True, text=True, check=False).stdout
    return set(re.findall(r"(/[^ ]+) \(0x", said))


def python_library():
    code = "import sys, sysconfig; print(sysconfig.get_path('stdlib'), sys.version_info[:2])"
    said = subprocess.run([find("python3"), "-c", code], capture_output=True, text=True, check=True)
    return said.stdout.split()[0]


def npm_library(npm):
    """The directory that npm loads its code from: its own, or that of Debian's packages, which share theirs."""
    place = os.path.dirname(os.path.realpath(npm))
    while os.path.basename(place) != "npm":
        place = os.path.dirname(place)
    return place if os.path.basename(os.path.dirname(place)) == "node_modules" else os.path.dirname(place)


def files_under(root):
    """The file of that name, or those of the directory."""
    if os.path.isfile(root):
        yield root
    for parent, folders, files in os.walk(root):
        folders[:] = [folder for folder in folders if folder not in LEFT_OUT]
        yield from (os.path.join(parent, name) for name in files)


class Layer:
    """A tar archive in the making; each path comes once, with the directories above it."""

    def __init__(self, file):
        self.tar = tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT)
        self.seen = set()

    def _add(self, member, data=None):
        if member.name in self.seen:
            return
        self.directory(os.path.dirname(member.name))
        self.seen.add(member.name)
        member.uid = member.gid = 0
        member.mtime = 0
        self.tar.addfile(member, data)

    def directory(self, name):
        if name and name not in self.seen:
            member = tarfile.TarInfo(name)
            member.type = tarfile.DIRTYPE
            member.mode = 0o1777 if name in ("tmp", "var/tmp") else 0o755
            self._add(member)

    def text(self, name, content):
        data = content.encode()
        member = tarfile.TarInfo(name)
        member.size = len(data)
        member.mode = 0o644
        self._add(member, io.BytesIO(data))

    def link(self, name, target):
        member = tarfile.TarInfo(name)
        member.type = tarfile.SYMTYPE
        member.linkname = target
        member.mode = 0o777
        self._add(member)

    def file(self, path, name=None):
        """The file that path leads to, under name (with /usr for what merged systems have there)."""
        real = os.path.realpath(path)
        name = (name or path).lstrip("/")
        name = name if name.startswith(("usr/", "etc/")) else "usr/" + name
        if not os.access(real, os.R_OK):
            return
        with open(real, "rb") as data:
            member = tarfile.TarInfo(name)
            member.size = os.fstat(data.fileno()).st_size
            member.mode = 0o755 if os.access(real, os.X_OK) else 0o644
            self._add(member, data)


def write_layer(file):
    layer = Layer(file)
    for name in ("bin", "sbin", "lib", "lib64"):
        layer.link(name, f"usr/{name}")
    for name in DIRECTORIES:
        layer.directory(name)
    for name, content in ETC.items():
        layer.text(name, content)
    needed = set()
    for name in PROGRAMS:
        path = find(name)
        if path:
            layer.file(path, f"/usr/bin/{name}")
            needed |= libraries(path)
    roots = [python_library(), *PACKAGES, *DATA]
    npm = find("npm")
    if npm:
        layer.link("usr/bin/npm", os.path.realpath(npm))
        roots.append(npm_library(npm))
    for path in (path for root in roots for path in files_under(root)):
        layer.file(path)
        if path.endswith(".so"):
            needed |= libraries(path)
    for path in sorted(needed):
        layer.file(path)
    layer.tar.close()


def tiny(name):
    """The bytes of an archive whose image holds one text."""
    layer = io.BytesIO()
    made = Layer(layer)
    made.text("etc/tiny", name)
    made.tar.close()
    archive = io.BytesIO()
    _pack(archive, [name], layer.getvalue())
    return archive.getvalue()


def _pack(file, names, layer):
    """The archive around a layer, which is bytes or a path."""
    config = {"architecture": "amd64", "os": "linux",
              "config": {"Env": ["PATH=/usr/local/bin:/usr/bin:/bin:/usr/sbin:/sbin",
                                 "LANG=C.UTF-8"], "Cmd": ["sh"]},
              "rootfs": {"type": "layers", "diff_ids": []}}
    manifest = [{"Config": "config.json", "RepoTags": list(names), "Layers": ["layer.tar"]}]
    with tarfile.open(fileobj=file, mode="w", format=tarfile.GNU_FORMAT) as archive:
        parts = [("manifest.json", json.dumps(manifest).encode()),
                 ("config.json", json.dumps(config).encode())]
        if isinstance(layer, bytes):
            parts.append(("layer.tar", layer))
        else:
            archive.add(layer, "layer.tar")
        for name, data in parts:
            member = tarfile.TarInfo(name)
            member.size = len(data)
            archive.addfile(member, io.BytesIO(data))


def write(path, names=NAMES):
    """Writes the whole archive: one layer, one image, these names."""
    layer_path = path + ".layer"
    with open(layer_path, "wb") as file:
        write_layer(file)
    with open(path, "wb") as file:
        _pack(file, names, layer_path)
    os.unlink(layer_path)


def _key(kern):
    """Differs when kern, this file or the host's interpreters do."""
    parts = [kern, SOURCE]
    for path in (kern, find("python3"), find("node"), find("bash")):
        status = os.stat(path) if path else None
        parts.append(f"{path} {status and (status.st_size, status.st_mtime_ns)}")
    return hashlib.sha256("\n".join(parts).encode()).hexdigest()[:16]


def cache(kern, user):
    """A directory for --image-cache that holds the image under all of NAMES."""
    place = os.path.join(tempfile.gettempdir(), f"kernd-images-{user or os.getuid()}-{_key(kern)}")
    os.makedirs(place, mode=0o700, exist_ok=True)
    account = pwd.getpwnam(user) if user else None
    if account:
        os.chown(place, account.pw_uid, account.pw_gid)
    with open(place + ".lock", "w", encoding="ascii") as lock:
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = os.path.join(place, "done")
        if os.path.exists(done):
            return place
        archive = os.path.join(place, "image.tar")
        write(archive)
        os.chmod(archive, 0o644)
        who = {"user": account.pw_uid, "group": account.pw_gid, "extra_groups": []} if account else {}
        with tempfile.TemporaryDirectory() as runtime:
            if account:
                os.chown(runtime, account.pw_uid, account.pw_gid)
            subprocess.run([kern, "load", "-i", archive], check=True, capture_output=True, cwd="/",
                           env={"PATH": os.environ["PATH"], "XDG_CACHE_HOME": place,
                                "XDG_RUNTIME_DIR": runtime}, **who)
        os.unlink(archive)
        with open(done, "w", encoding="ascii"):
            pass
    return place


if __name__ == "__main__":
    write(sys.argv[1], sys.argv[2:] or NAMES)
