# SPDX-License-Identifier: Apache-2.0
#
# driver_wire: the driver's one connection to kernd: frames out, frames in.
#
# Owns the socket. Any thread may send; a forked child may not and has no connection. The frame and
# field layout is documented in wire.h. Imports built-in modules only (see driver.py).
import _socket
import _thread
import builtins
import posix

# A cell may replace built-in functions, the driver keeps those it started with: each of its modules
# binds this to __builtins__, where functions look for them.
BUILTINS = __builtins__ = dict(vars(builtins))

CELL, INTERRUPT, PREPARE = 1, 2, 3
READY, RESULT, END = 17, 18, 19

FIELD_NAME, FIELD_CODE, FIELD_STDIN, FIELD_ENVIRONMENT, FIELD_DIRECTORY = 1, 2, 3, 4, 5
FIELD_PRELOAD = 6

MODE_ONCE, MODE_KERNEL = 1, 2
FLAG_LIVE = 1
END_INTERRUPTED = 1

_WHOLE = _socket.MSG_WAITALL
to_number = int.from_bytes

# Out of the reach of code that closes "all" descriptors from 3 to some small bound.
HIGH_DESCRIPTOR = 250


def keep_high(descriptor, number=HIGH_DESCRIPTOR):
    """Moves a descriptor to a high, close-on-exec number where the limit allows it."""
    try:
        posix.dup2(descriptor, number, inheritable=False)
    except OSError:
        return descriptor
    posix.close(descriptor)
    return number


def connect(path):
    """A connection to kernd: its descriptor."""
    first = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    first.connect(path)
    return keep_high(first.detach())


def make_frame(kind, payload):
    return b"%c%b%b" % (kind, len(payload).to_bytes(4, "big"), payload)


class Link:
    def __init__(self, number, process):
        """
        Of the connection with this descriptor, in the process with this number. None: in one that is
        not there yet (adopt).
        """
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, number)
        self._process = process
        self._lock = _thread.allocate_lock()
        self._sender = None
        self._waiting = []
        self._held = b""
        self.late_interrupt = lambda: None  # what to do with one that no running cell took
        posix.register_at_fork(after_in_child=self._forked)

    def _forked(self):
        """A forked child keeps neither the connection nor its descriptor."""
        if self._process is not None and not self.is_ours():
            self.close()

    def adopt(self):
        """In the process that it is for."""
        self._process = posix.getpid()

    def release(self):
        """Of no process again."""
        self._process = None

    def inherit(self, number):
        """In a child that is to go on with a connection of its own."""
        self._process = posix.getpid()
        self._socket = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM, 0, number)

    def close(self):
        """Idempotent. What is sent afterwards is dropped."""
        gone, self._socket = self._socket, None
        if gone is not None:
            try:
                gone.close()
            except OSError:
                pass  # the cell closed the descriptor itself

    def is_ours(self):
        """False in a child made by a fork that Python knows nothing of."""
        return posix.getpid() == self._process

    def send(self, kind, payload, soon=False):
        """
        Sends one frame whole, whatever signal handlers raise meanwhile. With soon=True it goes with
        the next one, which follows at once: a frame alone would wake kernd twice.
        """
        if self._socket is None or not self.is_ours():
            return
        frame = make_frame(kind, payload)
        me = _thread.get_ident()
        if self._sender == me:  # called by a signal handler in the middle of a send
            self._waiting.append(frame)
            return
        with self._lock:
            self._sender = me
            try:
                if soon:
                    self._held += frame
                    return
                held, self._held = self._held, b""
                self._send_whole(held + frame)
                while self._waiting:
                    self._send_whole(self._waiting.pop(0))
            finally:
                self._sender = None

    def _send_whole(self, frame):
        # A signal handler that raises (KeyboardInterrupt, an alarm) must not lose count of what is
        # on its way already: list.extend(map(...)) stores it before Python looks for signals.
        view = memoryview(frame)
        sent = []
        held = None
        while self._socket is not None:
            send = self._socket.send
            try:
                while (done := sum(sent)) < len(view):
                    sent.extend(map(send, (view[done:],), (_socket.MSG_NOSIGNAL,)))
                break
            except OSError:
                self.close()
            except BaseException as raised:
                held = raised
        if held is not None:
            raise held

    def take_interrupts(self):
        """Numbers of the cells that the INTERRUPT frames now waiting name. Never blocks."""
        numbers = []
        try:
            peek = _socket.MSG_DONTWAIT | _socket.MSG_PEEK
            while self._socket.recv(9, peek)[:1] == b"%c" % INTERRUPT:
                numbers.append(to_number(self.receive()[1], "big"))
        except OSError:
            pass  # nothing more, or the cell closed the descriptor
        return numbers

    def descriptor(self):
        """-1 when it is closed."""
        return -1 if self._socket is None else self._socket.fileno()

    def receive(self):
        """One frame (kind, payload), or None at the end of the connection."""
        header = self._socket.recv(5, _WHOLE)
        if len(header) < 5:
            header = self._read_on(header, 5)
            if header is None:
                return None
        size = to_number(header[1:], "big")
        payload = self._socket.recv(size, _WHOLE)
        if len(payload) < size:
            payload = self._read_on(payload, size)
        return None if payload is None else (header[0], payload)

    def _read_on(self, data, size):
        """A signal came in between, or the end."""
        while len(data) < size:
            more = self._socket.recv(size - len(data), _WHOLE)
            if not more:
                return None
            data += more
        return data
