# SPDX-License-Identifier: Apache-2.0
#
# driver_leave: the end of an interpreter that was forked of a template.
#
# As it ends, an interpreter takes itself apart object by object. In a fork each of them lies in a page
# that is shared with the template until then: 2 ms of copying what is about to be thrown away. So
# what the program made is taken apart here as the interpreter would (Py_FinalizeEx, pylifecycle.c), and
# the rest is left to the kernel. Where anything is left that would notice, the interpreter does it all.
#
# Owns an exit handler. Main thread only. Imports built-in modules only.
import _weakref
import atexit
import builtins
import gc
import sys

import driver_wire as wire

__builtins__ = wire.BUILTINS

# What finalize_modules (pylifecycle.c) takes from the module sys first.
_OF_SYS = ("path", "argv", "ps1", "ps2", "last_type", "last_value", "last_traceback", "path_hooks",
           "path_importer_cache", "meta_path", "__interactivehook__")
_MODULE = type(sys)
_bases_of = type.__dict__["__mro__"].__get__
_names_of = type.__dict__["__dict__"].__get__
_STREAMS = ("stdin", "stdout", "stderr")


class Leaving:
    def __init__(self, leave):
        """leave(status) ends the process as exit(3) does. To be made before there are other handlers."""
        self._leave = leave
        self._status = None
        self._modules = {}
        self._count = 0
        self._callbacks = 0
        self._handlers = 0
        self._kept = []
        self._table = sys.modules  # where the interpreter looks, whatever becomes of that name
        atexit.register(self._finish)  # the first of all, so it is called last
        del sys.modules["atexit"]  # to a cell it is a module that was not imported yet

    def keep_modules(self):
        """Those that are there now are the template's, and so are the handlers."""
        self._modules = dict(sys.modules)
        self._count = len(self._modules)
        self._callbacks = atexit._ncallbacks()
        self._handlers = own_handlers(sys.modules.get("threading"))

    def keep(self, finders):
        """
        What a program finds in the interpreter's own lists, and lets go of: else each program would
        take the template's part of it to pieces. (finders: what sys.meta_path is made of, but for what
        knows of the program.)
        """
        cache = sys.path_importer_cache
        self._kept = [*sys.path, *sys.path_hooks, *finders, *cache, *cache.values()]

    def rehearse(self):
        """All of an end but the end. To be called where there is a module __main__ to be lost."""
        scope, functions = sys.__dict__, builtins.__dict__
        kept = {name: scope[name] for name in (*_OF_SYS, *_STREAMS) if name in scope}
        kept_function = functions.get("_")  # of a preload (gettext)
        leave, self._leave = self._leave, id
        self._is_settled(self._table.get("threading"))
        self.expect(None)
        self._finish()
        self._leave = leave
        self._status = None
        scope.update(kept)
        functions.pop("_", None)
        if kept_function is not None:
            functions["_"] = kept_function

    def touch(self):
        """What _finish does and leaves no trace of."""
        gc.collect()
        self._names_of_program()
        has_finalizers()
        flush(sys.stdout)

    def leave(self):
        """
        What the interpreter would do next: write what is buffered (flush_io, pythonrun.c), wait for
        threads, call the exit handlers (Py_FinalizeEx); the last of these ends the process. Called from
        here, none of the driver's own objects are taken apart before, whose pages would be copied for it.
        Comes back where the program has handlers of its own, which would tell from where they are called
        if they fail, or something is to be waited for: then the interpreter does it.
        """
        threading = self._table.get("threading")
        if not self._is_settled(threading):
            return
        if threading is not None:
            threading._shutdown()
        atexit._run_exitfuncs()

    def _is_settled(self, threading):
        """There is nothing to be waited for, and what is buffered is written."""
        if atexit._ncallbacks() != self._callbacks or not self._has_one_thread(threading):
            return False
        for name in ("stderr", "stdout"):
            try:
                getattr(sys, name).flush()
            except BaseException:
                pass
        return True

    def _has_one_thread(self, threading):
        """And none of the program's handlers is called where it waits for others."""
        try:
            return threading is None or (
                own_handlers(threading) == self._handlers and not awaited_locks(threading)
            )
        except BaseException:
            return False

    def expect(self, value):
        """The program came to its end, with this value of SystemExit. Others are not for here."""
        if value is None:
            self._status = 0
        elif isinstance(value, int) and 0 <= value < 256:
            self._status = int(value)

    def _finish(self):
        if self._status is None:
            return
        try:
            flush(sys.stdout)
            flush(sys.stderr)
            self._let_go()
            flush(sys.stdout)
            flush(sys.stderr)
            quiet = not has_finalizers()
        except BaseException:
            return  # whatever it is, the interpreter finds it too, and tells
        if quiet:
            self._leave(self._status)

    def _let_go(self):
        gc.collect()
        scope = sys.__dict__
        for name in _OF_SYS:
            if name in scope:
                scope[name] = None
        builtins._ = None
        for name in _STREAMS:
            setattr(sys, name, getattr(sys, "__" + name + "__"))
        left = self._forget_modules()
        gc.collect()
        for reference in left:
            module = reference()
            if module is not None:
                clear(module.__dict__)

    def _forget_modules(self):
        """Takes those of the program out of sys.modules; the latest first."""
        left = []
        for name in self._names_of_program():
            module = sys.modules.get(name)
            if isinstance(module, _MODULE) and self._modules.get(name) is not module:
                left.append(_weakref.ref(module))
                sys.modules[name] = None
        return left

    def _names_of_program(self):
        """
        A program that only added modules has them behind the template's, but for __main__, and those
        before are not looked at: a look takes a reference, and so copies the page of each. Are there
        modules elsewhere, made since the fork, each name is looked at.
        """
        names = self._names_behind()
        found = set(map(id, map(sys.modules.get, names)))
        for thing in gc.get_objects():
            if issubclass(type(thing), _MODULE) and id(thing) not in found:
                return list(reversed(sys.modules))
        return names

    def _names_behind(self):
        behind = []
        left = len(sys.modules) - self._count
        for name in reversed(sys.modules):
            if left <= 0:
                break
            behind.append(name)
            left -= 1
        return behind if "__main__" in behind else [*behind, "__main__"]


def own_handlers(threading):
    """How many functions are to be called before threads are waited for (3.9 and later)."""
    return 0 if threading is None else len(getattr(threading, "_threading_atexits", ()))


def awaited_locks(threading):
    """Those of the threads that the end of a program waits for (up to 3.12), but its own."""
    return threading._shutdown_locks - {threading._main_thread._tstate_lock}


def flush(stream):
    if stream is not None and not getattr(stream, "closed", False):
        stream.flush()


def clear(scope):
    """As _PyModule_ClearDict (moduleobject.c): private names first, the built-in ones never."""
    for name in list(scope):
        if isinstance(name, str) and name[:1] == "_" and name[1:2] != "_":
            scope[name] = None
    for name in list(scope):
        if isinstance(name, str) and name != "__builtins__":
            scope[name] = None


def has_finalizers():
    """
    Is there anything (open files, generators, objects with __del__) that was made since the fork and
    wants to know of its end? What is older is frozen (gc.freeze), and not listed. Looked up as the
    interpreter does it: a class may have a class of the program's, whose methods are not for here.
    """
    kinds = list(map(type, gc.get_objects()))
    for kind in dict(zip(map(id, kinds), kinds)).values():
        for base in _bases_of(kind):
            if "__del__" in _names_of(base):
                return True
    return False
