# SPDX-License-Identifier: Apache-2.0
#
# driver_main: what happens before the first cell: module path, built-ins, connection, warm-up.
#
# Owns the module search path and sys.flags. Main thread only. Imports built-in modules and its own
# siblings only: standard modules in Python cost milliseconds and belong to the cell to import.
import _frozen_importlib as importlib_core
import _signal
import _thread
import builtins
import gc
import posix
import sys

import driver_cell
import driver_source
import driver_wire as wire

__builtins__ = wire.BUILTINS

to_number = wire.to_number

SOCKET = "/run/kernd/driver.sock"
WORKSPACE = "/workspace"
SCRIPT = "/run/kernd/cell.py"  # what most cells of one process are called (program.c)


def main(library, found):
    # A test may point the driver at another socket; in a box there is only this one.
    arguments, preload = split_arguments(sys.argv[1:])
    address = arguments[0] if arguments else SOCKET
    workspace = arguments[1] if len(arguments) > 1 else WORKSPACE
    prepared = Prepared(library)
    link = wire.Link(wire.connect(address), posix.getpid())
    if not preload:
        # What is left to do takes a millisecond, in which kernd has something to do, too. A cell
        # that comes meanwhile waits, and so does its interrupt.
        greet(link)
    prepared.finish(found, workspace)
    if preload:
        prepared.preload(preload, workspace)
        greet(link)
    driver_cell.warm_up()
    # What is there now stays to the end: no collection needs to look at it again, least of all the
    # last one, which would cost a millisecond.
    gc.freeze()
    prepared.serve(link)


def greet(link):
    link.send(wire.READY, greeting())


def greeting():
    """Payload of a READY frame."""
    return b"\x01python %d.%d.%d" % sys.version_info[:3]


def cell_of_file(name):
    """Payload of a CELL frame for the code in this file."""
    name = name.encode()
    return bytes((wire.MODE_ONCE, *bytes(9), wire.FIELD_NAME)) + len(name).to_bytes(4, "big") + name


class Prepared:
    """An interpreter as cells find it."""

    def __init__(self, library):
        # An interrupt belongs to a running cell; a driver that waits for one is deaf.
        self._usual_interrupt = _signal.getsignal(_signal.SIGINT)
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)
        self._library = library
        self._runner = None

    def finish(self, found, workspace):
        prepare_path([entry for entry in found if entry != self._library], workspace)
        prepare_interpreter()
        names = [name for name in sys.modules if name.startswith("driver_")]
        siblings = {name: sys.modules.pop(name) for name in names}
        self._loader = driver_cell.Loader(self._library, siblings)

    def preload(self, names, workspace):
        if names:
            self._loader.load("driver_preload").run(names, workspace)

    def prepare_runner(self, link, script):
        """What runs the cell of this name, ahead of it: so that less is left to be made in a fork."""
        self._runner = driver_cell.Runner(link, self._loader)
        self._runner.be_script(script)

    def rehearse(self, link):
        """Serves the cell that is on its way. Afterwards there is no runner."""
        self.serve(link)
        _signal.signal(_signal.SIGINT, _signal.SIG_IGN)

    def touch(self):
        """As with a cell that does nothing, and is not the last."""
        request = Request(cell_of_file(SCRIPT))
        set_environment(request.environment)
        driver_source.read(self._library + "/driver.py")
        self._runner.attempt(str, "pass\n", request.name)
        self._runner.finish_cell()

    def serve(self, link):
        """Cells, until the end of the process or of the connection. kernd has been greeted."""
        request = receive(link)
        if request is None:
            return
        runner, self._runner = self._runner, None  # nothing of the driver's outlives a cell's objects
        if runner is None:
            runner = driver_cell.Runner(link, self._loader)
        if request.mode == wire.MODE_KERNEL:
            self._loader.load("driver_kernel").run(link, self._loader, runner, request, receive)
            return
        _signal.signal(_signal.SIGINT, self._usual_interrupt)
        driver_cell.run_once(runner, self._loader, request)


def split_arguments(arguments):
    """What stands before --preload, and the names of modules behind it."""
    if "--preload" not in arguments:
        return arguments, []
    at = arguments.index("--preload")
    return arguments[:at], arguments[at + 1 :]


class Request:
    """A CELL frame, taken apart. kernd wrote it: it is well-formed."""

    def __init__(self, payload):
        self.mode = payload[0]
        self.live = payload[1] & wire.FLAG_LIVE != 0
        self.text_max = to_number(payload[2:6], "big")
        self.number = to_number(payload[6:10], "big")
        fields = fields_of(payload, 10)
        self.name = fields.get(wire.FIELD_NAME, b"").decode()
        self.code = fields.get(wire.FIELD_CODE, b"")
        self.stdin = fields.get(wire.FIELD_STDIN)
        self.environment = fields.get(wire.FIELD_ENVIRONMENT, b"")
        self.directory = fields.get(wire.FIELD_DIRECTORY)


def fields_of(payload, at):
    fields = {}
    while at < len(payload):
        end = at + 5 + to_number(payload[at + 1 : at + 5], "big")
        fields[payload[at]] = payload[at + 5 : end]
        at = end
    return fields


def set_environment(assignments):
    for pair in assignments.split(b"\0"):
        key, equals, value = pair.partition(b"=")
        if equals:
            posix.putenv(key, value)
            posix.environ[key] = value  # os.environ, imported or not, is a view of this


def receive(link):
    """The next cell with its environment applied, None at the end of the connection."""
    frame = link.receive()
    while frame is not None and frame[0] == wire.INTERRUPT:
        link.late_interrupt()  # its cell ended before it came
        frame = link.receive()
    if frame is None or frame[0] != wire.CELL:
        return None
    request = Request(frame[1])
    if request.environment:
        set_environment(request.environment)
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
    code = []
    for directory in directories:
        code += add_site_directory(directory)
    if code and hasattr(sys, "stdlib_module_names"):  # Python 3.10
        LatePathFiles(code)
    else:
        for sitedir, name, line in code:
            run_path_line(sitedir, name, line)


def exists(path):
    try:
        posix.stat(path)
    except OSError:
        return False
    return True


def add_site_directory(sitedir):
    """Adds the directory and the paths in its .pth files; the lines of code in them, to run later."""
    try:
        names = posix.listdir(sitedir)
    except OSError:
        return []
    if sitedir not in sys.path:
        sys.path.append(sitedir)
    code = []
    for name in sorted(names):
        if name.endswith(".pth"):
            code += read_path_file(sitedir, name)
    return code


def read_path_file(sitedir, name):
    try:
        with open(sitedir + "/" + name, encoding="utf-8", errors="surrogateescape") as file:
            lines = file.read().split("\n")
    except OSError:
        return []
    code = []
    for line in lines:
        if line.startswith(("import ", "import\t")):
            code.append((sitedir, name, line))
        elif line.strip() and not line.startswith("#"):
            path = line.rstrip()
            path = path if path.startswith("/") else sitedir + "/" + path
            if path not in sys.path and exists(path):
                sys.path.append(path)
    return code


class LatePathFiles:
    """
    Runs the code of .pth files when first something is imported that is not of the standard
    library (or is replaced by such code: distutils). It prepares packages, and some of it costs as
    much as the whole start of the interpreter.
    """

    def __init__(self, code):
        self._code = code
        self._lock = _thread.RLock()
        sys.meta_path = [self] + sys.meta_path

    def find_spec(self, name, path=None, target=None):
        if "." in name or (name in sys.stdlib_module_names and name != "distutils"):
            return None
        with self._lock:
            code, self._code = self._code, []
            sys.meta_path = [finder for finder in sys.meta_path if finder is not self]
            for sitedir, file, line in code:
                run_path_line(sitedir, file, line)
        made = sys.modules.get(name)  # by such a line, as namespace packages are
        if made is not None:
            # The import system will use the spec that the module itself names.
            made.__spec__ = importlib_core.ModuleSpec(name, Made(made))
            return made.__spec__
        return importlib_core._find_spec(name, path, target)


class Made:
    """Loader of a module that is there already: it leaves it as it was."""

    def __init__(self, module):
        self._module = module
        self._attributes = dict(module.__dict__)

    def create_module(self, _spec):
        return self._module

    def exec_module(self, module):
        module.__dict__.update(self._attributes)


def run_path_line(sitedir, name, line):
    # Lines look for `sitedir` in the frame that runs them.
    try:
        exec(line)
    except Exception as error:
        print("%s/%s: %r" % (sitedir, name, error), file=sys.stderr)


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
