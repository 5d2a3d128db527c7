# SPDX-License-Identifier: Apache-2.0
"""Forks that wait for their order: whose memory a program has, and how such a fork ends."""
import ctypes
import itertools
import os
import signal
import unittest

import census
import harness
from templatekit import Cold, interpreters, wait_for_standby

SYS_KCMP, KCMP_VM = 312, 1

# What libc has told the kernel of a thread is what it believes to have told.
THREAD = """
import ctypes, os, signal, struct, threading
libc = ctypes.CDLL(None, use_errno=True)
address, head, size = ctypes.c_void_p(), ctypes.c_void_p(), ctypes.c_size_t()
print(libc.prctl(40, ctypes.byref(address), 0, 0, 0), ctypes.c_int.from_address(address.value).value == os.getpid() == 2)
print(libc.syscall(274, 0, ctypes.byref(head), ctypes.byref(size)), bool(head.value), size.value > 0)
print(threading.main_thread().native_id == threading.get_native_id() == 2)
caught = []
signal.signal(signal.SIGUSR1, lambda number, frame: caught.append(number))
signal.raise_signal(signal.SIGUSR1)
threads = [threading.Thread(target=caught.append, args=(n,)) for n in range(3)]
[thread.start() for thread in threads]
[thread.join() for thread in threads]
child = os.fork()
if child == 0: os._exit(7)
print(len(caught), os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), os.listdir('/proc/self/task'))
"""


def share_memory(one, other):
    """By kcmp(2); None where the kernel does not tell, or one of them is gone."""
    libc = ctypes.CDLL(None, use_errno=True)
    result = libc.syscall(SYS_KCMP, one, other, KCMP_VM, 0, 0)
    return None if result < 0 else result == 0


@unittest.skipUnless(os.uname().machine == "x86_64", "standbys are made on x86-64 alone (clone.h)")
class Standbys(Cold, harness.Case):
    def test_no_socket_of_others_is_in_the_network_of_the_next_box(self):
        standby, = wait_for_standby(self.daemon)
        template, = interpreters(self.daemon)
        for pid in (standby, template):
            with open(f"/proc/{pid}/net/unix", encoding="ascii") as file:
                there = {line.split()[6] for line in file.readlines()[1:]}
            links = [os.readlink(entry.path) for entry in os.scandir(f"/proc/{pid}/fd")]
            own = {link[len("socket:["):-1] for link in links if link.startswith("socket:[")}
            self.assertTrue(own, "the control: it has some")
            self.assertEqual(own & there, set())

    def test_it_takes_the_next_order(self):
        """And is gone before the program has its code, whose memory nobody else is in."""
        standbys, mark = wait_for_standby(self.daemon), harness.new_mark()
        known = [census.identity(pid) for pid in standbys]
        code = f"import os, time\nopen('{mark}', 'w').close()\nwhile not os.path.exists('go'): time.sleep(0.01)"

        def hold(number):
            if number == 0:
                return self.forked(code)
            places = census.wait_until(lambda: self.daemon.find(mark), harness.seconds(20), "the box")
            try:
                gone = [census.identity(pid) for pid in standbys] != known
                found = self.daemon.box_processes(templates=True)
                pairs = [pair for pair in itertools.combinations(found, 2) if share_memory(*pair)]
                return len(standbys), gone, share_memory(os.getpid(), os.getpid()), census.describe(sum(pairs, ()))
            finally:
                open(os.path.join(os.path.dirname(places[0]), "go"), "w", encoding="ascii").close()

        self.assertIn(harness.parallel(2, hold)[1], [(1, True, True, []), (1, True, None, [])])

    def test_a_program_is_one_as_any(self):
        expected = "0 True\n0 True True\nTrue\n4 7 ['2']\n"
        wait_for_standby(self.daemon)
        self.assertEqual(self.forked(THREAD), expected)
        for pid in wait_for_standby(self.daemon):
            os.kill(pid, signal.SIGKILL)
        census.wait_gone(lambda: standbys_of(self.daemon), harness.seconds(20), "the standby")
        self.assertEqual(self.forked(THREAD), expected, "the control: of the template itself")

    def test_the_number_of_its_thread(self):
        """Python notes it once, and the template's is another."""
        code = "import threading; print(threading.main_thread().native_id)"
        census.wait_until(
            lambda: self.run_code(code, preload=["threading"])["usage"]["source"] == "template",
            harness.seconds(20), "a template with threading")
        wait_for_standby(self.daemon)
        self.assertEqual(self.run_code(code, preload=["threading"])["stdout"], "2\n")

    def test_one_that_is_killed(self):
        """The call that comes next has a box of the template itself, and behind it is another."""
        for pid in wait_for_standby(self.daemon):
            os.kill(pid, signal.SIGKILL)
        self.assertEqual(self.forked("print(1)"), "1\n")
        self.assertEqual(len(wait_for_standby(self.daemon)), 1)

    def test_it_ends_with_its_template(self):
        found = wait_for_standby(self.daemon)
        known = [census.identity(pid) for pid in found]
        for pid in interpreters(self.daemon):
            os.kill(pid, signal.SIGKILL)
        census.wait_until(lambda: [census.identity(pid) for pid in found] != known, harness.seconds(20),
                          "the end of the standby")
        self.assertEqual(self.run_code("print(1)")["stdout"], "1\n")


def standbys_of(daemon):
    return list(filter(census.is_standby, daemon.box_processes(templates=True)))


if __name__ == "__main__":
    unittest.main()
