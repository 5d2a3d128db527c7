# SPDX-License-Identifier: Apache-2.0
#
# driver_errors: prints uncaught errors as the interpreter does, without the frames of the driver.
#
# Main thread. Loaded by driver_cell.Loader at the first error.
import sys

import driver_wire as wire

__builtins__ = wire.BUILTINS


def report(error, name):
    """Prints an uncaught error as the interpreter does, without the frames of the driver."""
    trim(error, name)
    kind, trace = type(error), error.__traceback__
    sys.last_type, sys.last_value, sys.last_traceback = kind, error, trace
    hook = getattr(sys, "excepthook", sys.__excepthook__)
    try:
        hook(kind, error, trace)
    except SystemExit:
        raise
    except BaseException as second:
        trim(second, name)
        print("Error in sys.excepthook:", file=sys.stderr)
        sys.__excepthook__(type(second), second, second.__traceback__)
        print("\nOriginal exception was:", file=sys.stderr)
        sys.__excepthook__(kind, error, trace)
    if isinstance(error, SyntaxError):
        explain_notebook_line(error, name)


def trim(error, name):
    """Cuts each traceback of the chain down to the frames from the cell's own on."""
    library = __file__.rpartition("/")[0]
    seen = set()
    first = True
    while error is not None and id(error) not in seen and len(seen) < 50:
        seen.add(id(error))
        kept = []
        trace = error.__traceback__
        while trace is not None:
            kept.append(trace)
            trace = trace.tb_next
        files = [step.tb_frame.f_code.co_filename for step in kept]
        begin = files.index(name) if name in files else (len(files) if first else 0)
        kept = [
            step for step, file in zip(kept[begin:], files[begin:]) if not file.startswith(library)
        ]
        for step, following in zip(kept, kept[1:] + [None]):
            step.tb_next = following
        error.__traceback__ = kept[0] if kept else None
        error = error.__cause__ or error.__context__
        first = False


def explain_notebook_line(error, name):
    line = (error.text or "").strip()
    if error.filename != name or line[:1] not in ("!", "%"):
        return
    what = "a shell line" if line[0] == "!" else "a magic line"
    print(
        "%s is %s of notebooks, not Python. Run shell commands with subprocess.run([...]), or as"
        " code in language bash; install packages in the setup step." % (line.split()[0], what),
        file=sys.stderr,
    )
