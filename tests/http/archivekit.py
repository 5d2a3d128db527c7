# SPDX-License-Identifier: Apache-2.0
"""Archives, good and bad, and the calls that take and give them."""
import gzip
import io
import os
import re
import tarfile
import zlib

GZIP = "application/gzip"


def member(name, data=b"", **fields):
    """(what tarfile says of it, its bytes)"""
    info = tarfile.TarInfo(name)
    info.size = len(data)
    for field, value in fields.items():
        setattr(info, field, value)
    return info, data


def archive(*members, mode="w:gz", form=tarfile.PAX_FORMAT):
    out = io.BytesIO()
    with tarfile.open(fileobj=out, mode=mode, format=form) as tar:
        for info, data in members:
            tar.addfile(info, io.BytesIO(data))
    return out.getvalue()


def plain_ustar(files, sizes=None):
    """
    As minimal writers do it: no directories, mode 0644, no owner, no time, names as raw bytes.
    sizes: what the headers of some say instead of the size.
    """
    blocks = []
    for name, data in files.items():
        head = bytearray(512)
        for at, text in ((0, name.encode()), (100, b"0000644"), (108, b"0000000"), (116, b"0000000"),
                         (124, (sizes or {}).get(name, b"%011o" % len(data))), (136, b"0" * 11), (148, b" " * 8), (156, b"0"),
                         (257, b"ustar\x0000")):
            head[at:at + len(text)] = text
        head[148:156] = b"%06o\0 " % sum(head)
        blocks += [bytes(head), data, bytes(-len(data) % 512)]
    return gzip.compress(b"".join(blocks) + bytes(1024), 1)


def plain_read(data):
    """As the strictest readers do it: {name: bytes, or None of a directory}; anything else fails."""
    data, found, at = gzip.decompress(data), {}, 0
    while any(head := data[at:at + 512]):
        assert int(head[148:156].rstrip(b" \0"), 8) == sum(head[:148]) + 8 * 32 + sum(head[156:])
        digits = head[124:136].rstrip(b" \0")
        assert re.fullmatch(b"[0-7]+", digits) and head[156:157] in (b"0", b"5"), head
        name = head[:100].split(b"\0")[0].decode().rstrip("/")
        assert name not in found and not head[345:500].strip(b"\0"), head
        size, at = int(digits, 8), at + 512
        found[name] = data[at:at + size] if head[156:157] == b"0" else None
        assert at + size <= len(data) and (size == 0 or found[name] is not None)
        at += -(-size // 512) * 512
    assert not any(data[at:])
    return found


def link(name, target, kind=tarfile.SYMTYPE):
    return member(name, type=kind, linkname=target)


def contents(data):
    """{name: bytes of a file, target of a link, None of a directory}"""
    found = {}
    with tarfile.open(fileobj=io.BytesIO(data)) as tar:
        for info in tar:
            if info.isreg():
                found[info.name] = tar.extractfile(info).read()
            else:
                found[info.name] = info.linkname if info.issym() else None
    return found


def endless(*members):
    """gzip: a sound archive, and behind its end 8 GiB of zeros, which are read to the last one."""
    head = zlib.compressobj(1, zlib.DEFLATED, 31)
    zeros = zlib.compressobj(1, zlib.DEFLATED, -15)  # raw: goes on where another has flushed
    block = zeros.compress(bytes(64 << 20)) + zeros.flush(zlib.Z_FULL_FLUSH)
    return head.compress(archive(*members, mode="w")) + head.flush(zlib.Z_FULL_FLUSH) + block * 128


LARGE = """
import os
open("f", "wb").write(os.urandom(4 << 20))
for n in range(4000): os.link("f", f"f{n}")
"""


def is_packing(daemon):
    """Of LARGE, which is 16 GiB to pack or to copy: is there a nameless file with something in it?"""
    folder = f"/proc/{daemon.pid}/fd"
    for name in os.listdir(folder):
        try:
            path = os.path.join(folder, name)
            if os.readlink(path).endswith(" (deleted)") and os.stat(path).st_size > 100000:
                return True
        except FileNotFoundError:
            pass
    return False


# What the refusal of such an archive says, of its member and of the rule; of all others at least something.
DETAILS = {
    "..": "member '../x': .*'..'", ".. inside": "member 'a/../../x': .*'..'", "absolute": "member '/x': .*absolute",
    "below a link": "member 'd/x': .*below a symbolic link", "link that leaves": "member 'd': .*symbolic link out",
    "absolute link": "member 'd': .*symbolic link out", "hard link out": "member 'h': .*hard link out",
    "hard link to nothing": "member 'h': .*no earlier file", "device": "member 'dev': .*neither",
    "block device": "member 'dev': .*neither", "fifo": "member 'p': .*neither", "setuid": "member 's': .*setuid",
    "setgid": "member 's': .*setgid", "twice": "member 'good': .*taken",
    "file as a directory": "member 'good/x': .*not a directory", "deep": "member 'd/d/.*levels",
    "long name": "member 'nnn.*255 bytes", "checksum": "no sound tar", "size of a directory": "member 'good/': .*with data",
    "size b'0000001130x'": "member 'odd': .*not a number", "size b'-0000000010'": "behind 'good': .*negative",
    "size b'77777777777'": "member 'odd': Truncated", "cut": "damaged: truncated", "cut at the end": "its end is missing",
    "gzip checksum": "checksum", "something behind": "more follows", "two in one": "behind the archive's end",
    "not an archive": "no sound tar", "empty": "no bytes",
}


def hostile():
    """{what is wrong: archive}"""
    good = member("good", b"good")
    whole = archive(good, member("more", b"x" * 100000))
    plain = bytearray(archive(good, mode="w"))
    plain[148] ^= 1  # in the checksum of the first head
    sized = bytearray(archive(member("good/", type=tarfile.DIRTYPE), mode="w"))
    sized[124:135] = b"00000001000"
    sized[148:156] = b"%06o\0 " % (sum(sized[:148]) + 8 * 32 + sum(sized[156:512]))
    return {
        "..": archive(good, member("../x", b"x")),
        ".. inside": archive(good, member("a/../../x", b"x")),
        "absolute": archive(good, member("/x", b"x")),
        "below a link": archive(good, link("d", "."), member("d/x", b"x")),
        "link that leaves": archive(good, link("d", "../..")),
        "absolute link": archive(good, link("d", "/etc/passwd")),
        "hard link out": archive(good, link("h", "../x", tarfile.LNKTYPE)),
        "hard link to nothing": archive(good, link("h", "nothing", tarfile.LNKTYPE)),
        "device": archive(good, member("dev", type=tarfile.CHRTYPE, devmajor=1, devminor=3)),
        "block device": archive(good, member("dev", type=tarfile.BLKTYPE, devmajor=7)),
        "fifo": archive(good, member("p", type=tarfile.FIFOTYPE)),
        "setuid": archive(good, member("s", b"x", mode=0o4755)),
        "setgid": archive(good, member("s", b"x", mode=0o2755)),
        "twice": archive(good, member("good", b"again")),
        "file as a directory": archive(good, member("good/x", b"x")),
        "deep": archive(good, member("d/" * 300 + "x", b"x")),
        "long name": archive(good, member("n" * 256, b"x")),
        "checksum": bytes(plain),
        **{f"size {size!r}": plain_ustar({"good": b"good", "odd": data, "after": b""}, {"odd": size})
           for size, data in ((b"\xff" * 12, b""), (b"-0000000010", b"x"), (b"0000001130x", b"x" * 600),
                              (b"00000000012x", b"x" * 10), (b"xxxxxxxxxxx", b""), (b"0x10", b"x" * 16),
                              (b"77777777777", b"x"), (b"00000100000", b"x"),
                              (b"\x80\0\0\0\x7f" + b"\xff" * 7, b"x"))},
        "size of a directory": bytes(sized),
        "cut": whole[:len(whole) // 2],
        "cut at the end": whole[:-4],
        "gzip checksum": whole[:-8] + bytes(4) + whole[-4:],
        "something behind": whole + b"x" * 600,
        "two in one": whole + whole,
        "not an archive": b"#!/bin/sh\necho hello\n" * 100,
        "empty": b"",
    }
