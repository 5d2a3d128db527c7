#!/usr/bin/python3
# SPDX-License-Identifier: Apache-2.0
"""Fails on functions that have a safer sibling, and on descriptors that a child would inherit."""
import re

import sources

RULE = "The tables at the top of tests/lint/banned.py name the files that may, and why not."

# Function -> what is wrong with it.
BANNED = {
    "sprintf": "no bound: snprintf, buf_printf or alloc_printf",
    "vsprintf": "no bound: vsnprintf",
    "strcpy": "no bound: snprintf or alloc_text",
    "strncpy": "may leave no NUL byte: snprintf",
    "strcat": "no bound: buf_append_text",
    "strncat": "its bound is misread: buf_append_text",
    "strtok": "hidden state: strcspn",
    "atoi": "no errors: text_parse_u64",
    "atol": "no errors: text_parse_u64",
    "atoll": "no errors: text_parse_u64",
    "atof": "no errors: text_parse_double",
    "gets": "no bound",
    "alloca": "unbounded stack",
    "system": "a shell",
    "popen": "a shell",
    "signal": "semantics differ between systems: sigaction",
    "usleep": "wait for the event: poll",
    "sleep": "wait for the event: poll",
    "nanosleep": "wait for the event: poll",
    "rand": "guessable: id_random",
    "random": "guessable: id_random",
    "gmtime": "shared state: clock_format_utc",
    "localtime": "shared state, local time: clock_format_utc",
    "ctime": "shared state: clock_format_utc",
    "mktemp": "a race: mkostemp or mkdtemp",
    "mkstemp": "a child would inherit it: mkostemp with O_CLOEXEC",
    "tmpfile": "a child would inherit it",
    "pipe": "a child would inherit it: fd_pipe",
    "accept": "a child would inherit it: accept4 with SOCK_CLOEXEC",
    "dup": "a child would inherit it: fcntl with F_DUPFD_CLOEXEC",
    "creat": "a child would inherit it: open with O_CLOEXEC",
    "epoll_create": "a child would inherit it: epoll_create1",
    "inotify_init": "a child would inherit it: inotify_init1",
}
# Functions with one owner: the files that may call them.
OWNED = {
    "fork": [r"lib/box/init(_\w+)?\.c", r"lib/box/template(_study|_birth|_standby)?\.c"],
    "vfork": [],
    "getenv": [r"server/places\.c"],
    "secure_getenv": [r"server/places\.c"],
    "strtod": [r"lib/base/text\.c"],
    "strtol": [r"lib/base/text\.c"],
    "strtoul": [r"lib/base/text\.c"],
    "strtoll": [r"lib/base/text\.c"],
    "strtoull": [r"lib/base/text\.c"],
    "strtof": [r"lib/base/text\.c"],
    "gmtime_r": [r"lib/base/clock\.c"],
    "localtime_r": [],
    "strerror": [r"lib/base/err\.c"],
    "strerror_r": [],
    "setlocale": [r"client/editor\.c"],  # of characters alone, while a user types
    # libmicrohttpd 1.0 wants replies queued by the callbacks alone: reply_queue's callers are those.
    "MHD_queue_response": [r"server/reply\.c"],
    "MHD_suspend_connection": [r"server/exchange\.c"],
    "MHD_resume_connection": [r"server/loop\.c"],
    "MHD_stop_daemon": [r"server/loop\.c"],  # aborts while a connection is suspended
    "MHD_create_post_processor": [],  # CVE-2023-27371
}
# Function -> what its arguments must name.
CLOSE_ON_EXEC = {
    "open": "O_CLOEXEC", "openat": "O_CLOEXEC", "open_by_handle_at": "O_CLOEXEC",
    "pipe2": "O_CLOEXEC", "dup3": "O_CLOEXEC", "mkostemp": "O_CLOEXEC",
    "socket": "SOCK_CLOEXEC", "socketpair": "SOCK_CLOEXEC", "accept4": "SOCK_CLOEXEC",
    "epoll_create1": "EPOLL_CLOEXEC", "eventfd": "EFD_CLOEXEC", "signalfd": "SFD_CLOEXEC",
    "timerfd_create": "TFD_CLOEXEC", "memfd_create": "MFD_CLOEXEC",
    "inotify_init1": "IN_CLOEXEC", "fopen": '"[rwa][+bx]*[+bxe]*e', "fdopen": "",
}
MACRO = re.compile(r"^#define (\w+) ((?:\\\n|.)*)", re.M)
CALL = re.compile(r"(?<![\w.>])(\w+)\s*\(")


def arguments_at(text, start):
    """The text between the parentheses of a call that opens before start."""
    depth = 1
    for end in range(start, len(text)):
        depth += {"(": 1, ")": -1}.get(text[end], 0)
        if depth == 0:
            return text[start:end]
    return text[start:]


def fault_of(path, name, arguments):
    if name in BANNED:
        return f"{name}: {BANNED[name]}"
    if name in OWNED and not any(re.fullmatch(owner, path) for owner in OWNED[name]):
        return f"{name}: not in this file"
    if name in CLOSE_ON_EXEC and not re.search(CLOSE_ON_EXEC[name], arguments):
        return f"{name} without {CLOSE_ON_EXEC[name]}: a child would inherit the descriptor"
    return None


def complaints():
    for path in sources.product_files():
        text = sources.read(path)
        code, with_strings = sources.blank(text), sources.blank(text, keep_strings=True)
        macros = dict(MACRO.findall(with_strings))
        for match in CALL.finditer(code):
            arguments = arguments_at(with_strings, match.end())
            arguments = re.sub(r"\w+", lambda word: macros.get(word[0], word[0]), arguments)
            fault = fault_of(path, match.group(1), arguments)
            if fault:
                yield f"{path}:{sources.line_of(code, match.start())}: {fault}"


if __name__ == "__main__":
    sources.end("banned", list(complaints()), RULE)
