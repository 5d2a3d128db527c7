# SPDX-License-Identifier: Apache-2.0
#
# driver_source: what a cell is made of: its text, and the code of that in the pieces to be run.
#
# Owns nothing. Any thread. Imports built-in modules and its own siblings only.
import posix

import driver_wire as wire

__builtins__ = wire.BUILTINS

_AWAIT = 0x2000  # ast.PyCF_ALLOW_TOP_LEVEL_AWAIT
_ONLY_AST = 0x400  # ast.PyCF_ONLY_AST
_FUTURE_FLAGS = 0x1FF0000  # the CO_FUTURE_... bits of co_flags
_READ = posix.O_RDONLY | posix.O_CLOEXEC
_AT_ONCE = 4096  # bytes


def read(path):
    """Of a regular file. Without open(), whose objects and looks at the file take twice as long."""
    number = posix.open(path, _READ)
    try:
        data = posix.read(number, _AT_ONCE)
        while more := posix.read(number, _AT_ONCE + len(data)):
            data += more
    finally:
        posix.close(number)
    return decode(data)


def decode(data):
    """Text of a source file: UTF-8, a byte order mark allowed, any line ends."""
    text = data.decode("utf-8", "replace")
    if text.startswith("\ufeff"):
        text = text[1:]
    if "\r" in text:
        text = text.replace("\r\n", "\n").replace("\r", "\n")
    return text


def split(source, name):
    """
    Compiles source; a list of (code, is expression), to run in order. The last statement is a piece
    of its own if it is an expression.

    Text that compiles whole, followed by a line at column 0 that compiles whole, means the same as
    both together, so the usual cell needs no syntax tree (whose first use costs a millisecond).
    """
    start = len(source.rstrip())
    for _ in range(4):
        start = _statement_start(source, start)
        if start < 0:
            break
        head = source[:start]
        tail = "\n" * head.count("\n") + source[start:]
        if ";" in tail or "__future__" in tail:
            break
        try:
            return _split_here(head, tail, name)
        except SyntaxError:
            continue
        except (ValueError, OverflowError, MemoryError, RecursionError):
            break
    return _split_by_tree(source, name)


# Words that continue a compound statement at column 0; brackets may close there too.
_CONTINUING = frozenset(("else", "elif", "except", "finally"))
# Words that no expression begins with. To compile what is none as one takes an interpreter half a
# dozen times as long as a short statement does: it looks for what to say about the error.
_STATEMENTS = frozenset(
    "assert async break class continue def del for from global if import nonlocal pass raise return"
    " try while with".split()
)


def _statement_start(source, end):
    """Offset of the last line before end that could begin a statement at column 0, else -1."""
    while end > 0:
        start = source.rfind("\n", 0, end) + 1
        line = source[start:end]
        end = start - 1
        if not line.strip() or line[0] in " \t)]}#":
            continue
        word = line.split(None, 1)[0].split(":", 1)[0]
        if word not in _CONTINUING:
            return start
    return -1


def _split_here(head, tail, name):
    pieces = []
    is_expression = tail.split(None, 1)[0] not in _STATEMENTS
    if is_expression:
        try:
            last = compile(tail, name, "eval", _AWAIT, True)
        except SyntaxError:
            is_expression = False
    if not is_expression:
        last = compile(tail, name, "exec", _AWAIT, True)
    if head.strip():
        code = compile(head, name, "exec", _AWAIT, True)
        pieces.append((code, False))
        future = code.co_flags & _FUTURE_FLAGS
        if future:
            last = compile(
                tail, name, "eval" if is_expression else "exec", _AWAIT | future, True
            )
    pieces.append((last, is_expression))
    return pieces


def _split_by_tree(source, name):
    import _ast

    tree = compile(source, name, "exec", _ONLY_AST | _AWAIT, True)
    last = tree.body[-1] if tree.body else None
    if not isinstance(last, _ast.Expr):
        return [(compile(source, name, "exec", _AWAIT, True), False)]
    del tree.body[-1]
    pieces = []
    flags = _AWAIT
    if tree.body:
        code = compile(tree, name, "exec", flags, True)
        flags |= code.co_flags & _FUTURE_FLAGS
        pieces.append((code, False))
    pieces.append((compile(_ast.Expression(last.value), name, "eval", flags, True), True))
    return pieces
