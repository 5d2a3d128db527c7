# SPDX-License-Identifier: Apache-2.0
#
# driver_preload: imports modules before anybody's cell is there.
#
# Owns: nothing. Main thread only. A module that can't be imported is the cell's affair, which will
# see the error itself; what modules print while they are imported is nobody's output.
import posix
import sys

import driver_wire as wire

__builtins__ = wire.BUILTINS


def run(names, workspace):
    found = sys.path[:]
    seen = [entry for entry in found if not is_of_call(entry, workspace)]
    sys.path[:] = seen
    kept = silence()
    try:
        for name in names:
            try:
                __import__(name)
            except BaseException:
                pass
    finally:
        restore(kept)
        # Imports may add directories; those of the call keep their place.
        sys.path[:] = found + [entry for entry in sys.path if entry not in seen]


def is_of_call(entry, workspace):
    """Files of the workspace may change until the cell comes; packages of a setup don't."""
    return entry in ("", workspace) or (
        entry.startswith(workspace + "/") and entry != workspace + "/.deps"
    )


def silence():
    """Standard output and error lead nowhere; what they were, to be restored."""
    kept = [posix.dup(1), posix.dup(2)]
    nowhere = posix.open("/dev/null", posix.O_WRONLY)
    posix.dup2(nowhere, 1)
    posix.dup2(nowhere, 2)
    posix.close(nowhere)
    return kept


def restore(kept):
    for stream, number, old in ((sys.stdout, 1, kept[0]), (sys.stderr, 2, kept[1])):
        stream.flush()
        posix.dup2(old, number)
        posix.close(old)
