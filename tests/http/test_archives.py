# SPDX-License-Identifier: Apache-2.0
"""All files of a session at once: archives out and in, by the tools that people have."""
import io
import os
import shutil
import subprocess
import tarfile
import tempfile
import unittest

import archivekit
import census
import harness
import sessionkit
from archivekit import GZIP, archive, contents, link, member


class Case(sessionkit.Case):
    def send(self, session, data, query="", **options):
        options.setdefault("media_type", GZIP)
        return self.daemon.request("PUT", f"{session.path}/archive{query}", data, **options)

    def send_good(self, session, data, query=""):
        reply = self.send(session, data, query)
        self.assertEqual(reply.status, 200, reply)
        return reply.json

    def fetch(self, session, query="", **options):
        reply = self.daemon.get(f"{session.path}/archive{query}", **options)
        self.assertEqual(reply.status, 200, reply)
        return reply

    def folder(self):
        path = tempfile.mkdtemp(prefix="kernd-archive-")
        self.addCleanup(shutil.rmtree, path)
        return path


class In(Case):
    def test_many_files_at_once(self):
        session = self.session()
        session.put("kept", b"kept")
        session.put("a/old", b"old")
        session.put("a/b", b"old")
        taken = self.send_good(session, archive(member("a/b", b"new"), member("c/d/e", b"deep"),
                                                member("run", b"#!", mode=0o755)))
        self.assertEqual(taken, {"entries": 3, "bytes": 9})
        self.assertEqual({name: session.content(name) for name in
                          ("kept", "a/old", "a/b", "c/d/e", "run")},
                         {"kept": b"kept", "a/old": b"old", "a/b": b"new", "c/d/e": b"deep",
                          "run": b"#!"})
        self.assert_success(session.shell("stat -c %a run"), "755\n")

    def test_into_a_directory(self):
        session = self.session()
        self.send_good(session, archive(member("x", b"1")), "?path=deep/er")
        self.send_good(session, archive(member("y", b"2")), "?path=/workspace/deep/er/")
        self.assertEqual(session.names(), ["deep", "deep/er", "deep/er/x", "deep/er/y"])
        for path in ("../x", "/etc", "a/../b"):
            self.assert_problem(self.send(session, archive(), f"?path={path}"), 422, "bad_path")

    def test_replacing_everything(self):
        session = self.session()
        session.put("old", b"1")
        self.send_good(session, archive(member("new", b"2")), "?replace=true")
        self.assertEqual(session.names(), ["new"])
        self.assert_problem(self.send(session, archive(), "?replace=true&path=x"), 422, "bad_value")

    def test_plain_and_compressed(self):
        session = self.session()
        for mode, media_type in (("w", "application/x-tar"), ("w:gz", GZIP),
                                 ("w:xz", sessionkit.OCTETS), ("w:xz", "application/x-xz"),
                                 ("w:bz2", None), ("w:bz2", "application/x-bzip2")):
            with self.subTest(mode=mode):
                data = archive(member("form", mode.encode()), mode=mode)
                reply = self.send(session, data, media_type=media_type)
                self.assertEqual(reply.status, 200, reply)
                self.assertEqual(session.content("form"), mode.encode())
        self.assertEqual(self.send(session, b"{}", media_type="application/json").status, 415)

    def test_hostile_archives_change_nothing(self):
        session = self.session()
        session.put("good", b"mine")
        for what, data in archivekit.hostile().items():
            for query in ("", "?replace=true"):
                with self.subTest(what=what, query=query):
                    reply = self.send(session, data, query)
                    self.assert_problem(reply, 422, "bad_archive")
                    self.assertRegex(reply.json["detail"], archivekit.DETAILS.get(what, "."))
        self.assertEqual((session.names(), session.content("good")), (["good"], b"mine"))

    def test_bombs(self):
        session = self.session(diskMb=4)
        bomb = archive(member("zeros", b"\1" * (64 << 20)))
        self.assertLess(len(bomb), 1 << 20)
        self.assert_problem(self.send(session, bomb), 507, "workspace_full")
        self.assertEqual(session.names(), [])
        self.send_good(session, archive(member("half", os.urandom(3 << 20))))
        self.assert_problem(self.send(session, archive(member("more", os.urandom(3 << 20)))), 507,
                            "workspace_full")
        self.assertEqual(session.names(), ["half"])

    def test_what_is_in_the_way(self):
        session = self.session()
        self.assert_success(session.shell("mkdir d; echo x > d/in; echo x > f; ln -s /etc l"))
        for data in (archive(member("a", b"1"), member("d", b"1")),
                     archive(member("a", b"1"), member("f/x", b"1")),
                     archive(member("a", b"1"), member("l/passwd", b"1")),
                     archive(member("a", b"1"), member("l/", type=tarfile.DIRTYPE)),
                     archive(member("a", b"1"), member("l", type=tarfile.DIRTYPE),
                             member("l/passwd", b"1"))):
            self.assert_problem(self.send(session, data), 409, "file_exists")
        self.assertNotIn("a", session.names())
        self.send_good(session, archive(member("l", b"a file now")))
        self.assertEqual(session.content("l"), b"a file now")


class Out(Case):
    def test_forms(self):
        session = self.session()
        session.put("a/b", b"1")
        session.put("c", b"2")
        wanted = {"a": None, "a/b": b"1", "c": b"2"}
        whole = self.fetch(session)
        self.assertEqual((whole.media_type, whole.body[:2]), (GZIP, b"\x1f\x8b"))
        self.assertEqual(contents(whole.body), wanted)
        self.assertEqual(whole.header("X-Archive-Entries"), "3")
        for options in ({"query": "?format=tar"},
                        {"headers": {"Accept": "application/x-tar"}}):
            plain = self.fetch(session, **options)
            self.assertEqual(plain.media_type, "application/x-tar")
            self.assertEqual(contents(plain.body), wanted)
            self.assertEqual(plain.body[257:262], b"ustar")
        self.assertEqual(contents(self.fetch(session, "?path=a").body), {"b": b"1"})
        same = {"If-None-Match": whole.header("ETag")}
        again = self.daemon.get(session.path + "/archive", headers=same)
        self.assertEqual((again.status, again.header("Content-Length")), (304, str(len(whole.body))))
        part = self.daemon.get(session.path + "/archive", headers={"Range": "bytes=0-9"})
        self.assertEqual((part.status, part.body), (206, whole.body[:10]))

    def test_refusals(self):
        session = self.session()
        target = session.path + "/archive"
        session.put("file", b"")
        for query, status, code in (("?path=none", 404, "file_not_found"),
                                    ("?path=../x", 422, "bad_path"), ("?path=file", 422, "bad_path"),
                                    ("?format=zip", 422, "bad_value"), ("?x=1", 422, "unknown_field"),
                                    ("?links=maybe", 422, "bad_value")):
            with self.subTest(query=query):
                self.assert_problem(self.daemon.get(target + query), status, code)
        reply = self.daemon.get(target, headers={"Accept": "application/json"})
        self.assert_problem(reply, 406, "not_acceptable")
        self.assert_problem(self.daemon.get("/v1/sessions/none/archive"), 404, "session_not_found")

    def test_links(self):
        session = self.session()
        self.assert_success(session.shell("echo x > a; ln -s a in; ln -s /etc/passwd out; mkfifo p"))
        whole = self.fetch(session)
        self.assertEqual(contents(whole.body), {"a": b"x\n", "in": "a"})
        self.assertEqual(whole.header("X-Archive-Left-Out"), "2")
        self.assertEqual(contents(self.fetch(session, "?links=false").body), {"a": b"x\n"})

    def test_other_calls_go_on(self):
        """Packing takes a lane of its own: small calls are answered while it is at it."""
        session = self.session()
        self.assert_success(session.run_code(
            "import os\nfor n in range(4): open(f'f{n}', 'wb').write(os.urandom(3 << 20))"))
        replies = harness.parallel(6, lambda n: (
            self.daemon.get(session.path + "/archive") if n < 4 else
            [self.daemon.get("/v1/version").status for _ in range(20)]))
        self.assertEqual([reply.status for reply in replies[:4]], [200] * 4)
        self.assertEqual(replies[4:], [[200] * 20] * 2)


class Deleted(Case):
    """Deleting a session does not wait for work on its files that takes minutes."""

    def large(self):
        session = sessionkit.Session(self.daemon)
        self.assert_success(session.run_code(archivekit.LARGE, trackFiles=False))
        return session

    def writing(self):
        return archivekit.is_packing(self.daemon)

    def assert_stopped(self, session, work, begun):
        def delete():
            census.wait_until(begun, 20, "the work's start")
            return self.daemon.request("DELETE", session.path)
        reply, deleted = harness.parallel(2, lambda n: work() if n == 0 else delete())
        self.assertEqual(deleted.status, 204, deleted)
        self.assert_problem(reply, 404, "session_not_found")

    def test_while_it_is_packed(self):
        session = self.large()
        self.assert_stopped(session, lambda: self.daemon.get(session.path + "/archive"),
                            self.writing)
        self.assertFalse(self.writing())

    def test_while_a_snapshot_is_made(self):
        session = self.large()
        self.assert_stopped(session, lambda: session.post("snapshots", {}), self.writing)
        self.assertEqual(self.daemon.get("/v1/snapshots").json["items"], [])

    def test_while_it_is_copied(self):
        session = self.large()
        copy = "/v1/sessions/copy"
        self.assert_stopped(session, lambda: session.post("fork", {"id": "copy"}),
                            lambda: self.daemon.get(copy).status == 200)
        self.assertEqual(self.daemon.get(copy).status, 404)

    def test_while_its_copy_is_made(self):
        session = self.large()
        self.addCleanup(session.delete)
        copy = "/v1/sessions/copy"

        def delete():
            census.wait_until(lambda: self.daemon.get(copy).status == 200, 20, "the copy's start")
            return self.daemon.request("DELETE", copy)
        reply, deleted = harness.parallel(
            2, lambda n: session.post("fork", {"id": "copy"}) if n == 0 else delete())
        self.assertEqual(deleted.status, 204, deleted)
        self.assert_problem(reply, 404, "session_not_found")
        self.assertEqual(session.content("f3")[:4], session.content("f")[:4])


class GivenUp(Case):
    """Who asked for it has hung up: it ends, changes nothing, and its thread is free."""

    def staged(self):
        """What is being unpacked: new trees, and those of forks and new sessions."""
        return [name for name in os.listdir(self.daemon.path("state/workspaces"))
                if name not in self.before]

    def hang_up(self, method, target, body, begun, media_type="application/json"):
        """As soon as it has begun. Told with 500 to nobody; what ran to its end would be 422 or 2xx."""
        seen = len(self.daemon.log())
        headers = {**self.daemon.authorization(), "Content-Type": media_type}
        with self.daemon.connect() as connection:
            connection.request(method, target, headers, body)
            census.wait_until(begun, harness.seconds(20), "its start")
        told = census.wait_until(
            lambda: next((line for line in self.daemon.log()[seen:].splitlines()
                          if "client=gone" in line and f"method={method}" in line), None),
            harness.seconds(20), "its end")
        self.assertIn("status=500", told)
        census.wait_gone(self.staged, harness.seconds(10), "what was unpacked")

    def setUp(self):
        super().setUp()
        self.kept = self.session()
        self.kept.put("good", b"mine")
        self.before = os.listdir(self.daemon.path("state/workspaces"))

    def tearDown(self):
        self.assertEqual((self.kept.names(), self.kept.content("good")), (["good"], b"mine"))
        self.fetch(self.kept)
        super().tearDown()

    def test_archives_and_imports(self):
        data = archivekit.endless(member("other", b"x"))
        for target in (f"{self.kept.path}/archive", f"{self.kept.path}/archive?replace=true",
                       "/v1/snapshots/endless/content"):
            with self.subTest(target=target):
                self.hang_up("PUT", target, data, self.staged, GZIP)
        self.assert_problem(self.daemon.get("/v1/snapshots/endless"), 404, "snapshot_not_found")

    def test_snapshots_brought_back(self):
        reply = self.daemon.request("PUT", "/v1/snapshots/late/content", archive(member("a", b"1")),
                                    media_type=GZIP)
        self.assertEqual(reply.status, 201, reply)
        self.addCleanup(self.daemon.request, "DELETE", "/v1/snapshots/late")
        with open(self.daemon.path(f"state/snapshots/{reply.json['digest']}"), "wb") as file:
            file.write(archivekit.endless(member("a", b"1")))
        for target, body in ((f"{self.kept.path}/restore", {"snapshotId": "late"}),
                             ("/v1/sessions", {"snapshotId": "late", "id": "from-late"})):
            with self.subTest(target=target):
                self.hang_up("POST", target, harness.as_json(body), self.staged)
        self.assert_problem(self.daemon.get("/v1/sessions/from-late"), 404, "session_not_found")

    def test_what_is_packed_or_copied(self):
        session = self.session()
        self.assert_success(session.run_code(archivekit.LARGE, trackFiles=False))
        self.before = os.listdir(self.daemon.path("state/workspaces"))
        packing = lambda: archivekit.is_packing(self.daemon)  # noqa: E731
        self.hang_up("GET", f"{session.path}/archive", None, packing)
        self.hang_up("POST", f"{session.path}/snapshots", b"{}", packing)
        self.assertFalse(packing())
        self.hang_up("POST", f"{session.path}/fork", b'{"id": "half"}',
                     lambda: self.daemon.get("/v1/sessions/half").status == 200)
        self.assert_problem(self.daemon.get("/v1/sessions/half"), 404, "session_not_found")
        self.assertEqual(self.daemon.get("/v1/snapshots").json["items"], [])


class Tools(Case):
    """GNU tar and Python's tarfile make what we take, and take what we make, byte for byte."""

    def fill(self, folder):
        long = "/".join(["n" * 60] * 4)
        os.makedirs(os.path.join(folder, long))
        for name, data in ((long + "/z", b"deep"), ("a", b"1" * 5000), ("é ☃", b"name"),
                           ("x" * 150, b"long"), ("run.sh", b"#!/bin/sh\n")):
            with open(os.path.join(folder, name), "wb") as file:
                file.write(data)
        os.mkdir(os.path.join(folder, "empty"))
        os.chmod(os.path.join(folder, "run.sh"), 0o755)
        os.symlink("a", os.path.join(folder, "rel"))
        os.link(os.path.join(folder, "a"), os.path.join(folder, "twin"))
        with open(os.path.join(folder, "sparse"), "wb") as file:
            file.truncate(16 << 20)
            file.seek(8 << 20)
            file.write(b"middle")

    def tree(self, folder):
        found = {}
        for parent, folders, files in os.walk(folder):
            for name in folders + files:
                path = os.path.join(parent, name)
                status = os.lstat(path)
                what = oct(status.st_mode), int(status.st_mtime)
                if os.path.islink(path):
                    what = os.readlink(path)
                elif os.path.isfile(path):
                    with open(path, "rb") as file:
                        what += (file.read(),)
                found[os.path.relpath(path, folder)] = what
        return found

    def run_tool(self, *command):
        subprocess.run(command, check=True, stdin=subprocess.DEVNULL)

    def back_and_forth(self, data, unpack):
        session = self.session()
        self.send_good(session, data, "?replace=true")
        out = self.folder()
        path = os.path.join(self.folder(), "out.tar.gz")
        with open(path, "wb") as file:
            file.write(self.fetch(session).body)
        unpack(path, out)
        return self.tree(out)

    def with_gnu_tar(self, path, out):
        self.run_tool("tar", "-xzpf", path, "-C", out)

    def with_python(self, path, out):
        with tarfile.open(path) as tar:
            tar.extractall(out)

    def test_gnu_tar(self):
        source = self.folder()
        self.fill(source)
        for form in (["--format=gnu"], ["--format=pax"], ["--format=gnu", "--sparse"],
                     ["--format=pax", "--sparse"]):
            for names in ([".", "-C", source], None):
                with self.subTest(form=form, names=names is None):
                    path = os.path.join(self.folder(), "x.tar.gz")
                    where = [".", ] if names else sorted(os.listdir(source))
                    self.run_tool("tar", "-C", source, "-czf", path, *form, *where)
                    with open(path, "rb") as file:
                        found = self.back_and_forth(file.read(), self.with_gnu_tar)
                    self.assertEqual(found, self.tree(source))

    def test_python_tarfile(self):
        source = self.folder()
        self.fill(source)
        for form in (tarfile.GNU_FORMAT, tarfile.PAX_FORMAT):
            with self.subTest(form=form):
                data = io.BytesIO()
                with tarfile.open(fileobj=data, mode="w:gz", format=form) as tar:
                    tar.add(source, arcname=".")
                found = self.back_and_forth(data.getvalue(), self.with_python)
                self.assertEqual(found, self.tree(source))

    def with_bsdtar(self, path, out):
        self.run_tool("bsdtar", "-xpf", path, "-C", out)

    def test_bsdtar(self):
        source = self.folder()
        self.fill(source)
        for form in ("pax", "gnutar"):
            with self.subTest(form=form):
                path = os.path.join(self.folder(), "x.tar.gz")
                self.run_tool("bsdtar", "-C", source, "-czf", path, "--format", form, ".")
                with open(path, "rb") as file:
                    found = self.back_and_forth(file.read(), self.with_bsdtar)
                self.assertEqual(found, self.tree(source))

    def test_minimal_writers(self):
        """Files alone without directories, modes and times; and readers that take little else."""
        files = {"a/b/c.txt": b"hello", "bin": os.urandom(200000), "zero": b"", "é ☃": b"x",
                 "x" * 100: b"long", "full": b"y" * 512}
        session = self.session()
        self.send_good(session, archivekit.plain_ustar(files), "?replace=true")
        for name, content in files.items():
            self.assertEqual(session.content(name), content, name)
        back = self.fetch(session).body
        for found in (contents(back), archivekit.plain_read(back)):
            self.assertEqual({name: found[name] for name in files}, files)

    def with_cautious_python(self, path, out):
        """Looks at all members before it makes the first one: files and directories inside alone."""
        with tarfile.open(path, "r:*") as tar:
            for info in tar:
                self.assertTrue(info.isreg() or info.isdir(), info)
                self.assertFalse(info.name.startswith("/") or ".." in info.name.split("/"), info)
                self.assertEqual(info.mode & ~0o777, 0)
            tar.extractall(out)

    def test_plain_ustar_of_each_name(self):
        """Entry by entry, as programs write it that want no pax: with modes, times and a prefix."""
        source = self.folder()
        for name, data, mode in (("a/b", b"1", 0o640), ("run.sh", b"#!/bin/sh\n", 0o755), ("zero", b"", 0o444),
                                 ("é ☃/ü", os.urandom(70000), 0o600), ("d" * 150 + "/" + "f" * 90, b"x", 0o644)):
            path = os.path.join(source, name)
            os.makedirs(os.path.dirname(path), exist_ok=True)
            with open(path, "wb") as file:
                file.write(data)
            os.chmod(path, mode)
            os.utime(path, (1.5e9, 1.5e9))
        os.makedirs(os.path.join(source, "empty/inner"))
        os.chmod(os.path.join(source, "empty/inner"), 0o711)
        os.utime(os.path.join(source, "empty/inner"), (1e9, 1e9))
        os.link(os.path.join(source, "a/b"), os.path.join(source, "twin"))
        data = io.BytesIO()
        with tarfile.open(fileobj=data, mode="w:gz", compresslevel=1, format=tarfile.USTAR_FORMAT) as tar:
            for name in sorted(os.listdir(source)):
                tar.add(os.path.join(source, name), arcname=name)
        for unpack in (self.with_cautious_python, self.with_gnu_tar):
            self.assertEqual(self.back_and_forth(data.getvalue(), unpack), self.tree(source))

    def test_zstd(self):
        source = self.folder()
        self.fill(source)
        path = os.path.join(self.folder(), "x.tar.zst")
        self.run_tool("tar", "-C", source, "--zstd", "-cf", path, ".")
        with open(path, "rb") as file:
            data = file.read()
        self.assertEqual(self.back_and_forth(data, self.with_gnu_tar), self.tree(source))
        # As a snapshot it stays what it is, and what a download is called can be sent.
        target = "/v1/snapshots/zstd/content"
        self.addCleanup(self.daemon.request, "DELETE", "/v1/snapshots/zstd")
        for media_type, status in (("application/zstd", 201), (sessionkit.OCTETS, 200)):
            self.assertEqual(self.daemon.request("PUT", target, data, media_type=media_type).status, status)
        reply = self.daemon.get(target)
        self.assertEqual((reply.media_type, reply.body), ("application/zstd", data))
        session = self.session(snapshotId="zstd")
        self.assertEqual(session.content("run.sh"), b"#!/bin/sh\n")

    def test_links_within_come_along(self):
        session = self.session()
        self.send_good(session, archive(member("a", b"1"), link("d/up", "../a"),
                                        link("same", "a", tarfile.LNKTYPE)))
        self.assert_success(session.shell("cat d/up same"), "11")


if __name__ == "__main__":
    unittest.main()
