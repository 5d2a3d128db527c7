# SPDX-License-Identifier: Apache-2.0
#
# driver_kernel: cells one after the other in one interpreter, its variables kept.
#
# Owns the standard streams between cells, the interrupt handler, the sources of earlier cells. Main
# thread only. What a cell wrote before its END frame is in the pipes by then, so kernd can tell its
# output from the next one's without any mark in it. Loaded by driver_cell.Loader.
import _signal
import io
import posix
import sys

import driver_cell
import driver_source
import driver_wire as wire

__builtins__ = wire.BUILTINS

_SOURCES_MAX = 4 << 20  # characters of earlier cells kept for tracebacks
_HIGH = {1: 251, 2: 252}


def run(link, loader, runner, request, receive):
    """Serves cells until kernd closes the connection; then the interpreter ends as usual."""
    kernel = Kernel(link, loader, runner)
    while request is not None:
        kernel.serve(request)
        kernel.rest()
        request = receive(link)


class Kernel:
    def __init__(self, link, loader, runner):
        self._link = link
        self._loader = loader
        self._runner = runner
        runner.lasts = True
        runner.be_script(None)
        self._streams = Streams()
        self._interrupts = Interrupts(link)
        self._sources = Sources()
        self._poll = make_poll(link)
        link.late_interrupt = self._interrupts.owe
        sys.argv[:] = [""]

    def serve(self, request):
        self._streams.prepare(request.stdin)
        self._runner.shower.text_max = request.text_max
        name = request.name
        error = self._run(driver_source.decode(request.code), request.number, name)
        code = self._tell(error, name)
        self._streams.flush()
        if not self._link.is_ours():
            # A child forked by the cell came to the cell's end. It must not serve cells.
            posix._exit(code)
        interrupted = isinstance(error, KeyboardInterrupt)
        flags = wire.END_INTERRUPTED if interrupted else 0
        self._link.send(wire.END, request.number.to_bytes(4, "big") + b"\0\0\0%c%c" % (code, flags))

    def rest(self):
        """
        Until the next cell comes. A thread that waits in recv instead is woken once more as soon as
        kernd takes the END frame: room to write wakes readers, too, but for those that poll.
        """
        if self._poll is not None:
            self._poll.poll()

    def _run(self, source, number, name):
        """The exception that ended the cell, or None."""
        self._sources.add(name, source)
        error = None
        try:
            self._interrupts.begin(number)
            error = self._runner.attempt(str, source, name)
            self._runner.finish_cell()
        except KeyboardInterrupt as late:
            error = late if error is None else error
        finally:
            # Not by a call: Python looks for signals at the entry of functions.
            self._interrupts.number = None
        self._interrupts.end()
        return error

    def _tell(self, error, name):
        """Prints what plain python would print of the error; the exit code it would end with."""
        try:
            if error is None:
                return 0
            if isinstance(error, SystemExit):
                return exit_code(error.code)
            with self._sources:
                driver_cell.tell_error(self._loader, error, name)
        except SystemExit as exit_in_hook:
            return exit_code(exit_in_hook.code)
        except BaseException:
            pass  # nobody is left to be told: standard error itself is broken
        return 130 if isinstance(error, KeyboardInterrupt) else 1


def make_poll(link):
    """None where select is no built-in module: loading it would take longer than it saves."""
    if "select" not in sys.builtin_module_names:
        return None
    import select

    poll = select.poll()
    poll.register(link.descriptor(), select.POLLIN)
    return poll


def exit_code(value):
    """Of SystemExit, as the interpreter has it; what is no number is printed."""
    if value is None:
        return 0
    if isinstance(value, int):
        return value & 0xFF if -(1 << 63) <= value < 1 << 63 else 255
    try:
        print(value, file=sys.stderr)
    except Exception:
        pass
    return 1


class Interrupts:
    """
    SIGINT raises KeyboardInterrupt in the cell it is meant for, and in no other.

    kernd sends an INTERRUPT frame with the cell's number before each signal. The signal takes
    another way and may come late; one without a frame for this cell is then owed to an earlier one.
    """

    def __init__(self, link):
        self._link = link
        self.number = None  # of the running cell
        self._owed = 0  # late signals of cells that ended; below 0, frames still to be read
        _signal.signal(_signal.SIGINT, self._signalled)

    def begin(self, number):
        early = self._owed < 0  # signals came before their frames were read
        self._owed = max(self._owed, 0)
        self.number = number
        if number in self._link.take_interrupts():
            self._owed += 0 if early else 1  # or it came while the driver was deaf
            raise KeyboardInterrupt

    def end(self):
        handler = _signal.getsignal(_signal.SIGINT)
        if handler in (_signal.SIG_DFL, _signal.SIG_IGN, None):
            # The cell must stay interruptible, and an idle driver must not die.
            _signal.signal(_signal.SIGINT, self._signalled)

    def owe(self):
        self._owed += 1

    def _signalled(self, _number, _frame):
        if not self._link.is_ours():
            raise KeyboardInterrupt
        if self.number is None:
            self._owed -= 1
            return
        asked = self._link.take_interrupts()
        if self.number in asked:
            raise KeyboardInterrupt
        if self._owed > 0:
            self._owed -= 1
            return
        raise KeyboardInterrupt  # the code's own doing


class Streams:
    """The standard streams as every cell finds them, whatever the cells before did to them."""

    def __init__(self):
        self._kept = {}
        self._files = {}
        self._inodes = {}
        self._has_input = False
        for number, high in _HIGH.items():
            self._kept[number] = wire.keep_high(posix.dup(number), high)
            self._inodes[number] = self._inode(number)
        self._errors = {1: sys.stdout.errors, 2: sys.stderr.errors}
        sys.stdout.reconfigure(line_buffering=True)
        self._files = {1: sys.stdout, 2: sys.stderr}
        self._give_input(None)

    def prepare(self, data):
        for number in (1, 2):
            if self._inode(number) != self._inodes[number]:
                posix.dup2(self._kept[number], number)
            if not usable(self._files[number]):
                self._files[number] = self._open(number)
        sys.stdout = sys.__stdout__ = self._files[1]
        sys.stderr = sys.__stderr__ = self._files[2]
        if data is not None or self._has_input or not usable(self._files[0]):
            self._give_input(data)
        sys.stdin = sys.__stdin__ = self._files[0]

    def flush(self):
        theirs = getattr(sys, "stdout", None), getattr(sys, "stderr", None)
        for file in (*theirs, self._files[1], self._files[2]):
            try:
                file.flush()
            except Exception:
                self._flush_again(file)

    def _flush_again(self, file):
        """The descriptor may have been closed by the cell, with some of its text still to go."""
        for number in (1, 2):
            if self._inode(number) is None:
                posix.dup2(self._kept[number], number)
        try:
            file.flush()
        except Exception:
            pass  # replaced, closed, or a pipe that is gone

    def _give_input(self, data):
        self._has_input = data is not None
        if data is None:
            source = posix.open("/dev/null", posix.O_RDONLY | posix.O_CLOEXEC)
        else:
            source = posix.memfd_create("stdin")
            with open(source, "wb", closefd=False) as file:
                file.write(data)
            posix.lseek(source, 0, 0)
        posix.dup2(source, 0)
        if source != 0:
            posix.close(source)
        self._files[0] = open(0, encoding="utf-8", errors="surrogateescape", closefd=False)

    def _open(self, number):
        return open(
            number, "w", encoding="utf-8", errors=self._errors[number], closefd=False, buffering=1
        )

    @staticmethod
    def _inode(number):
        try:
            status = posix.fstat(number)
        except OSError:
            return None
        return status.st_dev, status.st_ino


def usable(file):
    try:
        return not file.closed
    except ValueError:  # detached
        return False


class Sources:
    """Texts of earlier cells, where tracebacks and inspect look for them."""

    def __init__(self):
        self._texts = {}
        self._size = 0
        self._open = io.open
        driver_cell.ImportWatch({"linecache": self._linecache_imported})

    def add(self, name, source):
        self._size += len(source) - len(self._texts.pop(name, ""))
        self._texts[name] = source
        while self._size > _SOURCES_MAX and len(self._texts) > 1:
            oldest = next(iter(self._texts))
            self._size -= len(self._texts.pop(oldest))
            cache = self._cache()
            if cache is not None:
                cache.pop(oldest, None)
        self._remember(name)

    def _cache(self):
        cache = getattr(sys.modules.get("linecache"), "cache", None)
        return cache if isinstance(cache, dict) else None

    def _remember(self, name):
        cache = self._cache()
        if cache is not None:
            lines = self._texts[name].splitlines(True)
            cache[name] = (len(self._texts[name]), None, lines, name)

    def _linecache_imported(self, _module):
        for name in self._texts:
            self._remember(name)

    # While an error is printed, the interpreter (up to 3.12, which prints in C) opens the source
    # files through io.open: names of cells are served from here.

    def __enter__(self):
        self._open = io.open
        io.open = self._open_source

    def __exit__(self, *_):
        io.open = self._open

    def _open_source(self, file, mode="r", *rest, **options):
        source = self._texts.get(file) if isinstance(file, str) and mode == "rb" else None
        if source is None:
            return self._open(file, mode, *rest, **options)
        descriptor = posix.memfd_create("source")
        posix.write(descriptor, source.encode("utf-8", "replace"))
        posix.lseek(descriptor, 0, 0)
        return self._open(descriptor, "rb")
