# SPDX-License-Identifier: Apache-2.0
"""Files of a session, read and written over HTTP while boxes do what they like."""
import hashlib
import os
import threading
import unittest
import urllib.parse

import census
import harness
import sessionkit
import wire


class Content(sessionkit.Case):
    def test_binary_round_trip_and_a_shorter_overwrite(self):
        session = self.session()
        data = bytes(range(256)) * 4096
        reply = session.put("b.bin", data)
        self.assertEqual((reply.status, reply.body, reply.header("Location")),
                         (201, b"", session.file("b.bin")), reply)
        self.assertEqual(hashlib.sha256(session.content("b.bin")).hexdigest(),
                         "fbbab289f7f94b25736c58be46a994c441fd02552cc6022352e3d86d2fab7c83")
        reply = session.put("b.bin", b"abc")
        self.assertEqual(reply.status, 204, reply)
        self.assertEqual(session.content("b.bin"), b"abc")
        self.assertEqual(session.put("e", b"").status, 201)
        reply = session.read("e")
        self.assertEqual((reply.status, reply.body, reply.header("Content-Length")), (200, b"", "0"))
        self.assert_problem(session.read("nope"), 404, "file_not_found")
        self.assert_success(session.run_code("import os; print(os.path.getsize('b.bin'))"), "3\n")

    def test_headers_of_a_download(self):
        session = self.session()
        session.put("d/x.html", b"<script>")
        reply = session.read("d/x.html")
        self.assertEqual(reply.header("Content-Type"), "application/octet-stream")
        self.assertEqual(reply.header("X-Content-Type-Options"), "nosniff")
        self.assertEqual(reply.header("Accept-Ranges"), "bytes")
        self.assertEqual(reply.header("Content-Disposition"),
                         "attachment; filename=\"x.html\"; filename*=UTF-8''x.html")
        self.assertRegex(reply.header("ETag"), '^"[0-9a-f]{16}"$')
        head = session.raw("HEAD", "d/x.html")
        self.assertEqual((head.status, head.body), (200, b""))
        for name in ("ETag", "Content-Length", "Content-Disposition", "Accept-Ranges"):
            self.assertEqual(head.header(name), reply.header(name), name)
        self.assertEqual(session.raw("HEAD", "nope").status, 404)

    def test_a_put_belongs_to_the_box(self):
        session = self.session()
        session.put("a/b/c.sh", b"echo hi\n")
        result = session.shell("stat -c '%U %a' a a/b a/b/c.sh; sh a/b/c.sh; echo more >> a/b/c.sh;"
                               "chmod 755 a/b/c.sh; rm -r a/b; mkdir a/b")
        self.assert_success(result, "U 755\nU 755\nU 644\nhi\n".replace("U", harness.BOX_USER))

    def test_mode_is_kept(self):
        session = self.session()
        session.put("run", b"#!/bin/sh\necho 1\n")
        self.assert_success(session.shell("chmod 750 run; ./run"), "1\n")
        session.put("run", b"#!/bin/sh\necho 2\n")
        self.assert_success(session.shell("stat -c %a run; ./run"), "750\n2\n")

    def test_large_and_chunked(self):
        session = self.session()
        data = os.urandom(5 << 20)
        for headers in ({}, {"Expect": "100-continue"}, {"Transfer-Encoding": "chunked"},
                        {"Expect": "100-continue", "Transfer-Encoding": "chunked"}):
            with self.subTest(headers=headers):
                sent = wire.chunked(data, 70000) if "Transfer-Encoding" in headers else data
                reply = session.put("big", sent, headers)
                self.assertIn(reply.status, (201, 204), reply)
                self.assertEqual(session.content("big"), data)

    def test_a_plus_sign(self):
        """Itself in a path, a space in a query, as in forms."""
        session = self.session()
        for name in ("a+b", "a b"):
            session.put(f"{name}/{name}", name.encode())
            self.assertEqual(session.content(f"{name}/{name}"), name.encode())
        for query, name in (("a+b", "a b"), ("a%20b", "a b"), ("a%2Bb", "a+b")):
            listed = self.daemon.get(f"{session.path}/files?path={query}").json["items"]
            self.assertEqual([row["path"] for row in listed], [f"{name}/{name}"])

    def test_media_types(self):
        session = self.session()
        for kind, status in ((None, 201), ("application/octet-stream", 204), ("text/plain", 415),
                             ("application/json", 415), ("application/x-tar", 204)):
            reply = session.raw("PUT", "f", b"x", media_type=kind)
            self.assertEqual(reply.status, status, (kind, reply))

    def test_replaced_while_it_is_read(self):
        """A reader gets the old bytes or the new ones, whole."""
        session = self.session()
        contents = [bytes([letter]) * (1 << 20) for letter in b"abcd"]
        session.put("f", contents[0])
        stop = threading.Event()

        def write():
            number = 0
            while not stop.is_set():
                number += 1
                session.put("f", contents[number % 4])
        writer = threading.Thread(target=write)
        writer.start()
        try:
            for _ in range(30):
                self.assertIn(session.content("f"), contents)
            result = session.run_code("""
for _ in range(50):
    data = open('f').read()
    assert len(set(data)) == 1 and len(data) == 1 << 20
""")
            self.assert_success(result)
        finally:
            stop.set()
            writer.join()
        self.assertEqual(session.names(), ["f"])

    def all_there_is(self, connection):
        data = b""
        with self.assertRaises(BlockingIOError):
            while piece := connection.socket.recv(1 << 20):
                data += piece
        return data

    def test_truncated_while_it_is_read(self):
        session = self.session()
        session.put("f", b"x" * (8 << 20))
        connection = self.daemon.connect()
        connection.request("GET", session.file("f"), self.daemon.authorization())
        connection.socket.recv(1000)
        session.shell(": > f")
        connection.socket.setblocking(False)
        self.assertLess(len(self.all_there_is(connection)), 8 << 20)
        connection.close()
        self.assert_success(session.shell("wc -c < f"), "0\n")


class Ranges(sessionkit.Case):
    def setUp(self):
        super().setUp()
        self.it = self.session()
        self.data = bytes(range(100))
        self.etag = self.it.put("f", self.data).header("ETag")

    def test_parts(self):
        for text, start, end in (("0-9", 0, 10), ("90-", 90, 100), ("-5", 95, 100), ("0-0", 0, 1),
                                 ("99-200", 99, 100), ("-1000", 0, 100)):
            reply = self.it.read("f", {"Range": f"bytes={text}"})
            self.assertEqual((reply.status, reply.body), (206, self.data[start:end]), text)
            self.assertEqual(reply.header("Content-Range"), f"bytes {start}-{end - 1}/100")
            self.assertEqual(reply.header("ETag"), self.etag)

    def test_what_is_no_part(self):
        for text in ("bytes=0-9,20-29", "lines=1-2", "bytes=9-0", "bytes=x", "0-9"):
            reply = self.it.read("f", {"Range": text})
            self.assertEqual((reply.status, reply.body), (200, self.data), text)
        for text in ("100-", "1000-2000", "-0"):
            reply = self.it.read("f", {"Range": f"bytes={text}"})
            self.assert_problem(reply, 416, "range_not_satisfiable")
            self.assertEqual(reply.header("Content-Range"), "bytes */100")

    def test_if_range(self):
        for value, status in ((self.etag, 206), ('"other"', 200), ("W/" + self.etag, 200)):
            reply = self.it.read("f", {"Range": "bytes=0-1", "If-Range": value})
            self.assertEqual(reply.status, status, value)

    def test_beyond_four_gibibytes(self):
        self.assert_success(self.it.shell("truncate -s 5G big; printf end >> big"))
        reply = self.it.read("big", {"Range": "bytes=5368709119-"})
        self.assertEqual((reply.status, reply.body), (206, b"\0end"))
        head = self.it.raw("HEAD", "big")
        self.assertEqual(head.header("Content-Length"), "5368709123")

    def test_not_modified(self):
        for value, status in ((self.etag, 304), ("W/" + self.etag, 304), ("*", 304),
                              (f'"x", {self.etag}', 304), ('"x"', 200)):
            reply = self.it.read("f", {"If-None-Match": value})
            self.assertEqual(reply.status, status, value)
            self.assertEqual(reply.header("ETag"), self.etag)
            self.assertEqual(reply.header("Content-Length"), "100")  # RFC 9110, section 8.6
        self.assertEqual(self.it.read("f", {"If-Match": self.etag}).status, 200)
        self.assert_problem(self.it.read("f", {"If-Match": '"x"'}), 412, "etag_mismatch")

    def test_not_modified_has_no_byte_of_the_file(self):
        """Its length is told, none of it follows, and the next answer begins right behind."""
        for size in (0, 1, 3 << 20):
            put = self.it.put("g", b"x" * size)
            fields = "".join(f"{name}: {value}\r\n" for name, value in {
                "Host": f"localhost:{self.daemon.port}", **self.daemon.authorization()}.items())
            with self.subTest(size=size), self.daemon.connect() as connection:
                for method in ("GET", "HEAD"):
                    connection.send((
                        f"{method} {self.it.file('g')} HTTP/1.1\r\n{fields}Range: bytes=0-0\r\n"
                        f"If-None-Match: {put.header('ETag')}\r\n\r\n").encode())
                connection.send(b"GET /healthz HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
                answers = connection.read_to_close().split(b"\r\n\r\n")
                self.assertEqual(len(answers), 4, answers)  # three heads, and what /healthz says
                for head in answers[:2]:
                    self.assertTrue(head.startswith(b"HTTP/1.1 304 Not Modified\r\n"), head)
                    self.assertIn(b"\r\nContent-Length: %d\r\n" % size, head + b"\r\n")
                    self.assertNotIn(b"Content-Range", head)
                self.assertTrue(answers[2].startswith(b"HTTP/1.1 200 "), answers[2])


class Conditions(sessionkit.Case):
    def test_put(self):
        session = self.session()
        new = {"If-None-Match": "*"}
        first = session.put("f", b"1", new)
        self.assertEqual(first.status, 201)
        self.assert_problem(session.put("f", b"2", new), 412, "etag_mismatch")
        self.assert_problem(session.put("f", b"2", {"If-Match": '"other"'}), 412, "etag_mismatch")
        self.assert_problem(session.put("g", b"2", {"If-Match": "*"}), 412, "etag_mismatch")
        self.assert_problem(session.put("g/h", b"2", {"If-Match": first.header("ETag")}), 412,
                            "etag_mismatch")
        second = session.put("f", b"2", {"If-Match": f'"x", {first.header("ETag")}'})
        self.assertEqual(second.status, 204, second)
        self.assertNotEqual(second.header("ETag"), first.header("ETag"))
        self.assert_problem(session.put("f", b"3", {"If-Match": first.header("ETag")}), 412,
                            "etag_mismatch")
        self.assertEqual(session.put("f", b"3", {"If-Match": "*"}).status, 204)
        self.assertEqual(session.content("f"), b"3")
        self.assertEqual(session.names(), ["f"])

    def test_only_whole_files(self):
        session = self.session()
        self.assert_problem(session.put("f", b"12", {"Content-Range": "bytes 0-1/4"}), 400, "bad_header")
        self.assertEqual(session.names(), [])

    def test_many_writers_one_wins(self):
        session = self.session()
        replies = harness.parallel(8, lambda n: session.put("f", b"%d" % n, {"If-None-Match": "*"}))
        self.assertEqual(sorted(reply.status for reply in replies), [201] + [412] * 7)
        winner = next(n for n, reply in enumerate(replies) if reply.status == 201)
        self.assertEqual(session.content("f"), b"%d" % winner)

    def test_every_change_changes_the_etag(self):
        """Also one that keeps size and time, as only the kernel's own change time tells."""
        session = self.session()
        session.put("t.txt", b"aaaa")
        before = session.read("t.txt").header("ETag")
        result = session.run_code("""
import os
s = os.stat("t.txt"); open("t.txt", "r+").write("bbbb")
os.utime("t.txt", ns=(s.st_atime_ns, s.st_mtime_ns))
""")
        self.assertEqual([(row["path"], row["change"]) for row in result["files"]],
                         [("t.txt", "modified")])
        self.assertNotEqual(session.read("t.txt").header("ETag"), before)
        self.assertEqual(session.run(["cat", "t.txt"])["files"], [])
        result = session.run(["mv", "t.txt", "u.txt"])
        self.assertEqual([(row["path"], row["change"]) for row in result["files"]],
                         [("t.txt", "deleted"), ("u.txt", "created")])


class Names(sessionkit.Case):
    def test_not_utf8_line_ends_and_quotes(self):
        session = self.session()
        result = session.run_code(r'''
open(b"\xc3.txt", "w").write("test"); open('a\nb"é.txt', "w").write("two")
open("☃ 😀.txt", "w").write("three")
''')
        self.assert_success(result)
        self.assertEqual(len(result["files"]), 3)
        wanted = {b"\xc3.txt": b"test", 'a\nb"é.txt'.encode(): b"two", "☃ 😀.txt".encode(): b"three"}
        self.assertEqual(session.file(b"\xc3.txt").rsplit("/", 1)[1], "%C3.txt")
        for name, content in wanted.items():
            self.assertEqual(session.content(name), content)
        rows = session.list()
        found = {urllib.parse.unquote_to_bytes(row["pathPercent"]) if "pathPercent" in row
                 else row["path"].encode() for row in rows}
        self.assertEqual(found, set(wanted))
        self.assertEqual(sum("pathPercent" in row for row in rows), 1)
        self.assertEqual({row.get("pathPercent") for row in result["files"]},
                         {"%C3.txt", None})
        disposition = session.read("☃ 😀.txt").header("Content-Disposition")
        self.assertTrue(disposition.endswith("filename*=UTF-8''%E2%98%83%20%F0%9F%98%80.txt"))
        disposition = session.read('a\nb"é.txt').header("Content-Disposition")
        self.assertEqual(disposition, "attachment; filename=\"a_b___.txt\"; "
                                      "filename*=UTF-8''a%0Ab%22%C3%A9.txt")
        self.assertIn("%EF%BF%BD.txt", session.read(b"\xc3.txt").header("Content-Disposition"))

    def test_written_and_moved_names(self):
        session = self.session()
        names = [b"\xff\xfe", b"tab\t", b" lead", b"trail ", b"-rf", b"*", b"a+b", b"%", b"%2e%2e",
                 b"back\\slash", b"...", b".hidden", "nfc é".encode(), "nfd e\u0301".encode(),
                 b"x" * 255, b"\x7f", b"a;b?c#d&e=f", b"'\"$(id)`"]
        for number, name in enumerate(names):
            self.assertEqual(session.put(b"d\xe9/" + name, b"%d" % number).status, 201, name)
        for number, name in enumerate(names):
            self.assertEqual(session.content(b"d\xe9/" + name), b"%d" % number, name)
        result = session.run_code("import os; print(sorted(os.listdir(b'd\\xe9')))")
        self.assert_success(result, f"{sorted(names)}\n")
        for name in names:
            self.assertEqual(session.raw("DELETE", b"d\xe9/" + name).status, 204, name)
        listed = session.daemon.get(f"{session.path}/files?path=d%E9&recursive=1")
        self.assertEqual((listed.status, listed.json["items"]), (200, []), listed)

    def test_percent_signs_are_decoded_once(self):
        session = self.session()

        def put(raw, body):
            return self.daemon.request("PUT", f"{session.path}/files/{raw}", body,
                                       media_type=sessionkit.OCTETS)
        for raw, body in (("report%2520name.txt", b"L"), ("report%20name.txt", b"S"), ("a+b.txt", b"P")):
            self.assertEqual(put(raw, body).status, 201)
        self.assert_success(session.run_code("import os; print(sorted(os.listdir('.')))"),
                            "['a+b.txt', 'report name.txt', 'report%20name.txt']\n")
        for raw, body in (("report%2520name.txt", b"L"), ("report%20name.txt", b"S"), ("a+b.txt", b"P"),
                          ("a%2Bb.txt", b"P"), ("a%2bb.txt", b"P")):
            self.assertEqual(self.daemon.get(f"{session.path}/files/{raw}").body, body)

    def test_paths_that_lead_elsewhere(self):
        session = self.session()
        bad = ["%2e%2e%2f%2e%2e%2fetc%2fpasswd", "..%2f..%2fetc%2fpasswd", "%2Fetc%2Fpasswd", "a%00b",
               "%c0%ae%c0%ae/x", "%zz", "%", "x" * 256, "a/" * 2500 + "a", "..", "%2e%2e/x", "a/../b",
               ".", "a/./b", "a//b", "a/", "/", "/etc/passwd", "%2e", "..%00/x", "a%2", "\\..\\x/../y"]
        for raw in bad:
            for method in ("GET", "PUT", "DELETE", "HEAD"):
                with self.subTest(raw=raw[:40], method=method), self.within(1):
                    body = b"evil" if method == "PUT" else None
                    reply = self.daemon.request(method, f"{session.path}/files/{raw}", body,
                                                media_type=sessionkit.OCTETS)
                    legal = raw in ("%c0%ae%c0%ae/x",)  # bytes that are no UTF-8 are a name
                    if method == "PUT" and legal:
                        self.assertEqual(reply.status, 201)
                        session.raw("DELETE", b"\xc0\xae\xc0\xae/x")
                        session.raw("DELETE", b"\xc0\xae\xc0\xae")
                    else:
                        self.assertTrue(400 <= reply.status < 500, reply)
                        self.assertNotIn(b"root:", reply.body)
        self.assertEqual(session.names(), [])

    def test_the_prefix_of_the_box(self):
        session = self.session()
        self.assertEqual(self.daemon.post(session.path + "/files:move", {"from": "/etc/passwd",
                                                                         "to": "x"}).status, 422)
        session.put("a", b"1")
        reply = session.post("files:move", {"from": "/workspace/a", "to": "/workspace/b"})
        self.assertEqual((reply.status, session.names()), (200, ["b"]), reply)
        self.assertEqual([row["path"] for row in session.list(path="/workspace")], ["b"])


class Listed(sessionkit.Case):
    def test_rows(self):
        session = self.session()
        self.assert_success(session.shell(
            "mkdir d; echo hello > d/f; chmod 640 d/f; ln -s d/f link; mkfifo pipe; touch -d @5 old;"
            "python3 -c \"import socket; socket.socket(socket.AF_UNIX).bind('sock')\""))
        rows = {row["path"]: row for row in session.list(recursive=True)}
        self.assertEqual({path: row["type"] for path, row in rows.items()},
                         {"d": "directory", "d/f": "file", "link": "symlink", "pipe": "fifo",
                          "old": "file", "sock": "socket"})
        self.assertEqual((rows["d/f"]["size"], rows["d/f"]["mode"], rows["d"]["size"]), (6, "0640", 0))
        self.assertEqual(rows["old"]["mtime"], "1970-01-01T00:00:05.000Z")
        self.assertEqual(rows["d/f"]["etag"], session.read("d/f").header("ETag"))
        self.assertEqual([row["path"] for row in session.list()], ["d", "link", "old", "pipe", "sock"])
        self.assertEqual([row["path"] for row in session.list(path="d")], ["d/f"])
        self.assertEqual(session.names(glob="*f"), ["d/f"])

    def test_hidden(self):
        session = self.session()
        for name in (".deps/x", ".hidden/y", "sub/.deps/z", ".depsx"):
            session.put(name, b"1")
        self.assertEqual(session.names(), [".depsx", ".hidden", ".hidden/y", "sub", "sub/.deps",
                                           "sub/.deps/z"])
        self.assertEqual(session.get()["workspaceFiles"], 3)
        self.assertEqual(session.shell("echo 2 > .deps/x; echo 2 > sub/.deps/z")["files"],
                         [{"path": "sub/.deps/z", "size": 2, "change": "modified"}])

    def test_globs(self):
        session = self.session()
        for name in ("a.csv", "b.txt", "d/c.csv", "d/e/f.csv", "d/e/g.txt", "x[1].csv"):
            session.put(name, b"1")
        for glob, wanted in (("*.csv", ["a.csv", "d/c.csv", "d/e/f.csv", "x[1].csv"]),
                             ("d/*.csv", ["d/c.csv"]), ("d/**/*.csv", ["d/c.csv", "d/e/f.csv"]),
                             ("**/*.txt", ["b.txt", "d/e/g.txt"]), ("[ab].*", ["a.csv", "b.txt"]),
                             ("?.csv", ["a.csv", "d/c.csv", "d/e/f.csv"]), ("nope", []),
                             ("x\\[1\\].csv", ["x[1].csv"]), ("*" * 50 + "z", [])):
            with self.subTest(glob=glob), self.within(2):
                self.assertEqual(session.names(glob=glob), wanted)
        self.assertEqual([row["path"] for row in session.list(path="d", glob="*.csv")], ["d/c.csv"])

    def test_pages(self):
        session = self.session()
        self.assert_success(session.shell("for i in $(seq 25); do mkdir -p d$i; touch d$i/f; done"))
        whole = session.names()
        self.assertEqual(len(whole), 50)
        for limit in (1, 7, 49, 50, 51):
            self.assertEqual(session.names(limit=limit), whole, limit)
        page = session.page(recursive=True, limit=10).json
        session.raw("DELETE", page["items"][-1]["path"])
        session.put("d1/f", b"new")
        rest = session.page(recursive=True, limit=1000, cursor=page["nextCursor"]).json["items"]
        self.assertEqual([row["path"] for row in rest], whole[10:])

    def test_bad_queries(self):
        session = self.session()
        session.put("f", b"1")
        for query, status, code in (("path=nope", 404, "file_not_found"), ("path=f", 422, "bad_path"),
                                    ("path=..", 422, "bad_path"), ("path=/etc", 422, "bad_path"),
                                    ("limit=0", 422, "bad_value"), ("limit=10001", 422, "bad_value"),
                                    ("recursive=maybe", 422, "bad_value"), ("x=1", 422, "unknown_field"),
                                    ("cursor=***", 400, "bad_cursor"), ("cursor=", 400, "bad_cursor")):
            with self.subTest(query=query):
                reply = self.daemon.get(f"{session.path}/files?{query}")
                self.assertEqual((reply.status, reply.json["code"]), (status, code), reply)

    def test_many_files(self):
        session = self.session()
        self.assert_success(session.run_code("""
import os
for d in range(200):
    os.mkdir(f"d{d:03}")
    for f in range(100):
        os.close(os.open(f"d{d:03}/f{f:02}", os.O_CREAT))
"""))
        rows = session.list(recursive=True, limit=10000)
        self.assertEqual(len(rows), 20200)
        self.assertEqual(session.get()["workspaceFiles"], 20000)
        session.put("new", b"1")
        result = session.run(["rm", "d100/f50"])
        self.assertEqual([(row["path"], row["change"]) for row in result["files"]],
                         [("d100/f50", "deleted")])


class Deleted(sessionkit.Case):
    def test_files_and_trees(self):
        session = self.session()
        session.put("a/b/c", b"1")
        session.put("f", b"1")
        self.assertEqual(session.raw("DELETE", "f").status, 204)
        self.assert_problem(session.raw("DELETE", "f"), 404, "file_not_found")
        reply = session.raw("DELETE", "a")
        self.assert_problem(reply, 409, "file_exists")
        self.assertIn("recursive", reply.json["remediation"])
        self.assertEqual(self.daemon.request("DELETE", session.file("a/b/c")).status, 204)
        self.assertEqual(session.raw("DELETE", "a/b").status, 204)
        session.put("a/x/y", b"1")
        self.assertEqual(self.daemon.request("DELETE", session.file("a") + "?recursive=true").status, 204)
        self.assertEqual(session.names(), [])
        for path in ("", "%2e", "/"):
            reply = self.daemon.request("DELETE", f"{session.path}/files/{path}?recursive=1")
            self.assertTrue(400 <= reply.status < 500, reply)
        self.assert_success(session.run(["true"]))

    def test_a_large_tree_goes_at_once(self):
        session = self.session()
        self.assert_success(session.run_code("""
import os
for d in range(100):
    os.makedirs(f"top/d{d}")
    for f in range(100):
        os.close(os.open(f"top/d{d}/f{f}", os.O_CREAT))
os.chmod("top/d5", 0o555); os.makedirs("locked/x"); os.chmod("locked", 0o555)
""", trackFiles=False))
        with self.within(2):
            reply = self.daemon.request("DELETE", session.file("top") + "?recursive=true")
        self.assertEqual(reply.status, 204, reply)
        self.assertEqual(self.daemon.request("DELETE", session.file("locked") + "?recursive=1").status,
                         204)
        self.assertEqual(session.names(), [])
        harness.wait_for_none(lambda: [name for name in self.daemon.box_directories() if "del_" in name])
        self.assert_problem(self.daemon.request("DELETE", session.file("top") + "?recursive=true"), 404,
                            "file_not_found")

    def test_links_are_deleted_not_followed(self):
        session = self.session()
        self.assert_success(session.shell("mkdir d; touch d/f; ln -s d link; ln -s /etc out"))
        self.assertEqual(self.daemon.request("DELETE", session.file("link") + "?recursive=1").status, 204)
        self.assertEqual(session.raw("DELETE", "out").status, 204)
        self.assertEqual(session.names(), ["d", "d/f"])

    def test_move(self):
        session = self.session()
        session.put("a", b"1")
        session.put("b", b"2")
        etag = session.read("a").header("ETag")
        reply = session.post("files:move", {"from": "a", "to": "x/y/z"})
        self.assertEqual((reply.status, reply.json["path"], reply.json["type"]), (200, "x/y/z", "file"))
        self.assertNotEqual(reply.json["etag"], etag)
        self.assert_problem(session.post("files:move", {"from": "b", "to": "x/y/z"}), 409, "file_exists")
        reply = session.post("files:move", {"from": "b", "to": "x/y/z", "overwrite": True})
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(session.content("x/y/z"), b"2")
        self.assertEqual(session.post("files:move", {"from": "x", "to": "w"}).status, 200)
        self.assertEqual(session.names(), ["w", "w/y", "w/y/z"])
        for move, status, code in (({"from": "no", "to": "x"}, 404, "file_not_found"),
                                   ({"from": "w", "to": "w/y/q"}, 422, "bad_path"),
                                   ({"from": "../x", "to": "y"}, 422, "bad_path"),
                                   ({"from": "w", "to": "../y"}, 422, "bad_path"),
                                   ({"from": "w"}, 422, "bad_value"),
                                   ({"from": "w", "to": 5}, 422, "bad_value"),
                                   ({"from": "w", "to": "v", "x": 1}, 422, "unknown_field")):
            with self.subTest(move=move):
                reply = session.post("files:move", move)
                self.assertEqual((reply.status, reply.json["code"]), (status, code), reply)


class Hostile(sessionkit.Case):
    """What a box leaves behind must not hold up or lead astray the server."""

    def test_fifo_socket_and_directory(self):
        other = self.session()
        session = sessionkit.Session(self.daemon)
        self.assert_success(session.run_code("""
import os, socket
os.mkfifo("p"); os.mkdir("d.txt")
socket.socket(socket.AF_UNIX).bind("s")
"""))
        for name in ("p", "s", "d.txt"):
            for call in (lambda: session.read(name), lambda: session.put(name, b"x"),
                         lambda: session.raw("HEAD", name)):
                with self.within(1):
                    reply = call()
                self.assertTrue(400 <= reply.status < 500, reply)
            with self.within(2):
                self.assert_success(other.run(["true"]))
        self.assertEqual(session.names(), ["d.txt", "p", "s"])
        self.assert_success(session.run_code("print(1)"), "1\n")
        result = session.run(["true"], fetchFiles=["p", "s", "d.txt"])
        self.assertEqual({name: row["error"] for name, row in result["fetched"].items()},
                         dict.fromkeys(("p", "s", "d.txt"), "not_a_file"))
        reply = session.post("fork", {"id": "of-fifo"})
        self.assertEqual(reply.status, 201, reply)
        self.assertEqual(self.daemon.request("DELETE", "/v1/sessions/of-fifo").status, 204)
        session.delete()

    def test_leases(self):
        """Of fcntl(2): whoever opens such a file waits for its holder, up to 45 seconds."""
        session = self.session()
        held = ("import fcntl, os, signal, time\nsignal.signal(signal.SIGIO, signal.SIG_IGN)\n"
                "kept = os.open('leased', os.O_RDWR | os.O_CREAT)\n"
                "fcntl.fcntl(kept, fcntl.F_SETLEASE, fcntl.F_WRLCK)\nopen('began', 'w').close()\n"
                "while not os.path.exists('go'): time.sleep(0.01)\n")
        thread = threading.Thread(target=session.run_code, args=(held,))
        thread.start()
        try:
            census.wait_until(lambda: session.read("began").status == 200, harness.seconds(20), "the lease")
            for call in (lambda: session.read("leased"), lambda: session.raw("HEAD", "leased")):
                with self.within(2):
                    self.assertEqual(call().status, 409)
            self.assert_problem(session.read("leased"), 409, "session_busy")
            with self.within(2):
                reply = session.post("snapshots", {})
            self.assertEqual((reply.status, [row["path"] for row in reply.json["leftOut"]]),
                             (201, ["leased"]), reply)
            result = session.run(["sh", "-c", "echo x >closed; chmod 0 closed"], fetchFiles=["leased", "closed"])
            self.assertEqual(result["fetched"], {"leased": {"error": "busy"}, "closed": {"error": "not_readable"}})
            with self.within(2):
                self.assertEqual(session.put("leased", b"another").status, 204)
            self.assertEqual(session.read("leased").body, b"another")
        finally:
            session.put("go", b"")
            thread.join()

    def test_symbolic_links(self):
        outside = os.path.join(self.daemon.home, "outside")
        os.makedirs(outside, exist_ok=True)
        os.chmod(outside, 0o777)
        with open(os.path.join(outside, "canary"), "w", encoding="ascii") as file:
            file.write("host")
        session = self.session()
        session.put("real/f", b"inside")
        self.assert_success(session.shell(
            f"ln -s {outside} dir; ln -s {outside}/canary file; ln -s real in; ln -s real/f inf;"
            "ln -s /proc/self/root root; ln -s loop loop; ln -s .. up"))
        for name in ("dir/canary", "file", "in/f", "inf", "root/etc/passwd", "loop", "up/x", "dir",
                     "dir/new", "dir/../f"):
            for method, body in (("GET", None), ("PUT", b"evil"), ("HEAD", None)):
                with self.subTest(name=name, method=method), self.within(1):
                    reply = session.raw(method, name, body)
                    self.assertTrue(400 <= reply.status < 500, reply)
        self.assert_problem(self.daemon.get(session.path + "/files?path=dir"), 422, "bad_path")
        self.assert_problem(session.post("files:move", {"from": "real/f", "to": "dir/f"}), 422, "bad_path")
        self.assert_problem(session.post("files:move", {"from": "dir/canary", "to": "x"}), 422, "bad_path")
        self.assert_problem(session.raw("DELETE", "dir/canary"), 422, "bad_path")
        self.assertEqual(os.listdir(outside), ["canary"])
        with open(os.path.join(outside, "canary"), encoding="ascii") as file:
            self.assertEqual(file.read(), "host")
        self.assertEqual(session.content("real/f"), b"inside")

    def test_a_directory_that_turns_into_a_link_and_back(self):
        outside = os.path.join(self.daemon.home, "swapped")
        os.makedirs(outside, exist_ok=True)
        os.chmod(outside, 0o777)
        with open(os.path.join(outside, "f"), "w", encoding="ascii") as file:
            file.write("host")
        session = self.session()
        session.put("d/f", b"box")
        script = f"""
import os, time
os.symlink({outside!r}, "link")
end = time.time() + 4
while time.time() < end:
    os.rename("d", "was"); os.rename("link", "d")
    os.rename("d", "link"); os.rename("was", "d")
"""
        thread = threading.Thread(target=session.run_code, args=(script,),
                                  kwargs={"trackFiles": False})
        thread.start()
        seen = set()
        try:
            while thread.is_alive():
                seen.add(session.read("d/f").body[:4])
                session.put("d/g", b"evil")
                session.list(recursive=True)
                session.post("files:move", {"from": "d/g", "to": "d/h", "overwrite": True})
        finally:
            thread.join()
        self.assertNotIn(b"host", seen)
        self.assertEqual(os.listdir(outside), ["f"])

    def test_modes_that_shut_out(self):
        session = sessionkit.Session(self.daemon)
        result = session.run_code("""
import os
os.makedirs("d/e"); open("d/e/f", "w").write("x"); os.makedirs("go/mod"); open("go/mod/m", "w").write("y")
os.chmod("d/e/f", 0); os.chmod("d/e", 0); os.chmod("go/mod", 0o555); os.chmod("go", 0o555)
os.chmod(".", 0o555)
""")
        self.assert_success(result)
        rows = {row["path"]: row for row in session.list(recursive=True)}
        self.assertTrue(rows["d/e"]["unreadable"])
        self.assertFalse(rows["go/mod/m"]["unreadable"])
        self.assertTrue(400 <= session.read("d/e/f").status < 500)
        self.assertEqual(session.content("go/mod/m"), b"y")
        self.assert_problem(session.put("go/mod/new", b"1"), 403, "forbidden")
        self.assert_problem(session.put("new", b"1"), 403, "forbidden")
        self.assertEqual(session.get()["state"], "ready")
        self.assert_success(session.run(["true"]))
        session.delete()
        harness.wait_for_none(lambda: [name for name in self.daemon.box_directories()
                                       if session.id in name or "del_" in name])

    def test_a_workspace_of_mode_000(self):
        session = sessionkit.Session(self.daemon)
        session.put("f", b"1")
        self.assert_success(session.shell("chmod 000 ."))
        reply = self.daemon.get(session.path + "/files")
        self.assertIn(reply.status, (200, 403), reply)
        self.assertIn(self.daemon.get(session.path).status, (200,))
        session.delete()
        harness.wait_for_none(lambda: [name for name in self.daemon.box_directories()
                                       if session.id in name or "del_" in name])

    def test_times_and_sizes_at_the_edge(self):
        session = self.session()
        self.assert_success(session.run_code("""
import os
for name, seconds in (("future", 4102444800), ("far", 15032385535), ("past", -2**31)):
    open(name, "w").close()
    os.utime(name, (seconds, seconds))
os.truncate(os.open("sparse", os.O_CREAT | os.O_RDWR), 1 << 40)
"""))
        rows = {row["path"]: row for row in session.list()}
        self.assertEqual(rows["sparse"]["size"], 1 << 40)
        self.assertEqual(rows["future"]["mtime"], "2100-01-01T00:00:00.000Z")
        self.assertTrue(rows["past"]["mtime"].startswith("19"))

    def test_deep_trees(self):
        session = sessionkit.Session(self.daemon)
        self.assert_success(session.run_code("""
import os
for _ in range(1500):
    os.mkdir("dddd"); os.chdir("dddd")
open("f", "w").close()
"""))
        with self.within(20):
            page = session.page(recursive=True, limit=10000)
            self.assertEqual(page.status, 200)
            self.assertTrue(page.json["incomplete"])
            session.delete()
        harness.wait_for_none(lambda: [name for name in self.daemon.box_directories()
                                       if session.id in name or "del_" in name])

    def test_a_file_that_grows_while_it_is_fetched(self):
        session = self.session()
        thread = threading.Thread(target=session.run_code, args=("""
import time
end = time.time() + 3
with open("log", "wb", 0) as f:
    while time.time() < end:
        f.write(b"x" * 65536)
        time.sleep(0.001)
""",), kwargs={"trackFiles": False})
        thread.start()
        try:
            while thread.is_alive():
                reply = session.read("log")
                if reply.status == 200:
                    self.assertEqual(len(reply.body), int(reply.header("Content-Length")))
        finally:
            thread.join()


class Quota(sessionkit.Case):
    def test_a_put_above_it(self):
        session = self.session(diskMb=2)
        self.assertEqual(session.put("a", b"x" * (1 << 20)).status, 201)
        self.assert_problem(session.put("b", b"x" * (3 << 19)), 507, "workspace_full")
        self.assertEqual(session.names(), ["a"])
        self.assertEqual(session.put("b", b"x" * 1000).status, 201)
        session.raw("DELETE", "a")
        self.assertEqual(session.put("c", b"x" * (3 << 19)).status, 201)

    def test_a_session_of_none(self):
        for method, path, body in (("GET", "/files", None), ("GET", "/files/x", None),
                                   ("PUT", "/files/x", b"1"), ("DELETE", "/files/x", None),
                                   ("POST", "/files:move", {"from": "a", "to": "b"})):
            reply = self.daemon.request(method, "/v1/sessions/none" + path, body,
                                        media_type=None if isinstance(body, bytes) else
                                        "application/json")
            self.assert_problem(reply, 404, "session_not_found")


if __name__ == "__main__":
    unittest.main()
