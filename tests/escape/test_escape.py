# SPDX-License-Identifier: Apache-2.0
"""Hostile code tries the ways out of a box. Each attempt has its positive control on the host."""
import errno
import json
import os
import socket
import subprocess
import tempfile
import unittest

from escape import EscapeCase, NAMESPACES, NETWORK, OWN_INIT, PROBES, handle_of, harness, need_root

# An ordinary user of Debian has no sbin in his.
PATH = "/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"


class Namespaces(EscapeCase):
    """Mounts and namespaces: nothing new can be made, nothing of the box's own changed."""

    def test_mount(self):
        self.attempt("mount_tmpfs", where=NAMESPACES)

    def test_bind_mount(self):
        self.attempt("mount_bind", where=NAMESPACES)

    def test_remount(self):
        self.attempt("remount_root_writable", where=NAMESPACES,
                     prepare="mkdir -p /tmp/probe-remount-control && "
                             "mount -t tmpfs none /tmp/probe-remount-control")

    def test_unmount(self):
        self.attempt("unmount_own", where=NAMESPACES,
                     prepare="mkdir -p /tmp/probe-unmount-control && "
                             "mount -t tmpfs none /tmp/probe-unmount-control")

    def test_new_mount_interface(self):
        self.attempt("new_style_mount", where=NAMESPACES)
        self.attempt("open_tree_clone", where=NAMESPACES)
        self.attempt("pick_mount", where=NAMESPACES)
        self.attempt("change_mount", where=NAMESPACES)
        self.attempt("move_mount", where=NAMESPACES,
                     prepare="mkdir -p /tmp/probe-move-control && "
                             "mount -t tmpfs none /tmp/probe-move-control")
        self.attempt_if_known("list_mounts")

    def test_chroot(self):
        self.attempt("change_root", where=NAMESPACES)

    def test_unshare(self):
        self.attempt("unshare_user")
        self.attempt("unshare_mount", where=NAMESPACES)
        self.attempt("unshare_network", where=NAMESPACES)
        self.attempt("unshare_time", where=NAMESPACES)

    def test_clone_into_namespaces(self):
        self.attempt("clone_user")
        self.attempt("clone3_user")
        self.attempt("clone_mount", where=NAMESPACES)

    def test_join(self):
        self.attempt("join_namespace", where=NAMESPACES)
        self.attempt("join_namespace_of_init", where=OWN_INIT)

    def test_above(self):
        """Those of a box belong to a user namespace above its own, which it can't even name."""
        for kind in ("mnt", "pid", "net", "ipc", "uts"):
            if harness.BOX_UID != 0:  # else they belong to its own
                self.attempt("namespace_above", kind)

    def test_programs_that_do_it(self):
        """The usual tools of bash users; the control is the same line in namespaces on the host."""
        for line in ("mount -t tmpfs none /mnt", "unshare --mount true", "chroot / true",
                     "nsenter --mount=/proc/self/ns/mnt true", "hostname probe"):
            with self.subTest(line=line):
                done = subprocess.run([*NAMESPACES, "sh", "-c", line], capture_output=True,
                                      text=True, timeout=harness.seconds(20), check=False,
                                      env={**os.environ, "PATH": PATH})
                self.assertEqual(done.returncode, 0, f"the control fails: {done}")
                result = self.run_code(f"{line}; echo status $?", "bash")
                self.assertNotIn("status 0", result["stdout"], result)
                self.assertIn("status", result["stdout"], result)


class Processes(EscapeCase):
    """Other processes, above all the first one of the box, can be neither read nor traced."""

    def test_ptrace(self):
        self.attempt("trace_child")
        self.attempt("seize_init", where=OWN_INIT)
        outcome, detail = self.in_box("trace_init")  # would stop the control's own init
        self.assertNotEqual(outcome, "ok", detail)

    def test_memory_of_init(self):
        self.attempt("read_memory_of_init", where=OWN_INIT)
        self.attempt("write_memory_of_init", where=OWN_INIT)
        self.attempt("open_memory_of_init", where=OWN_INIT)
        self.attempt("read_environment_of_init", where=OWN_INIT)

    def test_descriptors_of_init(self):
        self.attempt("descriptors_of_init", where=OWN_INIT)
        self.attempt("take_descriptor_of_init", where=OWN_INIT)

    def test_root_of_init(self):
        self.attempt("root_of_init", where=OWN_INIT)
        self.attempt("directory_of_init", where=OWN_INIT)
        self.attempt("compare_with_init", where=OWN_INIT)

    def test_limits_of_init(self):
        """One of processor time, which it is past already, would end it and so the box."""
        if harness.BOX_UID != 0:  # else it is kern's filter
            self.attempt("limit_init", where=OWN_INIT)

    def test_who_is_at_the_other_end(self):
        """The connection that a driver has leads to kernd, and names its process (SO_PEERPIDFD)."""
        try:
            with socket.socket(socket.AF_UNIX) as alone:
                alone.getsockopt(socket.SOL_SOCKET, 77, 4)
        except OSError as error:
            if error.errno == errno.ENOPROTOOPT:
                self.skipTest("not before Linux 6.5")
        self.attempt("signal_peer")
        self.attempt("namespace_of_peer")

    def test_signals_to_host_processes(self):
        host = [pid for pid in (os.getpid(), self.daemon.pid, os.getppid()) if pid > 20]
        self.attempt("signal_pids", *host)


class Kernel(EscapeCase):
    """Parts of the kernel that are a large target or belong to the host."""

    def test_bpf(self):
        if reason := need_root():
            self.skipTest(reason)
        self.attempt("load_bpf")
        self.attempt("perf_event")

    def test_keyrings(self):
        self.attempt("add_key")
        self.attempt("read_keyring")

    def test_io_uring(self):
        self.attempt("io_uring")

    def test_userfaultfd(self):
        self.attempt("userfaultfd")

    def test_kernel_log_clock_and_name(self):
        if reason := need_root():
            self.skipTest(reason)
        self.attempt("kernel_log")
        self.attempt("set_host_name", where=NAMESPACES)
        # Setting the clock has no harmless control: the refusal alone is checked.
        outcome, detail = self.in_box("host_clock")
        self.assertNotEqual(outcome, "ok", detail)

    def test_files_by_handle(self):
        if reason := need_root():
            self.skipTest(reason)
        self.attempt("open_by_handle")
        self.attempt("fanotify")

    def test_a_handle_of_a_file_of_the_host(self):
        """Made by root outside, of a file beside the workspace, on the same file system."""
        if reason := need_root():
            self.skipTest(reason)
        with tempfile.NamedTemporaryFile("w", dir="/tmp") as file:
            file.write("host secret")
            file.flush()
            kind, handle = handle_of(file.name)
            self.attempt("open_foreign_handle", kind, handle)

    def test_memory_that_nobody_else_can_see(self):
        self.attempt_if_known("secret_memory")

    def test_raw_sockets(self):
        self.attempt("raw_socket", where=NETWORK)
        self.attempt("packet_socket", where=NETWORK)

    def test_rare_sockets(self):
        if harness.BOX_UID != 0:  # else it is kern's filter
            self.attempt("rare_socket")

    def test_hypervisor_sockets(self):
        try:
            socket.socket(socket.AF_VSOCK, socket.SOCK_STREAM).close()
        except OSError:
            outcome, detail = self.in_box("vsock")  # not on this host: no control, only the refusal
            self.assertNotEqual(outcome, "ok", detail)
            return
        self.attempt("vsock")

    def test_kernel_settings(self):
        if reason := need_root():
            self.skipTest(reason)
        # The root of a user namespace owns what proc has of its PID 1 (proc(5)): of its own box.
        own = () if harness.BOX_UID == 0 else ("/proc/1/oom_score_adj", "/proc/1/uid_map")
        self.attempt("open_for_writing", "/proc/sys/kernel/core_pattern", "/proc/sysrq-trigger",
                     "/proc/sys/kernel/modprobe", "/proc/sys/vm/overcommit_memory",
                     "/proc/sys/kernel/hostname", "/sys/kernel/uevent_helper",
                     "/sys/fs/cgroup/release_agent", *own)

    LOOK_AT_PROC = """
import json, os
found = {"read": {}, "written": []}
null = os.stat("/dev/null").st_rdev
for folder, folders, names in os.walk("/proc"):
    folders[:] = [name for name in folders if not name.isdigit() and not os.path.islink(f"{folder}/{name}")]
    for path in (os.path.join(folder, name) for name in names):
        try:
            os.close(os.open(path, os.O_WRONLY | os.O_NOFOLLOW | os.O_NONBLOCK))
            if os.lstat(path).st_rdev != null: found["written"].append(path)  # else that lies over it
        except OSError: pass
for name in %r:
    try:
        with open("/proc/" + name, "rb") as file: found["read"][name] = file.read(4000).decode("latin-1")
    except OSError: pass
print(json.dumps(found))
"""
    # What root of the host reads, in files that are nobody else's or whose lines depend on the reader.
    ROOTS_OWN = ("kcore", "kmsg", "kpagecount", "kpageflags", "kpagecgroup", "slabinfo", "vmallocinfo",
                 "timer_list", "pagetypeinfo")
    BY_READER = ("keys", "key-users", "kallsyms", "iomem", "modules")

    def test_what_proc_tells_and_takes(self):
        """Of the machine's secrets nothing; settings of the box's own namespaces, and no others."""
        if reason := need_root():
            self.skipTest(reason)
        readable = {name for name in self.ROOTS_OWN if os.access(f"/proc/{name}", os.R_OK)}
        self.assertTrue(readable, "the control: root may read some of them")
        with open("/proc/kallsyms", encoding="ascii") as file:
            self.assertTrue(any(line.split()[0].strip("0") for line in file), "the control: addresses")
        result = self.run_code(self.LOOK_AT_PROC % (self.ROOTS_OWN + self.BY_READER,))
        self.assert_success(result)
        found = json.loads(result["stdout"])
        # An engine may lay something empty over them.
        told = {name for name, text in found["read"].items() if text}
        self.assertEqual(told & set(self.ROOTS_OWN), set())
        for name, place in (("kallsyms", 0), ("iomem", 0), ("modules", -1)):
            for line in found["read"].get(name, "").splitlines()[:-1]:
                words = line.replace("-", " ").split()
                self.assertEqual(words[place].removeprefix("0x").strip("0"), "", (name, line))
        for name in ("keys", "key-users"):
            self.assertEqual(found["read"].get(name, ""), "")
        own = ("/proc/sys/fs/mqueue/", "/proc/sys/kernel/msg", "/proc/sys/kernel/shm",
               "/proc/sys/kernel/sem", "/proc/sys/kernel/auto_msgmni", "/proc/sys/kernel/ns_last_pid",
               "/proc/sys/kernel/pid_max",
               "/proc/pressure/")  # anybody's: a trigger is its descriptor's, and ends with it
        self.assertEqual([path for path in found["written"] if not path.startswith(own)], [])

    def test_settings_of_its_namespaces_end_with_a_box(self):
        path = "/proc/sys/kernel/msgmax"
        with open(path, encoding="ascii") as file:
            before = file.read()
        self.run_code(f"open({path!r}, 'w').write('4321')")  # may be refused, too
        with open(path, encoding="ascii") as file:
            self.assertEqual(file.read(), before)
        self.assertNotEqual(self.run_code(f"print(open({path!r}).read())")["stdout"].strip(), "4321")

    def test_cgroup_files(self):
        code = """
import os
writable = [os.path.join(folder, name) for folder, _, names in os.walk("/sys/fs/cgroup")
            for name in names if os.access(os.path.join(folder, name), os.W_OK)]
print(writable[:5])
"""
        self.assert_success(self.run_code(code), "[]\n")


class FileSystems(EscapeCase):
    """The host's, of which a workspace is a part: what is done to all of it, or to stay in it."""

    def setUp(self):
        super().setUp()
        if reason := need_root():
            self.skipTest(reason)

    def test_files_that_nobody_can_remove(self):
        self.attempt_if_known("file_flags", 0x10)  # FS_IMMUTABLE_FL
        self.attempt_if_known("file_flags", 0x20)  # FS_APPEND_FL

    def test_shut_it_down(self):
        self.attempt_if_known("file_system", 0x8004587d, 99)  # FS_IOC_SHUTDOWN
        self.attempt_if_known("file_system", 0xc0185879, -1, 0, 0)  # FITRIM

    def test_freeze_it(self):
        self.attempt("freeze", "/dev/shm")

    def test_attributes(self):
        self.attempt("trusted_attribute")
        self.attempt("file_capability")


class Terminals(EscapeCase):
    def test_type_into_one(self):
        if reason := need_root():  # CAP_SYS_ADMIN, where dev.tty.legacy_tiocsti is 0
            self.skipTest(reason)
        self.attempt("type_into_terminal")

    def test_line_disciplines(self):
        self.attempt("line_discipline")


class Devices(EscapeCase):
    USUAL = {"null", "zero", "full", "random", "urandom", "tty", "ptmx", "console"}

    def test_make_one(self):
        if reason := need_root():
            self.skipTest(reason)
        self.attempt("make_device")

    def test_open_those_of_the_host(self):
        if reason := need_root():
            self.skipTest(reason)
        self.attempt("open_devices", "/dev/mem", "/dev/kmsg", "/dev/kvm", "/dev/fuse", "/dev/port",
                     "/dev/vda", "/dev/sda", "/dev/nvme0n1", "/dev/loop-control", "/dev/net/tun",
                     "/dev/vsock", "/dev/snapshot", "/dev/uinput", "/dev/hwrng")

    def test_only_the_usual_ones_are_there(self):
        code = """
import os, stat
found = set()
for folder, _, names in os.walk("/dev"):
    for name in names:
        mode = os.lstat(os.path.join(folder, name)).st_mode
        if stat.S_ISCHR(mode) or stat.S_ISBLK(mode): found.add(name)
print(sorted(found))
"""
        result = self.run_code(code)
        self.assert_success(result)
        found = set(eval(result["stdout"]))
        self.assertIn("null", found, "the control: devices are seen")
        self.assertLessEqual(found, self.USUAL)


class HostFiles(EscapeCase):
    """Files and sockets of the host by every name they could have."""

    def setUp(self):
        super().setUp()
        self.folder = tempfile.mkdtemp(prefix="kernd-host-", dir="/var/tmp")
        os.chmod(self.folder, 0o777)
        self.secret = os.path.join(self.folder, "secret")
        with open(self.secret, "w", encoding="ascii") as file:
            file.write("host secret")
        os.chmod(self.secret, 0o666)

    def tearDown(self):
        subprocess.run(["rm", "-rf", self.folder], check=False)

    def names(self):
        yield self.secret
        for prefix in ("/proc/1/root", "/proc/self/root", "/proc/1/cwd/..", "/../../..",
                       "/proc/self/cwd/../../../..", "/workspace/../../..", "/run/kernd/../../..",
                       "/run/kernd-lib/../..", "/oldroot", "/newroot", "/.oldroot", "/host"):
            yield prefix + self.secret

    def test_read(self):
        self.attempt("read_file", *self.names())

    def test_write(self):
        self.attempt("write_file", self.secret, *self.names())
        with open(self.secret, encoding="ascii") as file:
            written = file.read().count("written by the probe")
        self.assertGreaterEqual(written, 2, "the control wrote through the names that lead there")
        outcome, detail = self.in_box("write_file", *self.names())
        self.assertNotEqual(outcome, "ok", detail)
        with open(self.secret, encoding="ascii") as file:
            self.assertEqual(file.read().count("written by the probe"), written)

    def test_well_known_files(self):
        if reason := need_root():
            self.skipTest(reason)
        self.attempt("read_file", "/etc/shadow", "/etc/sudoers", "/root/.bashrc", "/etc/machine-id",
                     "/root/.profile", "/etc/fstab", "/var/lib/dpkg/status", "/proc/kcore",
                     "/etc/ssh/ssh_host_ed25519_key", "/boot/grub/grub.cfg", "/proc/1/mountinfo0")

    def test_files_of_the_daemon(self):
        self.attempt("read_file", self.daemon.token_path,
                     os.path.join(self.daemon.state, "kernd.db"), self.daemon.path("log"))

    def test_system_is_read_only(self):
        code = """
import os
tried = wrote = 0
for folder in ("/usr", "/usr/bin", "/usr/lib", "/etc", "/bin", "/run/kernd", "/run/kernd-lib", "/"):
    tried += 1
    try: open(os.path.join(folder, "probe"), "w"); wrote += 1
    except OSError: pass
for file in ("/usr/bin/env", "/etc/passwd", "/run/kernd-lib/kernd-init"):
    tried += 1
    try: os.open(file, os.O_WRONLY); wrote += 1
    except OSError: pass
open("/workspace/probe", "w")
print(tried, wrote)
"""
        self.assert_success(self.run_code(code), "11 0\n")

    def test_the_daemon_over_loopback(self):
        self.attempt("connect_tcp", "127.0.0.1", self.daemon.port)
        self.control("connect_tcp", "localhost", self.daemon.port)
        for host in ("localhost", "0.0.0.0", "::1", socket.gethostname()):
            outcome, detail = self.in_box("connect_tcp", host, self.daemon.port)
            self.assertNotEqual(outcome, "ok", detail)

    def test_the_daemon_with_bash(self):
        line = f"exec 3<>/dev/tcp/127.0.0.1/{self.daemon.port} && echo reached"
        done = subprocess.run(["bash", "-c", line], capture_output=True, text=True, check=False)
        self.assertEqual(done.stdout, "reached\n", "the control")
        result = self.run_code(line, "bash")
        self.assertNotIn("reached", result["stdout"])
        self.assertIn("refused", result["stderr"])

    def test_sockets_of_the_host(self):
        name = "kernd-probe-" + harness.new_mark()
        path = os.path.join(self.folder, "listening")
        with socket.socket(socket.AF_UNIX) as abstract, socket.socket(socket.AF_UNIX) as named:
            abstract.bind("\0" + name)
            abstract.listen()
            named.bind(path)
            named.listen()
            os.chmod(path, 0o777)
            self.attempt("connect_unix", "@" + name, path, self.daemon.socket_path,
                         "/proc/1/root" + path, "/run/dbus/system_bus_socket",
                         "/run/systemd/private", "/run/docker.sock", "/run/kernd/init.sock",
                         "/run/kernd/driver.sock")

    def test_rights(self):
        self.attempt("gain_rights")
        if harness.BOX_UID != 0:  # else it is that of its own user namespace, without a capability
            self.attempt("become_root", where=NAMESPACES)

    def test_set_user_id_programs(self):
        result = self.run_code("""
for program in /usr/bin/su /usr/bin/mount /usr/bin/passwd /usr/bin/sudo /usr/bin/newgrp; do
  test -u $program && echo $program is set-user-id
done
su -c id root </dev/null; echo su $?
cp /usr/bin/id mine; chmod 6755 mine; ./mine -u; ./mine -g
""", "bash")
        self.assertIn("su 1", result["stdout"].replace("su 126", "su 1").replace("su 127", "su 1"))
        self.assertNotIn("uid=0", result["stdout"])
        self.assertTrue(result["stdout"].endswith(f"{harness.BOX_UID}\n" * 2), result["stdout"])


class TheProbesThemselves(unittest.TestCase):
    def test_every_probe_is_used(self):
        with open(__file__, encoding="utf-8") as file:
            text = file.read()
        here = os.path.dirname(os.path.abspath(__file__))
        for name in os.listdir(here):
            if name.startswith("test_") and name.endswith(".py"):
                with open(os.path.join(here, name), encoding="utf-8") as file:
                    text += file.read()
        names = [line.split("(")[0][4:] for before, line in
                 zip(PROBES.splitlines(), PROBES.splitlines()[1:]) if before == "@probe"]
        self.assertGreater(len(names), 40)
        self.assertEqual([name for name in names if f'"{name}"' not in text], [])


if __name__ == "__main__":
    unittest.main()
