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

import driver_wire as wire

__builtins__ = wire.BUILTINS

_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_ONLY_AST = 0x400  # ast.PyCF_ONLY_AST
_COROUTINE = 0x80  # inspect.CO_COROUTINE
_FUTURE_FLAGS = 0x1FF0000  # the CO_FUTURE_... bits of co_flags

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
    for code, is_expression in split("a = 1\nfor b in (a,):\n    a += b\na\n", "<warm-up>"):
        encode(repr(eval(code, scope))) if is_expression else exec(code, scope)
    print(end="", flush=True)


def split(source, name):
    """
    Compiles source; a list of (code, is expression), to run in order. The last statement is a piece
    of its own if it is an expression.

    Text that compiles whole, followed by a line at column 0 that compiles whole, means the same as
    both together, so the usual cell needs no syntax tree (whose first use costs a millisecond).
    """
    start = len(source.rstrip())
    for _ in range(4):
        start = _statement_start(source, start)
        if start < 0:
            break
        head = source[:start]
        tail = "\n" * head.count("\n") + source[start:]
        if ";" in tail or "__future__" in tail:
            break
        try:
            return _split_here(head, tail, name)
        except SyntaxError:
            continue
        except (ValueError, OverflowError, MemoryError, RecursionError):
            break
    return _split_by_tree(source, name)


# Words that continue a compound statement at column 0; brackets may close there too.
_CONTINUING = frozenset(("else", "elif", "except", "finally"))


def _statement_start(source, end):
    """Offset of the last line before end that could begin a statement at column 0, else -1."""
    while end > 0:
        start = source.rfind("\n", 0, end) + 1
        line = source[start:end]
        end = start - 1
        if not line.strip() or line[0] in " \t)]}#":
            continue
        word = line.split(None, 1)[0].split(":", 1)[0]
        if word not in _CONTINUING:
            return start
    return -1


def _split_here(head, tail, name):
    pieces = []
    is_expression = True
    try:
        last = compile(tail, name, "eval", _AWAIT, True)
    except SyntaxError:
        is_expression = False
        last = compile(tail, name, "exec", _AWAIT, True)
    if head.strip():
        code = compile(head, name, "exec", _AWAIT, True)
        pieces.append((code, False))
        future = code.co_flags & _FUTURE_FLAGS
        if future:
            last = compile(
                tail, name, "eval" if is_expression else "exec", _AWAIT | future, True
            )
    pieces.append((last, is_expression))
    return pieces


def _split_by_tree(source, name):
    import _ast

    tree = compile(source, name, "exec", _ONLY_AST | _AWAIT, True)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, _ast.Expr):
        return [(compile(source, name, "exec", _AWAIT, True), False)]
    del tree.body[-1]
    pieces = []
    flags = _AWAIT
    if tree.body:
        code = compile(tree, name, "exec", flags, True)
        flags |= code.co_flags & _FUTURE_FLAGS
        pieces.append((code, False))
    pieces.append((compile(_ast.Expression(last.value), name, "eval", flags, True), True))
    return pieces


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

    def attempt(self, read, name):
        """
        Runs a cell and shows its value. The exception that ended it, if any: returned, so that what
        happens next does not happen "during the handling" of it.
        """
        try:
            self._run(read(), name)
            if self._loop is not None and not self.lasts:
                self._loop.close()  # ends what top-level awaits left running
        except BaseException as error:
            return error
        return None

    def _run(self, source, name):
        value = None
        is_expression = False
        for code, is_expression in split(source, name):
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
    sys.argv[:] = [name]
    source_loader = importlib_files.SourceFileLoader("__main__", name)
    runner.scope.update(__file__=name, __cached__=None, __loader__=source_loader)
    if request.live:
        sys.stdout.reconfigure(line_buffering=True)
    error = runner.attempt(lambda: read_source(name), name)
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


def read_source(path):
    with open(path, "rb") as file:
        return decode_source(file.read())


def decode_source(data):
    """Text of a source file: UTF-8, a byte order mark allowed, any line ends."""
    text = data.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        text = text[1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def hide_from_excepthook():
    hook = sys.excepthook

    def silent(*_):
        sys.excepthook = hook

    sys.excepthook = silent
