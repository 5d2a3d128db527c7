# SPDX-License-Identifier: Apache-2.0
#
# driver_template: a Python interpreter that runs no cell, but makes boxes of itself that do.
#
# Started by kernd-init as "python3 -S driver_template.py --preload MODULE...", the modules being
# imported once for all of them. kernd-template.so does the forking (template.h). Owns the connection on which
# kernd orders boxes. Main thread only; what has more threads, or keeps files open, is refused.
import sys

library = __file__.rpartition("/")[0]
standard = getattr(sys, "_stdlib_dir", None) or sys.prefix + "/lib/python"
found = sys.path[:]
sys.path[:] = [library] + [entry for entry in found if entry.startswith(standard)]

import _ctypes  # noqa: E402
import _socket  # noqa: E402
import gc  # noqa: E402
import posix  # noqa: E402

import driver_cell  # noqa: E402
import driver_leave  # noqa: E402
import driver_main  # noqa: E402
import driver_wire as wire  # noqa: E402

RTLD_NOW = 2
PREPARES, AHEAD = 2, 4  # kernd_template_serve
# An interpreter of 3.11 makes code its own quick form at its eighth run, and then what that notes.
REHEARSALS = 24


def main():
    prepared = driver_main.Prepared(library)
    prepared.finish(found, driver_main.WORKSPACE)
    forker = _ctypes.dlopen(library + "/kernd-template.so", RTLD_NOW)
    check = _ctypes.dlsym(forker, "kernd_template_check")
    study = _ctypes.dlsym(forker, "kernd_template_study")
    serve = _ctypes.dlsym(forker, "kernd_template_serve")
    leave = _ctypes.dlsym(forker, "kernd_template_leave")
    call = _ctypes.call_cdeclfunction
    leaving = driver_leave.Leaving(lambda status: call(leave, (status,)))
    # To a cell it is a module like any other, which it has not imported yet.
    del sys.modules["_ctypes"]
    orders = connect()
    driver_cell.warm_up()
    preload = driver_main.split_arguments(sys.argv[1:])[1]
    if preload:
        keep_openssl()
    prepared.preload(preload, driver_main.WORKSPACE)
    leaving.keep_modules()
    seeders = [seed for name, seed in SEEDERS.items() if name in sys.modules]
    greeting = wire.make_frame(wire.READY, driver_main.greeting())
    gc.collect()
    gc.freeze()
    link = rehearse(prepared, leaving)
    if call(check, (orders,)) != 0:
        raise SystemExit(1)
    stage, _, frame = set_stage()
    posix.write(stage[1], frame)
    became = call(study, ())
    if became:
        link.inherit(stage[0])
    else:
        clear(stage)
        posix.write(orders, greeting)
        became = call(serve, (orders, greeting, len(greeting)))
        if not became:
            return
        link.adopt()
    # From here on: one of the boxes, connected.
    for seed in seeders:
        seed(sys.modules)
    if became & PREPARES:
        prepare(prepared, link)
        driver_main.greet(link)
    if became & AHEAD:
        # There is time to copy the pages that will be written.
        prepared.touch()
        leaving.touch()
    try:
        prepared.serve(link)
    except SystemExit as end:
        leaving.expect(end.code)
        raise
    leaving.expect(None)
    leaving.leave()


def keep_openssl():
    """
    At exit(3) it would free all that it has, 200 pages to copy in a box and nothing to be seen of it
    (OPENSSL_INIT_NO_ATEXIT of OPENSSL_init_crypto(3), to be said before its first use).
    """
    try:
        library = _ctypes.dlopen("libcrypto.so.3", RTLD_NOW)
        _ctypes.call_cdeclfunction(_ctypes.dlsym(library, "OPENSSL_init_crypto"), (0x80000, None))
    except OSError:
        return  # another version, or none


def prepare(prepared, link):
    """What differs from box to box before the code comes: packages, and what to import of them."""
    fields = driver_main.fields_of(link.receive()[1], 0)
    driver_main.set_environment(fields.get(wire.FIELD_ENVIRONMENT, b""))
    path = posix.environ.get(b"PYTHONPATH")
    if path:
        # Where an interpreter has it that was started with it: behind the directory of the program.
        sys.path[1:1] = path.decode("utf-8", "surrogateescape").split(":")
    names = fields.get(wire.FIELD_PRELOAD, b"").decode().split("\0")
    prepared.preload([name for name in names if name], driver_main.WORKSPACE)


def connect():
    link = _socket.socket(_socket.AF_UNIX, _socket.SOCK_STREAM)
    link.connect(driver_main.SOCKET)
    return link.detach()


def rehearse(prepared, leaving):
    """
    What a program talks to kernd by; its connection will have that number (template_program.c). All of
    the driver that runs in a program has then run here: what the interpreter notes at the first time
    (where it found a method) would be written in each, and so a page copied for it. What is made here
    is not frozen: with the variables of a program it may be part of a cycle.
    """
    stage, name, frame = set_stage()
    posix.dup2(stage[0], wire.HIGH_DESCRIPTOR, inheritable=False)
    link = wire.Link(wire.HIGH_DESCRIPTOR, None)
    finders = sys.meta_path
    for _ in range(REHEARSALS):
        prepared.prepare_runner(link, name)
        posix.write(stage[1], frame)
        link.adopt()
        prepared.rehearse(link)
        link.release()
        leaving.rehearse()
        sys.meta_path = finders
    clear(stage)
    posix.close(wire.HIGH_DESCRIPTOR)
    prepared.prepare_runner(link, driver_main.SCRIPT)
    leaving.keep(finders)
    return link


def set_stage():
    """
    Descriptors, to be closed: a connection, its far end, the code of a cell of nothing; the name of
    that code, and what is to be written to the far end for it.
    """
    near, far = _socket.socketpair(_socket.AF_UNIX, _socket.SOCK_STREAM)
    code = posix.memfd_create("code", posix.MFD_CLOEXEC)
    posix.write(code, b"pass\n")
    name = "/proc/self/fd/%d" % code
    frame = wire.make_frame(wire.CELL, driver_main.cell_of_file(name))
    return (near.detach(), far.detach(), code), name, frame


def clear(stage):
    for number in stage:
        posix.close(number)


# What was drawn at random before the fork is the same in all boxes of this template. Modules that
# register for it (random) or look at the number of their process (ssl, numpy's SeedSequence users)
# see to it themselves; these don't.


def seed_numpy(modules):
    # All of the generator's state: seed() would make it of fewer bytes with much more code.
    state = modules["numpy"].frombuffer(posix.urandom(4 * 624), "uint32")
    modules["numpy.random"].set_state(("MT19937", state, 624))


def seed_torch(modules):
    modules["torch"].seed()


def seed_tempfile(modules):
    modules["tempfile"]._name_sequence = None


def seed_uuid(modules):
    modules["uuid"]._node = modules["uuid"]._last_timestamp = None


def seed_multiprocessing(modules):
    process = modules["multiprocessing.process"]
    process.current_process()._config["authkey"] = process.AuthenticationString(posix.urandom(32))


def note_thread(modules):
    # Of the main one, noted when it was made; some versions see to it at a fork, which was another.
    modules["threading"].main_thread()._set_native_id()


SEEDERS = {
    "threading": note_thread,
    "numpy.random": seed_numpy,
    "torch": seed_torch,
    "tempfile": seed_tempfile,
    "uuid": seed_uuid,
    "multiprocessing.process": seed_multiprocessing,
}

main()
