# SPDX-License-Identifier: Apache-2.0
"""Network namespaces of forked boxes: one goes to a later box only where nothing came to pass in it."""
import os
import unittest

import harness
import sessionkit
from templatekit import WITH_TEMPLATES, Cold

# The kernel's own number of a network namespace, which no other one ever has (SO_NETNS_COOKIE).
COOKIE = """
import socket, struct
with socket.socket(socket.AF_UNIX) as any_socket:
    print(struct.unpack('Q', any_socket.getsockopt(socket.SOL_SOCKET, 71, 8))[0])
"""
# Enough for one that is untouched to come again.
CALLS = 12

# What can be seen afterwards, each by another record of the kernel's.
TRACES = {
    "a datagram": """
import socket
taker, giver = (socket.socket(socket.AF_INET, socket.SOCK_DGRAM) for _ in range(2))
taker.bind(('127.0.0.1', 0))
giver.sendto(b'x', taker.getsockname())
assert taker.recv(2) == b'x'
""",
    "a datagram, IPv6": """
import socket
taker, giver = (socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) for _ in range(2))
taker.bind(('::1', 0))
giver.sendto(b'x', taker.getsockname())
assert taker.recv(2) == b'x'
""",
    "a connection, which waits for its time": """
import socket
with socket.create_server(('127.0.0.1', 0)) as server:
    client = socket.create_connection(server.getsockname())
    served = server.accept()[0]
    client.close()
    served.close()
""",
    "a connection that nobody took": """
import socket
try:
    socket.create_connection(('127.0.0.1', 9))
except ConnectionRefusedError:
    pass
""",
    "no way to somewhere": """
import socket
with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as nowhere:
    try:
        nowhere.sendto(b'x', ('192.0.2.1', 9))
    except OSError:
        pass
""",
    "a label that outlives its socket": """
import socket, struct
with socket.socket(socket.AF_INET6, socket.SOCK_DGRAM) as labelled:
    # struct in6_flowlabel_req: ::1, a label of its own, IPV6_FL_A_GET, IPV6_FL_S_EXCL, IPV6_FL_F_CREATE
    labelled.setsockopt(socket.IPPROTO_IPV6, 32,
                        socket.inet_pton(socket.AF_INET6, '::1') + struct.pack('!I', 0x12345)
                        + struct.pack('BBHHHI', 0, 1, 1, 6, 6, 0))
assert '12345' in open('/proc/net/ip6_flowlabel').read()
""",
}

# These leave nothing; programs do them all the time.
NO_TRACES = {
    "nothing": "pass",
    "a pair of sockets": "import socket; [one.send(b'x') for one in socket.socketpair()]",
    "an event loop": "import asyncio; asyncio.run(asyncio.sleep(0))",
    "a socket that sent nothing": "import socket; socket.create_server(('127.0.0.1', 0))",
    "a name": "import socket; socket.socket(socket.AF_UNIX).bind('\\0mine')",
}

# A name that stays bound by a socket in flight in a ring of its own, which nobody can receive any more.
RING = """
import array, os, socket
named = socket.socket(socket.AF_UNIX)
named.bind('\\0ring')
one, other = socket.socketpair()
rights = array.array('i', [named.fileno(), one.fileno(), other.fileno()])
one.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
other.sendmsg([b'x'], [(socket.SOL_SOCKET, socket.SCM_RIGHTS, rights)])
"""

RECORDS = """
import hashlib
for name in 'dev', 'snmp', 'snmp6', 'netstat', 'ip6_flowlabel':
    print(name, hashlib.md5(open('/proc/net/' + name, 'rb').read()).hexdigest())
"""


class Networks(Cold, sessionkit.Case):
    def cookies(self):
        return {self.forked(COOKIE) for _ in range(CALLS)}

    def test_what_left_no_trace(self):
        for name, code in NO_TRACES.items():
            with self.subTest(name):
                cookie = self.forked(code + COOKIE)
                self.assertIn(cookie, self.cookies())

    def test_what_left_a_trace(self):
        for name, code in TRACES.items():
            with self.subTest(name):
                cookie = self.forked(code + COOKIE)
                self.assertNotIn(cookie, self.cookies())

    def test_records_are_those_of_a_new_one(self):
        """And the control: where something came to pass they are not."""
        new = self.run_code(RECORDS, isolation="boot")
        self.assertEqual(new["exitCode"], 0, new)
        for name, code in TRACES.items():
            with self.subTest(name):
                self.assertNotEqual(self.forked(code + RECORDS), new["stdout"])
                self.assertEqual(self.forked(RECORDS), new["stdout"])

    def test_a_socket_in_flight_for_ever(self):
        for _ in range(CALLS):
            self.forked(RING)
            self.assertNotIn("@ring", self.forked("print(open('/proc/net/unix').read())"))

    def test_one_that_lives_has_its_own(self):
        session = self.session()
        kernel = session.post("kernels", {}).json["id"]
        cell = self.daemon.result(f"{session.path}/kernels/{kernel}/cells", {"code": COOKIE})
        self.assertEqual(cell["exitCode"], 0, cell)
        self.assertNotIn(cell["stdout"], self.cookies())

    def test_its_settings_are_read_only(self):
        """A setting would stay, and no record tells of it."""
        found = self.forked("""
import os
tried, written = 0, []
for folder, _, names in os.walk('/proc/sys/net'):
    for name in names:
        tried += 1
        try:
            os.close(os.open(os.path.join(folder, name), os.O_WRONLY))
            written.append(name)
        except OSError:
            pass
print(tried > 100, written)
""")
        self.assertEqual(found, "True []\n")


@unittest.skipUnless(os.geteuid() == 0, "a server of root's")
class RootsNetworks(Cold, harness.Case):
    """Programs of the host's root can write to settings, of which no record tells: none comes again."""

    @classmethod
    def make_daemon(cls):
        daemon = harness.Daemon((*WITH_TEMPLATES, "--spares", "0", "--allow-root"), user=None)
        for path in (daemon.state, daemon.runtime):
            os.chown(path, 0, 0)
        return daemon

    def test_settings_end_with_a_box(self):
        path = "/proc/sys/net/ipv4/tcp_fin_timeout"
        code = f"{COOKIE}\nprint(open({path!r}).read())\nopen({path!r}, 'w').write('7')"
        cookies = set()
        for _ in range(CALLS):
            cookie, value = self.forked(code).split()
            self.assertEqual(value, "60")
            cookies.add(cookie)
        self.assertEqual(len(cookies), CALLS)


if __name__ == "__main__":
    unittest.main()
