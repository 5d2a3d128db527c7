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
TO_BE_PREPARED = 2  # kernd_template_serve


def main():
    prepared = driver_main.Prepared(library)
    prepared.finish(found, driver_main.WORKSPACE)
    forker = _ctypes.dlopen(library + "/kernd-template.so", RTLD_NOW)
    check = _ctypes.dlsym(forker, "kernd_template_check")
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
    gc.collect()
    gc.freeze()
    if call(check, (orders,)) != 0:
        raise SystemExit(1)
    greeting = driver_main.greeting()
    posix.write(orders, b"%c%b%b" % (wire.READY, len(greeting).to_bytes(4, "big"), greeting))
    became = call(serve, (orders,))
    if not became:
        return
    # From here on: one of the boxes.
    seed_anew()
    link = wire.Link(driver_main.SOCKET)
    if became == TO_BE_PREPARED:
        prepare(prepared, link)
    driver_main.greet(link)
    try:
        prepared.serve(link, driver_main.WORKSPACE)
    except SystemExit as end:
        leaving.expect(end.code)
        raise
    leaving.expect(None)


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


def seed_anew():
    """
    What was drawn at random before the fork is the same in all boxes of this template. Modules that
    register for it (random) or look at the number of their process (ssl, numpy's SeedSequence users)
    see to it themselves; these don't.
    """
    modules = sys.modules
    if "numpy.random" in modules:
        # All of the generator's state: seed() would make it of fewer bytes with much more code.
        state = modules["numpy"].frombuffer(posix.urandom(4 * 624), "uint32")
        modules["numpy.random"].set_state(("MT19937", state, 624))
    if "torch" in modules:
        modules["torch"].seed()
    if "tempfile" in modules:
        modules["tempfile"]._name_sequence = None
    if "uuid" in modules:
        modules["uuid"]._node = modules["uuid"]._last_timestamp = None
    if "multiprocessing.process" in modules:
        process = modules["multiprocessing.process"]
        process.current_process()._config["authkey"] = process.AuthenticationString(posix.urandom(32))


main()
