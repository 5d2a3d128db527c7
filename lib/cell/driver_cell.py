# SPDX-License-Identifier: Apache-2.0
#
# driver_cell: runs source text as __main__, shows its last value, tells its errors as python does.
#
# Owns the display function and the module __main__. Main thread runs code; any thread may display.
# Imports built-in modules and its own siblings only.
import _frozen_importlib as importlib_core
import _frozen_importlib_external as importlib_files
import _signal
import builtins
import sys

import driver_source
import driver_wire as wire

__builtins__ = wire.BUILTINS

_COROUTINE = 0x80  # inspect.CO_COROUTINE

# Values with nothing to offer but their repr.
_PLAIN = frozenset((int, str, float, bool, bytes, complex, list, dict, tuple, set, frozenset))

IS_MAIN, SHORTENED = 1, 2


class Loader:
    """
    Loads driver modules by their files, whatever the cell has done to the import system. They are
    in sys.modules only meanwhile: the cell may have modules of these names.
    """

    def __init__(self, library, siblings):
        self.library = library
        self._loaded = siblings

    def load(self, name):
        module = self._loaded.get(name)
        if module is not None:
            return module
        path = self.library + "/" + name + ".py"
        spec = importlib_files.spec_from_file_location(name, path)
        module = importlib_core.module_from_spec(spec)
        hidden = {key: sys.modules.get(key) for key in self._loaded}
        sys.modules.update(self._loaded)
        try:
            spec.loader.exec_module(module)
        finally:
            for key, value in hidden.items():
                if value is None:
                    del sys.modules[key]
                else:
                    sys.modules[key] = value
        self._loaded[name] = module
        return module


class Shower:
    """Turns values into bundles and sends them. One for the life of the process."""

    def __init__(self, link, loader):
        self._link = link
        self._loader = loader
        self.text_max = 0  # each request tells

    def display(self, *values, raw=False, **_options):
        """Shows each value as a rich result, at once. With raw=True a value is a MIME bundle."""
        for value in values:
            if value is not None:
                self._show(value, 0, raw)

    def show_main(self, value, soon):
        """soon: another frame follows at once."""
        if value is not None:
            self._show(value, IS_MAIN, False, soon)

    def send_parts(self, parts, flags=0, soon=False):
        """parts: list of (mime type in bytes, data in bytes), already checked."""
        pieces = [b"%c%b" % (flags, len(parts).to_bytes(2, "big"))]
        for mime, data in parts:
            pieces += (len(mime).to_bytes(2, "big"), mime, len(data).to_bytes(4, "big"), data)
        self._link.send(wire.RESULT, b"".join(pieces), soon)

    def _show(self, value, flags, raw, soon=False):
        if type(value) in _PLAIN and not raw:
            parts, shortened = [(b"text/plain", encode(repr(value)))], False
        else:
            rich = self._loader.load("driver_rich")
            parts = rich.raw_parts(value) if raw else rich.parts_of(value)
            shortened = rich.drop_oversize(parts)
        for at, (mime, data) in enumerate(parts):
            if mime == b"text/plain" and len(data) > self.text_max:
                parts[at] = (mime, shorten(data, self.text_max))
                shortened = True
        if parts or shortened:
            self.send_parts(parts, flags | (SHORTENED if shortened else 0), soon)


def encode(text):
    """UTF-8; a lone surrogate becomes U+FFFD."""
    try:
        return text.encode()
    except UnicodeEncodeError:
        whole = text.encode("utf-16-le", "surrogatepass").decode("utf-16-le", "replace")
        return whole.encode()


def shorten(data, limit):
    head = data[:limit].decode("utf-8", "ignore").encode()
    return head + b"... (%d bytes in all)" % len(data)


def warm_up():
    """Compiles, runs and prints something of its own, so that the first cell finds pages in place."""
    scope = {}
    for code, is_expression in driver_source.split("a = 1\nfor b in (a,):\n    a += b\na\n", "<warm-up>"):
        encode(repr(eval(code, scope))) if is_expression else exec(code, scope)
    print(end="", flush=True)


class ImportWatch:
    """Acts on a few modules right after the cell has imported them."""

    def __init__(self, actions):
        self._actions = actions  # full name: function of the module
        # A new list: the interpreter keeps the old one, with all it holds, to its very end.
        sys.meta_path = [self] + sys.meta_path

    def find_spec(self, name, path=None, target=None):
        action = self._actions.pop(name, None)
        if action is None:
            return None
        spec = importlib_core._find_spec(name, path, target)
        if spec is None or not hasattr(spec.loader, "exec_module"):
            self._actions[name] = action
        else:
            spec.loader = _ActingLoader(spec.loader, self._actions, name, action)
        return spec


class _ActingLoader:
    def __init__(self, real, actions, name, action):
        self._real = real
        self._actions = actions
        self._name = name
        self._action = action

    def create_module(self, spec):
        return self._real.create_module(spec)

    def exec_module(self, module):
        module.__spec__.loader = module.__loader__ = self._real
        try:
            self._real.exec_module(module)
            self._action(module)
        except BaseException:
            self._actions[self._name] = self._action  # an interrupt, perhaps: for the next attempt
            raise


class Runner:
    """Runs cells in one namespace, the module __main__."""

    def __init__(self, link, loader):
        self._script = None
        self.shower = Shower(link, loader)
        self.lasts = False  # more cells will follow, and each is told to have ended
        self._loader = loader
        self._loop = None
        module = type(sys)("__main__")
        self.scope = module.__dict__
        self.scope.update(__builtins__=builtins, __annotations__={}, display=self.shower.display)
        sys.modules["__main__"] = module
        builtins.display = self.shower.display
        ImportWatch({"matplotlib.pyplot": self._pyplot_imported})

    def be_script(self, name):
        """The namespace is as that of this file when it is run. None: as it was before."""
        if self._script == name:
            return
        self._script = name
        if name is None:
            del self.scope["__file__"], self.scope["__cached__"]
            self.scope["__loader__"] = None
        else:
            sys.argv[:] = [name]
            source_loader = importlib_files.SourceFileLoader("__main__", name)
            self.scope.update(__file__=name, __cached__=None, __loader__=source_loader)

    def attempt(self, read, of, name):
        """
        Runs a cell, whose text is read(of), and shows its value. The exception that ended it, if any:
        returned, so that what happens next does not happen "during the handling" of it.
        """
        try:
            self._run(read(of), name)
            if self._loop is not None and not self.lasts:
                self._loop.close()  # ends what top-level awaits left running
        except BaseException as error:
            return error
        return None

    def _run(self, source, name):
        value = None
        is_expression = False
        for code, is_expression in driver_source.split(source, name):
            waits = code.co_flags & _COROUTINE
            value = self._wait_for(code) if waits else eval(code, self.scope)
        if is_expression:
            # Figures may take their time.
            soon = self.lasts and "matplotlib.pyplot" not in sys.modules
            self.shower.show_main(value, soon)

    def finish_cell(self):
        """Shows the figures that are still open, and closes them."""
        pyplot = sys.modules.get("matplotlib.pyplot")
        if pyplot is not None:
            self._loader.load("driver_rich").show_figures(pyplot, self.shower)

    def _wait_for(self, code):
        import asyncio

        if self._loop is None:
            has_runner = hasattr(asyncio, "Runner")  # Python 3.11
            self._loop = asyncio.Runner() if has_runner else asyncio.new_event_loop()
        loop = self._loop.get_loop() if hasattr(self._loop, "get_loop") else self._loop
        task = self._make_task(loop, code)
        try:
            _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGINT,))
            return loop.run_until_complete(task)
        except KeyboardInterrupt:
            # Else it would go on beside the next cell that waits.
            task.cancel()
            loop.run_until_complete(asyncio.wait([task]))
            raise

    def _make_task(self, loop, code):
        """Leaves SIGINT blocked: a coroutine that an interrupt keeps from its task is complained of."""
        _signal.pthread_sigmask(_signal.SIG_BLOCK, (_signal.SIGINT,))
        try:
            return loop.create_task(eval(code, self.scope))
        except BaseException:
            _signal.pthread_sigmask(_signal.SIG_UNBLOCK, (_signal.SIGINT,))
            raise

    def _pyplot_imported(self, pyplot):
        def show(*_args, **_options):
            """Shows the open figures as results and closes them."""
            self.finish_cell()

        pyplot.show = show


def tell_error(loader, error, name):
    """
    Prints an uncaught error as plain python does. Where the code has used up all descriptors, the
    file that does it can't be read, and the interpreter tells what it can.
    """
    try:
        errors = loader.load("driver_errors")
    except OSError:
        trace = error.__traceback__
        while trace is not None and trace.tb_frame.f_code.co_filename != name:
            trace = trace.tb_next
        error.__traceback__ = trace
        sys.__excepthook__(type(error), error, trace)
    else:
        errors.report(error, name)


def run_once(runner, loader, request):
    """The one cell of this process. Leaves as a plain python script would."""
    name = request.name
    runner.shower.text_max = request.text_max
    runner.be_script(name)
    if request.live:
        sys.stdout.reconfigure(line_buffering=True)
    error = runner.attempt(driver_source.read, name, name)
    if error is not None and not isinstance(error, SystemExit):
        tell_error(loader, error, name)
    runner.finish_cell()
    if isinstance(error, SystemExit):
        raise error  # the interpreter prints its value and sets the exit code
    if isinstance(error, KeyboardInterrupt):
        hide_from_excepthook()
        raise error  # the interpreter dies of SIGINT, as it would without us
    if error is not None:
        raise SystemExit(1)


def hide_from_excepthook():
    hook = sys.excepthook

    def silent(*_):
        sys.excepthook = hook

    sys.excepthook = silent
