# SPDX-License-Identifier: Apache-2.0
"""The load generator of the benches (tests/bench/load.c) against servers that answer in all ways."""
import contextlib
import json
import os
import signal
import socket
import subprocess
import tempfile
import threading
import unittest

import harness

LOAD = os.path.join(os.path.dirname(harness.KERND), "tests", "bench", "load")
REQUEST = b"POST /x HTTP/1.1\r\nContent-Length: 4\r\n\r\nbody"


def answer(body=b'{"success":true}', status=b"200 OK", length=None):
    return b"HTTP/1.1 %s\r\nX: y\r\ncontent-length: %d\r\n\r\n%s" % (
        status, len(body) if length is None else length, body)


class Server:
    """reply(connection, number of the connection, number of the call on it); its requests are checked."""

    def __init__(self, reply, path=None):
        self.reply = reply
        self.listener = socket.socket(socket.AF_UNIX if path else socket.AF_INET)
        self.listener.bind(path or ("127.0.0.1", 0))
        self.listener.listen(128)
        self.place = path or str(self.listener.getsockname()[1])
        self.faults, self.connections, self.calls, self.ended = [], 0, 0, threading.Semaphore(0)
        self.lock = threading.Lock()
        threading.Thread(target=self.accept, daemon=True).start()

    def accept(self):
        with contextlib.suppress(OSError):
            while True:
                peer, _ = self.listener.accept()
                threading.Thread(target=self.serve, args=(peer, self.connections), daemon=True).start()
                self.connections += 1

    def serve(self, peer, number):
        with peer, contextlib.suppress(ConnectionError, BrokenPipeError):
            call = 0
            while request := peer.recv(1000):
                while len(request) < len(REQUEST):
                    request += peer.recv(1000)
                if request != REQUEST:
                    self.faults.append(request)
                with self.lock:
                    self.calls += 1
                if self.reply(peer, number, call) is False:
                    break
                call += 1
        self.ended.release()

    def close(self):
        self.listener.shutdown(socket.SHUT_RDWR)
        self.listener.close()


class Load(unittest.TestCase):
    def serve(self, reply=lambda peer, *_: peer.sendall(answer()), path=None):
        server = Server(reply, path)
        self.addCleanup(server.close)
        return server

    def load(self, server, *shape):
        """What it prints, at exit code 0."""
        done = subprocess.run([LOAD, server.place, *map(str, shape)], input=REQUEST, capture_output=True,
                              timeout=harness.seconds(60), check=False)
        self.assertEqual((done.returncode, done.stderr), (0, b""))
        self.assertEqual(server.faults, [])
        found = json.loads(done.stdout)
        self.assertEqual(len(found["ms"]), server.calls)
        return found

    def refused(self, reply, *told):
        done = subprocess.run([LOAD, self.serve(reply).place, "callers", "2", "60"], input=REQUEST,
                              capture_output=True, timeout=harness.seconds(30), check=False)
        self.assertEqual((done.returncode, done.stdout), (1, b""))
        for text in told:
            self.assertIn(text, done.stderr)


class Shapes(Load):
    def test_offered(self):
        server = self.serve()
        found = self.load(server, "offered", 400, 0.1, 4)
        self.assertEqual((len(found["ms"]), server.connections), (40, 4))
        self.assertGreaterEqual(found["seconds"], 39 / 400)

    def test_offered_does_not_wait_for_earlier_answers(self):
        third = threading.Event()

        def reply(peer, *_):
            if server.calls == 3:
                third.set()
            self.assertTrue(third.wait(harness.seconds(30)))
            peer.sendall(answer())
        server = self.serve(reply)
        self.load(server, "offered", 100, 0.03, 3)

    def test_a_latency_counts_from_the_due_time(self):
        """With one connection the calls due at 10 and 20 ms wait for the slow first one."""
        slow = threading.Event()

        def reply(peer, _, call):
            slow.wait(0.2 if call == 0 else 0)
            peer.sendall(answer())
        found = self.load(self.serve(reply), "offered", 100, 0.03, 1)
        for number, time in enumerate(found["ms"]):
            self.assertGreaterEqual(time, 199 - 10 * number)

    def test_callers(self):
        server = self.serve()
        found = self.load(server, "callers", 3, 0.1)
        self.assertEqual(server.connections, 3)
        self.assertGreater(len(found["ms"]), 3)
        self.assertGreaterEqual(found["seconds"], 0.1)

    def test_paused(self):
        server = self.serve()
        found = self.load(server, "paused", 20, 5)
        self.assertEqual((len(found["ms"]), server.connections), (5, 1))
        self.assertGreaterEqual(found["seconds"], 0.08)

    def test_burst(self):
        """No answer before all have asked."""
        gate = threading.Barrier(20, timeout=harness.seconds(30))

        def reply(peer, *_):
            gate.wait()
            peer.sendall(answer())
        server = self.serve(reply)
        self.load(server, "burst", 20)
        self.assertEqual((server.connections, server.calls), (20, 20))

    def test_over_a_unix_socket(self):
        with tempfile.TemporaryDirectory() as folder:
            self.load(self.serve(path=f"{folder}/socket"), "offered", 200, 0.05, 2)


class Answers(Load):
    def test_in_pieces(self):
        def reply(peer, *_):
            for byte in answer():
                peer.sendall(bytes([byte]))
        self.load(self.serve(reply), "callers", 1, 0.05)

    def test_large(self):
        whole = answer(b"x" * (5 << 20) + b'"success":true')
        self.load(self.serve(lambda peer, *_: peer.sendall(whole)), "paused", 0, 2)

    def test_another_status(self):
        self.refused(lambda peer, *_: peer.sendall(answer(status=b"503 No")), b"HTTP/1.1 503 No", b"success")

    def test_without_success(self):
        self.refused(lambda peer, *_: peer.sendall(answer(b'{"success":false}')), b'"success":false')

    def test_the_tenth(self):
        self.refused(lambda peer, _, call: peer.sendall(answer(b"{}" if call == 9 else b'{"success":true}')),
                     b"a wrong answer")

    def test_of_no_length(self):
        self.refused(lambda peer, *_: peer.sendall(b"HTTP/1.1 200 OK\r\n\r\n"), b"Content-Length")

    def test_longer_than_told(self):
        self.refused(lambda peer, *_: peer.sendall(answer() + b"H"), b"more than an answer")

    def test_closed_at_once_and_in_the_middle(self):
        self.refused(lambda peer, *_: False, b"closed")
        self.refused(lambda peer, *_: bool(peer.sendall(answer(length=99))), b"closed", b"HTTP/1.1 200")


class Ends(Load):
    def test_wrong_words(self):
        for words in ((), ("80",), ("80", "burst"), ("80", "burst", "0"), ("80", "burst", "x"),
                      ("80", "offered", "0", "1", "1"), ("0", "burst", "1"), ("80", "flood", "1")):
            done = subprocess.run([LOAD, *words], input=REQUEST, capture_output=True, check=False)
            self.assertEqual((done.returncode, done.stdout), (2, b""), words)

    def test_nothing_to_send_and_nobody_there(self):
        with socket.socket() as free:  # bound, and nobody listens
            free.bind(("127.0.0.1", 0))
            place = str(free.getsockname()[1])
            for sent, told in ((b"", b"no request"), (REQUEST, b"can't connect")):
                done = subprocess.run([LOAD, place, "burst", "1"], input=sent, capture_output=True, check=False)
                self.assertEqual(done.returncode, 1)
                self.assertIn(told, done.stderr)

    def test_killed_and_with_its_parent(self):
        asked = threading.Semaphore(0)
        server = self.serve(lambda *_: asked.release())
        with subprocess.Popen([LOAD, server.place, "callers", "1", "60"], stdin=subprocess.PIPE) as child:
            child.stdin.write(REQUEST)
            child.stdin.close()
            self.assertTrue(asked.acquire(timeout=harness.seconds(30)))
            child.kill()
        self.assertTrue(server.ended.acquire(timeout=harness.seconds(30)))
        shell = f"exec 3<&0; '{LOAD}' {server.place} callers 1 60 <&3 & wait"
        with subprocess.Popen(["sh", "-c", shell], stdin=subprocess.PIPE) as parent:
            parent.stdin.write(REQUEST)
            parent.stdin.close()
            self.assertTrue(asked.acquire(timeout=harness.seconds(30)))
            os.kill(parent.pid, signal.SIGKILL)
        self.assertTrue(server.ended.acquire(timeout=harness.seconds(30)))


if __name__ == "__main__":
    unittest.main()
