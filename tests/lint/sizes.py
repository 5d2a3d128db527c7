#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on a file over 400 lines, a function over 60 lines or with more than 5 parameters.

The error value that ends a signature is the house's convention and not counted.
"""
import re

import sources

FILE_LINES = 400
FUNCTION_LINES = 60
PARAMETERS = 5
# The callbacks of libmicrohttpd have the parameters that it gives them.
IMPOSED = re.compile(r"\benum MHD_Result\b")
RULE = "Split by job, not by length; many parameters want a struct."


def parameters_of(signature):
    """How many parameters the last parenthesised list of a signature has."""
    start = signature.rfind("(")
    depth = 0
    for at in range(len(signature) - 1, -1, -1):
        depth += {")": 1, "(": -1}.get(signature[at], 0)
        if signature[at] == "(" and depth == 0:
            start = at
            break
    inside = signature[start + 1:signature.rfind(")")]
    inside = re.sub(r",\s*struct err \*err\s*$", "", inside)
    if inside.strip() in ("", "void"):
        return 0
    depth, count = 0, 1
    for character in inside:
        depth += {"(": 1, ")": -1}.get(character, 0)
        count += character == "," and depth == 0
    return count


def functions(code):
    """(name, first line, lines, parameters) of each function: its braces stand in column 0."""
    lines = code.split("\n")
    for number, line in enumerate(lines):
        if line != "{":
            continue
        first = number
        while first > 0 and not re.search(r"^\s*$|^[}#]|;\s*$", lines[first - 1]):
            first -= 1
        signature = " ".join(lines[first:number])
        last = next((at for at in range(number, len(lines)) if lines[at] == "}"), len(lines) - 1)
        name = re.search(r"(\w+)\s*\([^()]*(?:\([^()]*\)[^()]*)*\)\s*$", signature)
        parameters = 0 if IMPOSED.search(signature) else parameters_of(signature)
        yield (name.group(1) if name else "?"), first + 1, last - first + 1, parameters


def complaints():
    for path in sources.product_files(("c", "h", "py", "js")):
        text = sources.read(path)
        if text.count("\n") > FILE_LINES:
            yield f"{path}:1: {text.count(chr(10))} lines, at most {FILE_LINES}"
        if not path.endswith(".c"):
            continue
        for name, line, length, parameters in functions(sources.blank(text)):
            if length > FUNCTION_LINES:
                yield f"{path}:{line}: {name} has {length} lines, at most {FUNCTION_LINES}"
            if parameters > PARAMETERS:
                yield f"{path}:{line}: {name} has {parameters} parameters, at most {PARAMETERS}"


if __name__ == "__main__":
    sources.end("sizes", list(complaints()), RULE)
