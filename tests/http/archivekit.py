# SPDX-License-Identifier: Apache-2.0
"""Archives, good and bad, and the calls that take and give them."""
import gzip
import io
import tarfile

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


def plain_ustar(files):
    """As minimal writers do it: no directories, mode 0644, no owner, no time, names as raw bytes."""
    blocks = []
    for name, data in files.items():
        head = bytearray(512)
        for at, text in ((0, name.encode()), (100, b"0000644"), (108, b"0000000"), (116, b"0000000"),
                         (124, b"%011o" % len(data)), (136, b"0" * 11), (148, b" " * 8), (156, b"0"),
                         (257, b"ustar\x0000")):
            head[at:at + len(text)] = text
        head[148:156] = b"%06o\0 " % sum(head)
        blocks += [bytes(head), data, bytes(-len(data) % 512)]
    return gzip.compress(b"".join(blocks) + bytes(1024), 1)


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


def hostile():
    """{what is wrong: archive}"""
    good = member("good", b"good")
    whole = archive(good, member("more", b"x" * 100000))
    plain = bytearray(archive(good, mode="w"))
    plain[148] ^= 1  # in the checksum of the first head
    sized = bytearray(archive(member("d/", type=tarfile.DIRTYPE), mode="w"))
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
        "size of a directory": bytes(sized[:124] + b"00000001000" + sized[135:]),
        "cut": whole[:len(whole) // 2],
        "cut at the end": whole[:-4],
        "gzip checksum": whole[:-8] + bytes(4) + whole[-4:],
        "something behind": whole + b"x" * 600,
        "two in one": whole + whole,
        "not an archive": b"#!/bin/sh\necho hello\n" * 100,
        "empty": b"",
    }
