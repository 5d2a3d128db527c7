# SPDX-License-Identifier: Apache-2.0
#
# driver_main: what happens before the first cell: module path, built-ins, connection, warm-up.
#
# Owns the module search path and sys.flags. Main thread only. Imports built-in modules and its own
# siblings only: standard modules in Python cost milliseconds and belong to the cell to import.
import _signal
import builtins
import posix
import sys

import driver_cell
import driver_wire as wire

__builtins__ = wire.BUILTINS

SOCKET = "/run/kernd/driver.sock"
WORKSPACE = "/workspace"


def main(library, found):
    # A test may point the driver at another socket; in a box there is only this one.
    address = sys.argv[1] if len(sys.argv) > 1 else SOCKET
    workspace = sys.argv[2] if len(sys.argv) > 2 else WORKSPACE
    prepare_path([entry for entry in found if entry != library], workspace)
    prepare_interpreter()
    names = [name for name in sys.modules if name.startswith("driver_")]
    loader = driver_cell.Loader(library, {name: sys.modules.pop(name) for name in names})
    # An interrupt belongs to a running cell; a driver that waits for one is deaf.
    usual_interrupt = _signal.getsignal(_signal.SIGINT)
    _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
    link = wire.Link(address)
    driver_cell.warm_up()
    link.send(wire.READY, b"\x01python %d.%d.%d" % sys.version_info[:3])
    request = receive(link)
    if request is None:
        return
    if request.mode == wire.MODE_KERNEL:
        loader.load("driver_kernel").run(link, loader, request, receive)
        return
    _signal.signal(_signal.SIGINT, usual_interrupt)
    driver_cell.run_once(link, loader, request, workspace)


class Request:
    """A CELL frame, taken apart. kernd wrote it: it is well-formed."""

    def __init__(self, payload):
        self.mode = payload[0]
        self.live = bool(payload[1] & wire.FLAG_LIVE)
        self.text_max = int.from_bytes(payload[2:6], "big")
        self.number = int.from_bytes(payload[6:10], "big")
        fields = {}
        at = 10
        while at < len(payload):
            end = at + 5 + int.from_bytes(payload[at + 1 : at + 5], "big")
            fields[payload[at]] = bytes(payload[at + 5 : end])
            at = end
        self.name = fields.get(wire.FIELD_NAME, b"").decode()
        self.code = fields.get(wire.FIELD_CODE, b"")
        self.stdin = fields.get(wire.FIELD_STDIN)
        self.environment = fields.get(wire.FIELD_ENVIRONMENT, b"")
        self.directory = fields.get(wire.FIELD_DIRECTORY)


def receive(link):
    """The next cell with its environment applied, None at the end of the connection."""
    frame = link.receive()
    while frame is not None and frame[0] == wire.INTERRUPT:
        link.late_interrupt()  # its cell ended before it came
        frame = link.receive()
    if frame is None or frame[0] != wire.CELL:
        return None
    request = Request(frame[1])
    for pair in request.environment.split(b"\0"):
        key, equals, value = pair.partition(b"=")
        if equals:
            posix.putenv(key, value)
            posix.environ[key] = value  # os.environ, imported or not, is a view of this
    if request.directory is not None:
        posix.chdir(request.directory)
    return request


def prepare_path(found, workspace):
    """sys.path as a plain python started in the workspace has it, without the cost of site."""
    sys.path[:] = found
    add_site_directories()
    # Last, as the interpreter does it: import lines of .pth files must not find the workspace.
    if not getattr(sys.flags, "safe_path", False):
        sys.path.insert(0, workspace)
        here = posix.getcwd()
        if here.startswith(workspace + "/"):
            sys.path.insert(0, here)


def add_site_directories():
    if exists(sys.executable.rpartition("/")[0] + "/../pyvenv.cfg"):
        import site

        site.main()
        return
    version = "python%d.%d" % sys.version_info[:2]
    home = posix.environ.get(b"HOME", b"").decode("utf-8", "surrogateescape")
    debian = sys.prefix + "/lib/python3/dist-packages"
    if exists(debian):
        local = sys.prefix + "/local/lib/" + version + "/dist-packages"
        directories = [local, debian, sys.prefix + "/lib/" + version + "/dist-packages"]
    else:
        platform = getattr(sys, "platlibdir", "lib")
        directories = [sys.prefix + "/" + platform + "/" + version + "/site-packages"]
    if home:
        directories.insert(0, home + "/.local/lib/" + version + "/site-packages")
    for directory in directories:
        add_site_directory(directory)


def exists(path):
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def add_site_directory(sitedir):
    try:
        names = posix.listdir(sitedir)
    except OSError:
        return
    if sitedir not in sys.path:
        sys.path.append(sitedir)
    for name in sorted(names):
        if name.endswith(".pth"):
            read_path_file(sitedir, name)


def read_path_file(sitedir, name):
    """One .pth file as site reads it. Its import lines look for `sitedir` in the calling frame."""
    try:
        with open(sitedir + "/" + name, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return
    for number, line in enumerate(lines, 1):
        try:
            if line.startswith(("import ", "import\t")):
                exec(line)
            elif line.strip() and not line.startswith("#"):
                path = line.rstrip()
                path = path if path.startswith("/") else sitedir + "/" + path
                if path not in sys.path and exists(path):
                    sys.path.append(path)
        except Exception as error:
            where = "%s/%s, line %d: " % (sitedir, name, number)
            print(where + repr(error), file=sys.stderr)
            return


def prepare_interpreter():
    """What site gives every program, and flags that do not tell of our -S."""
    import _sitebuiltins

    builtins.exit = _sitebuiltins.Quitter("exit", "Ctrl-D (i.e. EOF)")
    builtins.quit = _sitebuiltins.Quitter("quit", "Ctrl-D (i.e. EOF)")
    builtins.help = _sitebuiltins._Helper()
    sys.flags = plain_flags(sys.flags)


def plain_flags(real):
    """
    A copy of sys.flags with no_site off. multiprocessing and subprocess hand the flags on to the
    interpreters they start, and those must see the site-packages.
    """
    names = getattr(type(real), "__match_args__", None)  # Python 3.10
    if names is None:
        return real

    def show(self):
        return "sys.flags(" + ", ".join("%s=%r" % pair for pair in zip(names, self)) + ")"

    body = {name: property(lambda self, at=at: self[at]) for at, name in enumerate(names)}
    body.update(__slots__=(), __repr__=show, __module__="sys")
    values = [0 if name == "no_site" else getattr(real, name) for name in names]
    return type("flags", (tuple,), body)(values)
