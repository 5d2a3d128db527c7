#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on an include that goes up or sideways, and on a library's header outside its room."""
import os
import re

import sources

INCLUDE = re.compile(r'^[ \t]*#[ \t]*include[ \t]*([<"])([^>"]+)[>"]', re.M)

# Folder -> the folders it may include, besides itself.
MAY_INCLUDE = {
    "lib/base": [],
    "lib/box": ["lib/base"],
    "lib/work": ["lib/base"],
    "lib/store": ["lib/base"],
    "lib/journal": ["lib/base"],
    "lib/cell": ["lib/base", "lib/box"],
    "lib/sandbox": ["lib/base", "lib/box", "lib/work", "lib/store", "lib/journal", "lib/cell"],
    "api": ["lib/base", "lib/sandbox"],
    "server": ["lib/base", "lib/sandbox", "api"],
    "client": ["lib/base", "lib/work", "api", "server"],
}
# Header of a library -> the one folder that may include it.
OWNED_HEADERS = {
    "microhttpd.h": "server",
    "ini.h": "server",
    "json.h": "api",
    "json-c/json.h": "api",
    "sqlite3.h": "lib/store",
    "archive.h": "lib/work",
    "archive_entry.h": "lib/work",
    "seccomp.h": "lib/box",
    "zlib.h": "api",
    "histedit.h": "client",
}
RULE = "The table at the top of tests/lint/layers.py says which folder may include which."


def fault_of_own(folder, header):
    """Why this folder may not include this header of the project, or None."""
    target = os.path.dirname(header)
    if not os.path.exists(header):
        return f"{header} does not exist (includes are relative to the top folder)"
    if target == folder:
        return None
    if target not in MAY_INCLUDE.get(folder, []):
        return f"{folder} may not include {target}"
    if header.endswith("_internal.h"):
        return f"{header} is for {target} alone"
    return None


def fault_of_library(folder, header):
    """Why this folder may not include this system header, or None."""
    owner = OWNED_HEADERS.get(header)
    if header.startswith("json-c/") or header.startswith("json_"):
        owner = "api"
    if owner is not None and owner != folder:
        return f"<{header}> belongs to {owner}"
    return None


def complaints():
    for path in sources.product_files():
        folder = os.path.dirname(path)
        text = sources.blank(sources.read(path), keep_strings=True)
        if folder not in MAY_INCLUDE:
            yield f"{path}:1: {folder} is in no layer"
        for match in INCLUDE.finditer(text):
            check = fault_of_own if match.group(1) == '"' else fault_of_library
            fault = check(folder, match.group(2))
            if fault:
                yield f"{path}:{sources.line_of(text, match.start(1))}: {fault}"


if __name__ == "__main__":
    sources.end("layers", list(complaints()), RULE)
