# SPDX-License-Identifier: Apache-2.0
"""Attempts to leave a box or to reach what is outside, one function each.

The same text runs in a box (where each attempt must fail) and on the bare host (where it must
succeed: the positive control, without which a failure in the box would prove nothing). A probe
prints "begin", then one JSON line: {"outcome": "ok" | "refused", "error": ..., "detail": ...}.
A probe returns a value when it got through and raises OSError when it was refused.

    python3 probes.py NAME [ARGUMENT...]
"""
import ctypes
import errno
import fcntl
import json
import os
import resource
import socket
import struct
import sys

LIBC = ctypes.CDLL(None, use_errno=True)
NUMBERS = {  # x86_64, aarch64 (asm/unistd.h)
    "ptrace": (101, 117), "bpf": (321, 280), "add_key": (248, 217), "keyctl": (250, 219),
    "io_uring_setup": (425, 425), "userfaultfd": (323, 282), "perf_event_open": (298, 241),
    "setns": (308, 268), "unshare": (272, 97), "clone3": (435, 435), "clone": (56, 220),
    "open_by_handle_at": (304, 265), "name_to_handle_at": (303, 264), "fsopen": (430, 430),
    "open_tree": (428, 428), "process_vm_readv": (310, 270), "pidfd_open": (434, 434),
    "pidfd_getfd": (438, 438), "kcmp": (312, 272), "mount_setattr": (442, 442),
    "pivot_root": (155, 41), "chroot": (161, 51), "quotactl": (179, 60), "acct": (163, 89),
    "init_module": (175, 105), "finit_module": (313, 273), "kexec_load": (246, 104),
    "syslog": (103, 116), "settimeofday": (164, 170), "sethostname": (170, 161),
    "swapon": (167, 224), "memfd_secret": (447, 447), "fanotify_init": (300, 262),
    "move_pages": (279, 239), "personality": (135, 92), "modify_ldt": (154, None),
    "iopl": (172, None), "lookup_dcookie": (212, 18), "nfsservctl": (180, 42),
    "vhangup": (153, 58), "setdomainname": (171, 162), "pidfd_send_signal": (424, 424),
    "process_vm_writev": (311, 271), "listmount": (458, 458), "move_mount": (429, 429),
    "fspick": (433, 433),
}
COLUMN = 1 if os.uname().machine == "aarch64" else 0
CLONE_NEWNS, CLONE_NEWUSER, CLONE_NEWNET, CLONE_NEWPID = 0x20000, 0x10000000, 0x40000000, 0x20000000
SIGCHLD = 17
PROBES = {}


def probe(function):
    PROBES[function.__name__] = function
    return function


def call(name, *arguments):
    """A raw system call; OSError when it fails."""
    number = NUMBERS[name][COLUMN]
    if number is None:
        raise OSError(errno.ENOSYS, "not on this architecture")
    typed = [ctypes.c_long(a) if isinstance(a, int) else a for a in arguments]
    result = LIBC.syscall(ctypes.c_long(number), *typed)
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


def checked(result):
    if result < 0:
        raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))
    return result


# ---- namespaces and mounts ----

@probe
def mount_tmpfs():
    os.makedirs("/tmp/probe-mount", exist_ok=True)
    return checked(LIBC.mount(b"none", b"/tmp/probe-mount", b"tmpfs", 0, None))


@probe
def mount_bind():
    os.makedirs("/tmp/probe-bind", exist_ok=True)
    return checked(LIBC.mount(b"/usr", b"/tmp/probe-bind", None, 4096, None))  # MS_BIND


@probe
def remount_root_writable():
    os.makedirs("/tmp/probe-remount", exist_ok=True)
    target = b"/usr"
    if os.path.ismount("/tmp/probe-remount-control"):
        target = b"/tmp/probe-remount-control"
    return checked(LIBC.mount(None, target, None, 32 | 4096, None))  # MS_REMOUNT | MS_BIND


@probe
def unmount_own():
    for target in (b"/proc", b"/workspace", b"/usr", b"/tmp/probe-unmount-control"):
        if LIBC.umount2(target, 2) == 0:  # MNT_DETACH
            return target.decode()
    raise OSError(ctypes.get_errno(), os.strerror(ctypes.get_errno()))


@probe
def new_style_mount():
    return call("fsopen", b"tmpfs", 0)


@probe
def open_tree_clone():
    return call("open_tree", -100, b"/usr", 1)  # AT_FDCWD, OPEN_TREE_CLONE


@probe
def pick_mount():
    return call("fspick", -100, b"/", 0)


@probe
def change_mount():
    attributes = struct.pack("=4Q", 2, 0, 0, 0)  # MOUNT_ATTR_NOSUID: less, so that the kernel does it
    return call("mount_setattr", -100, b"/", 0, attributes, len(attributes))


@probe
def move_mount():
    os.makedirs("/tmp/probe-move", exist_ok=True)
    target = b"/tmp/probe-move-control" if os.path.ismount("/tmp/probe-move-control") else b"/proc"
    return call("move_mount", -100, target, -100, b"/tmp/probe-move", 0)


@probe
def list_mounts():
    found = ctypes.create_string_buffer(80)
    return call("listmount", struct.pack("=IIQQ", 24, 0, (1 << 64) - 1, 0), found, 10, 0)  # LSMT_ROOT


@probe
def change_root():
    os.makedirs("/tmp/probe-root", exist_ok=True)
    return call("chroot", b"/tmp/probe-root")


@probe
def unshare_user():
    return call("unshare", CLONE_NEWUSER)


@probe
def unshare_mount():
    return call("unshare", CLONE_NEWNS)


@probe
def unshare_network():
    return call("unshare", CLONE_NEWNET)


@probe
def unshare_time():
    return call("unshare", 0x80)  # CLONE_NEWTIME


def reap(pid):
    if pid == 0:
        os._exit(0)
    return os.waitpid(pid, 0)[1]


@probe
def clone_user():
    return reap(call("clone", CLONE_NEWUSER | SIGCHLD, 0, 0, 0, 0))


@probe
def clone_mount():
    return reap(call("clone", CLONE_NEWNS | SIGCHLD, 0, 0, 0, 0))


@probe
def clone3_user():
    arguments = struct.pack("=8Q", CLONE_NEWUSER, 0, 0, 0, SIGCHLD, 0, 0, 0)
    return reap(call("clone3", arguments, len(arguments)))


@probe
def join_namespace(pid="self"):
    fd = os.open(f"/proc/{pid}/ns/uts", os.O_RDONLY)
    return call("setns", fd, 0)


@probe
def join_namespace_of_init():
    return join_namespace("1")


# ---- other processes ----

def child_that_waits():
    pid = os.fork()
    if pid == 0:
        LIBC.pause()
        os._exit(0)
    return pid


@probe
def trace_child():
    pid = child_that_waits()
    try:
        return call("ptrace", 16, pid, 0, 0)  # PTRACE_ATTACH
    finally:
        os.kill(pid, 9)


@probe
def trace_init():
    return call("ptrace", 16, 1, 0, 0)


@probe
def seize_init():
    return call("ptrace", 0x4206, 1, 0, 0)  # PTRACE_SEIZE: does not stop it


def read_memory(pid):
    buffer = ctypes.create_string_buffer(16)
    with open(f"/proc/{pid}/maps", encoding="ascii") as file:
        first = file.readline()
    address = int(first.split("-")[0], 16) if first else 0x400000
    local = struct.pack("=QQ", ctypes.addressof(buffer), 16)
    remote = struct.pack("=QQ", address, 16)
    return call("process_vm_readv", pid, local, 1, remote, 1, 0)


@probe
def read_memory_of_init():
    return read_memory(1)


@probe
def write_memory_of_init():
    """What is there already."""
    buffer = ctypes.create_string_buffer(1)
    with open("/proc/1/maps", encoding="ascii") as file:
        lines = [line.split() for line in file]
    start = next((line[0] for line in lines if line[1].startswith("rw")), "400000-").split("-")[0]
    local = struct.pack("=QQ", ctypes.addressof(buffer), 1)
    remote = struct.pack("=QQ", int(start, 16), 1)
    if lines:
        call("process_vm_readv", 1, local, 1, remote, 1, 0)
    return call("process_vm_writev", 1, local, 1, remote, 1, 0)


@probe
def open_memory_of_init():
    return os.open("/proc/1/mem", os.O_RDONLY)


@probe
def read_environment_of_init():
    with open("/proc/1/environ", "rb") as file:
        return len(file.read())


@probe
def descriptors_of_init():
    links = [os.readlink(f"/proc/1/fd/{fd}") for fd in os.listdir("/proc/1/fd")]
    return links


@probe
def take_descriptor_of_init():
    pidfd = call("pidfd_open", 1, 0)
    last = None
    for number in range(16):
        try:
            return call("pidfd_getfd", pidfd, number, 0)
        except OSError as error:
            last = error
    raise last


@probe
def root_of_init():
    return os.listdir("/proc/1/root/")


@probe
def directory_of_init():
    return os.readlink("/proc/1/cwd")


@probe
def compare_with_init():
    return call("kcmp", os.getpid(), 1, 0, 0, 0) + 1


@probe
def limit_init():
    limits = resource.prlimit(1, resource.RLIMIT_CPU)
    return resource.prlimit(1, resource.RLIMIT_CPU, limits)


def peer():
    """
    A descriptor of the process at the other end of a connection that is open here (SO_PEERPIDFD, Linux
    6.5): in a box kernd, on the host we ourselves.
    """
    pair = socket.socketpair()
    own = [end.fileno() for end in pair] if os.path.exists("/run/kernd-lib") else []
    for name in map(int, os.listdir("/proc/self/fd")):
        path = f"/proc/self/fd/{name}"  # one is gone already: the list's own
        if name not in own and os.path.islink(path) and os.readlink(path).startswith("socket:"):
            with socket.socket(fileno=os.dup(name)) as connection:
                return struct.unpack("=i", connection.getsockopt(socket.SOL_SOCKET, 77, 4))[0]
    raise LookupError("there is no connection")


@probe
def signal_peer():
    return call("pidfd_send_signal", peer(), 0, 0, 0) + 1


@probe
def namespace_of_peer():
    reached, last, process = [], None, peer()
    for request in range(0xff01, 0xff0b):  # PIDFD_GET_CGROUP_NAMESPACE ... (Linux 6.11)
        try:
            reached.append(fcntl.ioctl(process, request))
        except OSError as error:
            last = error
    if not reached:
        raise last
    return reached


@probe
def namespace_above(kind):
    """The user namespace that one belongs to (ioctl_ns(2), NS_GET_USERNS)."""
    return fcntl.ioctl(os.open(f"/proc/self/ns/{kind}", os.O_RDONLY), 0xb701)


@probe
def signal_pids(*pids):
    """Which of these processes can be signalled?"""
    reached = []
    for pid in map(int, pids):
        try:
            os.kill(pid, 0)
            reached.append(pid)
        except (ProcessLookupError, PermissionError):
            pass
    if not reached:
        raise OSError(errno.ESRCH, "none of them is there")
    return reached


# ---- the kernel ----

@probe
def load_bpf():
    attributes = struct.pack("=4I", 2, 4, 4, 1) + bytes(56)  # BPF_MAP_TYPE_ARRAY
    return call("bpf", 0, attributes, len(attributes))


@probe
def add_key():
    return call("add_key", b"user", b"kernd-probe", b"x", 1, -3)  # the session keyring


@probe
def read_keyring():
    return call("keyctl", 0, -4, 1)  # KEYCTL_GET_KEYRING_ID of the user keyring


@probe
def io_uring():
    return call("io_uring_setup", 4, bytes(120))


@probe
def userfaultfd():
    return call("userfaultfd", 0x80000 | 1)  # O_CLOEXEC | UFFD_USER_MODE_ONLY


@probe
def perf_event():
    attributes = struct.pack("=IIQQ", 1, 112, 0, 0) + bytes(88)  # software event, cpu clock
    return call("perf_event_open", attributes, 0, -1, -1, 0)


@probe
def kernel_log():
    return call("syslog", 10, 0, 0)  # SYSLOG_ACTION_SIZE_BUFFER


@probe
def secret_memory():
    return call("memfd_secret", 0)


@probe
def open_foreign_handle(kind, handle):
    """One that was made elsewhere: files can be opened by it that no name here leads to."""
    data = bytes.fromhex(handle)
    directory = os.open(os.getcwd(), os.O_RDONLY)
    file = call("open_by_handle_at", directory, struct.pack("=Ii", len(data), int(kind)) + data, 0)
    return os.read(file, 100).decode()


@probe
def open_by_handle():
    handle = ctypes.create_string_buffer(struct.pack("=Ii", 128, 0) + bytes(128))
    mount_id = ctypes.c_int()
    call("name_to_handle_at", -100, b"/etc/passwd", handle, ctypes.byref(mount_id), 0)
    directory = os.open("/", os.O_RDONLY)
    return call("open_by_handle_at", directory, handle, 0)


@probe
def fanotify():
    return call("fanotify_init", 0, 0)


@probe
def set_host_name():
    return call("sethostname", b"probe", 5)


@probe
def host_clock():
    return call("settimeofday", 0, struct.pack("=ii", 0, 0))


@probe
def raw_socket():
    return socket.socket(socket.AF_INET, socket.SOCK_RAW, socket.IPPROTO_ICMP).fileno()


@probe
def rare_socket():
    """A protocol that this kernel has; others would be loaded for whoever asks."""
    last = None
    for kind, protocol in ((socket.SOCK_STREAM, 262), (socket.SOCK_DGRAM, 136),
                           (socket.SOCK_SEQPACKET, 132), (6, 33), (socket.SOCK_DGRAM, 115)):
        try:
            return socket.socket(socket.AF_INET, kind, protocol).fileno()
        except OSError as error:
            last = error
    raise last


@probe
def packet_socket():
    return socket.socket(socket.AF_PACKET, socket.SOCK_RAW).fileno()


@probe
def vsock():
    return socket.socket(40, socket.SOCK_STREAM).fileno()  # AF_VSOCK reaches the hypervisor


@probe
def open_for_writing(*paths):
    """Opens without writing: which of these kernel knobs could be turned?"""
    reached, last = [], None
    for path in paths:
        try:
            os.close(os.open(path, os.O_WRONLY))
            reached.append(path)
        except OSError as error:
            last = error
    if not reached:
        raise last
    return reached


def own_file():
    return os.open("probe-file", os.O_CREAT | os.O_RDWR, 0o600)


@probe
def file_flags(flags):
    """Files that nobody can remove (FS_IMMUTABLE_FL, FS_APPEND_FL; ioctl_iflags(2))."""
    file, before = own_file(), bytearray(8)
    fcntl.ioctl(file, 0x80086601, before)  # FS_IOC_GETFLAGS
    changed = struct.pack("=q", struct.unpack("=q", before)[0] | int(flags, 0))
    fcntl.ioctl(file, 0x40086602, changed)  # FS_IOC_SETFLAGS
    fcntl.ioctl(file, 0x40086602, before)
    return "set"


@probe
def file_system(request, *words):
    """
    What is done to all of it, with arguments that no file system takes: EINVAL, or that this one has
    nothing of the kind, comes behind the question whether the caller may.
    """
    try:
        return fcntl.ioctl(os.open(os.getcwd(), os.O_RDONLY), int(request, 0),
                           struct.pack(f"={len(words)}q", *map(int, words)))
    except OSError as error:
        if error.errno not in (errno.EINVAL, errno.EOPNOTSUPP):
            raise
        return error.strerror


@probe
def freeze(place):
    """Only where there is nothing to freeze (EOPNOTSUPP, ioctl_fs.c): a success would hold up the host."""
    place = os.open(place, os.O_RDONLY)
    try:
        fcntl.ioctl(place, 0xc0045877, 0)  # FIFREEZE
        fcntl.ioctl(place, 0xc0045878, 0)  # FITHAW
    except OSError as error:
        if error.errno != errno.EOPNOTSUPP:
            raise
    return "it was not a matter of rights"


@probe
def trusted_attribute():
    return os.setxattr(own_file(), "trusted.probe", b"x") or "set"


@probe
def file_capability():
    return os.setxattr(own_file(), "security.capability", struct.pack("=5I", 0x2000001, 128, 0, 0, 0)) or "set"


@probe
def type_into_terminal():
    """Into one of its own, even."""
    _, terminal = os.openpty()
    if os.fork() == 0:
        try:
            os.setsid()
            fcntl.ioctl(terminal, 0x540e, 0)  # TIOCSCTTY
            fcntl.ioctl(terminal, 0x5412, b"x")  # TIOCSTI
        except OSError as error:
            os._exit(error.errno)
        os._exit(0)
    error = os.waitstatus_to_exitcode(os.wait()[1])
    if error:
        raise OSError(error, os.strerror(error))
    return "typed"


@probe
def line_discipline():
    """Of a terminal of its own; others than this one would be loaded for whoever asks."""
    _, terminal = os.openpty()
    return len(fcntl.ioctl(terminal, 0x5423, struct.pack("=i", 0)))  # TIOCSETD, N_TTY


@probe
def make_device():
    os.mknod("probe-device", 0o20666, os.makedev(1, 3))
    with open("probe-device", "wb", buffering=0) as file:
        return file.write(b"x")


@probe
def open_devices(*paths):
    reached, last = [], OSError(errno.ENOENT, "none of them is there")
    for path in paths:
        try:
            os.close(os.open(path, os.O_RDONLY | os.O_NONBLOCK))
            reached.append(path)
        except OSError as error:
            last = error
    if not reached:
        raise last
    return reached


# ---- files and sockets of the host ----

@probe
def read_file(*paths):
    reached, last = {}, None
    for path in paths:
        try:
            with open(path, "rb") as file:
                reached[path] = file.read(200).decode("latin-1")
        except OSError as error:
            last = error
    if not reached:
        raise last
    return reached


@probe
def write_file(*paths):
    reached, last = [], None
    for path in paths:
        try:
            with open(path, "ab") as file:
                file.write(b"written by the probe\n")
            reached.append(path)
        except OSError as error:
            last = error
    if not reached:
        raise last
    return reached


@probe
def connect_tcp(host, port):
    socket.create_connection((host, int(port)), 5).close()
    return "connected"


@probe
def connect_unix(*paths):
    """A leading @ is an abstract name."""
    reached, last = [], None
    for path in paths:
        with socket.socket(socket.AF_UNIX) as connection:
            try:
                connection.connect("\0" + path[1:] if path.startswith("@") else path)
                reached.append(path)
            except OSError as error:
                last = error
    if not reached:
        raise last
    return reached


@probe
def gain_rights():
    """Set-user-id programs must give nothing."""
    status = dict(line.split(":", 1) for line in open("/proc/self/status", encoding="utf-8")
                  if ":" in line)
    capable = any(int(status[name], 16) for name in ("CapEff", "CapPrm", "CapInh", "CapAmb"))
    if status["NoNewPrivs"].strip() == "1" and status["Seccomp"].strip() == "2" and not capable:
        raise OSError(errno.EPERM, "no new rights are possible")
    return {name: status[name].strip() for name in ("CapEff", "NoNewPrivs", "Seccomp")}


@probe
def become_root():
    os.setuid(0)
    return os.getuid()


def main(name, *arguments):
    print("begin", flush=True)
    try:
        value = PROBES[name](*arguments)
        answer = {"outcome": "ok", "detail": value}
    except OSError as error:
        answer = {"outcome": "refused", "error": errno.errorcode.get(error.errno, str(error.errno)),
                  "detail": str(error)}
    print(json.dumps(answer), flush=True)


if __name__ == "__main__" and len(sys.argv) > 1:
    main(*sys.argv[1:])
