# SPDX-License-Identifier: Apache-2.0
"""Classes of tests once more, over daemons with further arguments."""
import atexit

import harness

_daemons = {}  # by their arguments
_to_come = {}  # how many classes will use each


class SharedDaemon(harness.Daemon):
    """Of all classes of a file that have the same arguments: the first starts it, the last ends it."""

    def start(self):
        return super().start() if self.process is None else self

    def stop(self):
        key = tuple(self.arguments)
        _to_come[key] -= 1
        if _to_come[key] == 0:
            super().stop()


class Shared:
    @classmethod
    def make_daemon(cls):
        if cls.daemon_arguments not in _daemons:
            _daemons[cls.daemon_arguments] = SharedDaemon(cls.daemon_arguments, cls.daemon_environment)
        return _daemons[cls.daemon_arguments]


@atexit.register
def _remove():
    """Where only some of the classes ran."""
    for daemon in _daemons.values():
        daemon.remove()


def again(namespace, cases, arguments, *mixins, suffix=""):
    """Puts the classes into the globals of a file of tests."""
    for case in cases:
        name = f"{case.__module__}_{case.__name__}{suffix}"
        made = type(name, (Shared, *mixins, case), {
            "daemon_arguments": (*case.daemon_arguments, *arguments),
            "__module__": namespace["__name__"]})  # by which the runner finds it, when it looks again
        _to_come[made.daemon_arguments] = _to_come.get(made.daemon_arguments, 0) + 1
        namespace[name] = made
