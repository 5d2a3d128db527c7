# SPDX-License-Identifier: Apache-2.0
"""Drives driver.py without a box: listens where the driver connects and speaks its wire."""
import atexit
import compileall
import glob
import os
import select
import shutil
import signal
import socket
import struct
import subprocess
import tempfile
import threading

PYTHON = "/usr/bin/python3"
HERE = os.path.dirname(os.path.abspath(__file__))
SOURCES = os.path.join(HERE, "..", "..", "..", "lib", "cell")
BUILD = os.path.dirname(os.environ.get("KERND", os.path.join(HERE, "../../../build/kernd")))
CELL, INTERRUPT, READY, RESULT, END = 1, 2, 17, 18, 19
MODE_ONCE, MODE_KERNEL = 1, 2
LIMIT_S = 60
ENVIRONMENT = {"PATH": "/usr/bin:/bin", "LANG": "C.UTF-8", "TZ": "UTC",
               "PYTHONDONTWRITEBYTECODE": "1"}

LIBRARY = tempfile.mkdtemp(prefix="kernd-driver-")
atexit.register(shutil.rmtree, LIBRARY, ignore_errors=True)
for source in glob.glob(os.path.join(SOURCES, "driver*")):
    shutil.copy(source, LIBRARY)
shutil.copy(os.path.join(BUILD, "kernd-node.so"), LIBRARY)
compileall.compile_dir(LIBRARY, quiet=1)


def read_exactly(connection, size):
    data = b""
    while len(data) < size:
        piece = connection.recv(size - len(data))
        if not piece:
            return None
        data += piece
    return data


def read_frame(connection):
    """(kind, payload), or None at the end of the connection."""
    header = read_exactly(connection, 5)
    if header is None:
        return None
    kind, size = struct.unpack(">BI", header)
    payload = read_exactly(connection, size)
    return None if payload is None else (kind, payload)


class Bundle:
    def __init__(self, payload):
        self.is_main, self.shortened = bool(payload[0] & 1), bool(payload[0] & 2)
        assert payload[0] < 4, payload
        count, at = int.from_bytes(payload[1:3], "big"), 3
        self.data = {}
        for _ in range(count):
            mime, at = self._take(payload, at, 2)
            data, at = self._take(payload, at, 4)
            assert mime.decode("ascii") not in self.data
            self.data[mime.decode("ascii")] = data.decode("utf-8")
        assert at == len(payload), payload

    @staticmethod
    def _take(payload, at, width):
        size = int.from_bytes(payload[at:at + width], "big")
        at += width
        assert at + size <= len(payload), payload
        return payload[at:at + size], at + size

    @property
    def text(self):
        return self.data.get("text/plain")


class Driver:
    """One driver process, up to its READY."""

    def __init__(self, env=(), files=(), program=(PYTHON, "-S", "driver.py"), preload=()):
        self.preload = ["--preload", *preload] if preload else []
        self.home = tempfile.mkdtemp(prefix="kernd-cell-")
        self.workspace = os.path.join(self.home, "ws")
        os.mkdir(self.workspace)
        for name, text in dict(files).items():
            with open(os.path.join(self.workspace, name), "w", encoding="utf-8") as file:
                file.write(text)
        self.code = os.path.join(self.home, "cell.py")
        self.env = {**ENVIRONMENT, "HOME": self.home, **dict(env)}
        address = os.path.join(self.home, "socket")
        with socket.socket(socket.AF_UNIX) as listener:
            listener.bind(address)
            listener.listen(1)
            listener.settimeout(LIMIT_S)
            self.process = subprocess.Popen(
                self.command(program, address),
                cwd=self.workspace, env=self.env, stdin=subprocess.PIPE, stdout=subprocess.PIPE,
                stderr=subprocess.PIPE, start_new_session=True)
            self.connection, _ = listener.accept()
        os.unlink(address)
        self.connection.settimeout(LIMIT_S)
        self.ready = read_frame(self.connection)

    def command(self, program, address):
        return [*program[:-1], os.path.join(LIBRARY, program[-1]), address, self.workspace,
                *self.preload]

    def send_cell(self, mode, number=1, live=False, text_max=1 << 20, **fields):
        tags = {"name": 1, "code": 2, "stdin": 3, "environment": 4, "directory": 5}
        body = struct.pack(">BBII", mode, int(live), text_max, number)
        for key, value in fields.items():
            if value is not None:
                body += struct.pack(">BI", tags[key], len(value)) + value
        self.connection.sendall(struct.pack(">BI", CELL, len(body)) + body)

    def close(self):
        self.connection.close()
        try:
            os.killpg(self.process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        self.process.wait()
        for stream in (self.process.stdin, self.process.stdout, self.process.stderr):
            stream.close()
        shutil.rmtree(self.home, ignore_errors=True)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.close()


class Outcome:
    def __init__(self, code, stdout, stderr, results):
        self.code, self.results = code, results
        self.stdout = stdout.decode("utf-8", "replace")
        self.stderr = stderr.decode("utf-8", "replace")

    def __repr__(self):
        return repr((self.code, self.stdout, self.stderr, [r.data for r in self.results]))


def write_code(path, code):
    with open(path, "wb") as file:
        file.write(code if isinstance(code, bytes) else code.encode("utf-8"))


def run_once(code, stdin=b"", env=(), files=(), preload=(), **options):
    """One cell in a driver of its own, to the end of the process."""
    with Driver(env, files, preload=preload) as driver:
        write_code(driver.code, code)
        driver.send_cell(MODE_ONCE, name=driver.code.encode(), **options)
        results = []

        def listen():
            while (frame := read_frame(driver.connection)) is not None:
                assert frame[0] == RESULT, frame
                results.append(Bundle(frame[1]))

        listener = threading.Thread(target=listen)
        listener.start()
        stdout, stderr = driver.process.communicate(stdin, timeout=LIMIT_S)
        listener.join(LIMIT_S)
        outcome = Outcome(driver.process.returncode, stdout, stderr, results)
        outcome.stderr = outcome.stderr.replace(driver.home, "HOME")
        outcome.stdout = outcome.stdout.replace(driver.home, "HOME")
        return outcome


def run_plain(code, stdin=b""):
    """The same code as a script of the plain interpreter."""
    home = tempfile.mkdtemp(prefix="kernd-plain-")
    try:
        os.mkdir(os.path.join(home, "ws"))
        path = os.path.join(home, "cell.py")
        write_code(path, code)
        env = {**ENVIRONMENT, "HOME": home}
        done = subprocess.run([PYTHON, path], cwd=os.path.join(home, "ws"), env=env, input=stdin,
                              stdout=subprocess.PIPE, stderr=subprocess.PIPE, timeout=LIMIT_S,
                              check=False)
        outcome = Outcome(done.returncode, done.stdout, done.stderr, [])
        outcome.stderr = outcome.stderr.replace(home, "HOME")
        outcome.stdout = outcome.stdout.replace(home, "HOME")
        return outcome
    finally:
        shutil.rmtree(home, ignore_errors=True)


class Kernel(Driver):
    """A driver in kernel mode; cells are told apart as kernd does, by what is in the pipes."""

    def __init__(self, **options):
        super().__init__(**options)
        self.number = 0
        for stream in (self.process.stdout, self.process.stderr):
            os.set_blocking(stream.fileno(), False)

    def start(self, code, name=None, number=None, **fields):
        self.number = number or self.number + 1
        data = code if isinstance(code, bytes) else code.encode("utf-8")
        name = name or f"cell {self.number}"
        self.send_cell(MODE_KERNEL, number=self.number, live=True, name=name.encode(), code=data,
                       **fields)

    def finish(self):
        """What the running cell comes to; an Outcome with code None if the driver died."""
        output = {1: b"", 2: b""}
        results = []
        while True:
            self._read_pipes(output, 0.02)
            if select.select([self.connection], [], [], 0)[0]:
                frame = read_frame(self.connection)
                if frame is None or frame[0] == END:
                    break
                results.append(Bundle(frame[1]))
        self._read_pipes(output, 0)
        outcome = Outcome(None, output[1], output[2], results)
        outcome.interrupted = None
        if frame is not None:
            number, outcome.code, flags = struct.unpack(">IiB", frame[1])
            assert number == self.number, (number, self.number)
            outcome.interrupted = bool(flags)
        outcome.stderr = outcome.stderr.replace(self.home, "HOME")
        return outcome

    def _read_pipes(self, output, wait_s):
        streams = {self.process.stdout: 1, self.process.stderr: 2}
        watched = [*streams, self.connection]
        while True:
            ready = [s for s in select.select(watched, [], [], wait_s)[0] if s in streams]
            progress = False
            for stream in ready:
                data = os.read(stream.fileno(), 1 << 20)
                output[streams[stream]] += data
                progress = progress or bool(data)
            if not progress:
                return
            wait_s = 0

    def cell(self, code, **fields):
        self.start(code, **fields)
        return self.finish()

    def interrupt(self, number=None, frame=True):
        if frame:
            self.connection.sendall(struct.pack(">BII", INTERRUPT, 4, number or self.number))
        os.kill(self.process.pid, signal.SIGINT)
