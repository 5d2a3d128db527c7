# SPDX-License-Identifier: Apache-2.0
"""Snapshots: kept, told, downloaded, imported, brought back, removed."""
import hashlib
import io
import json
import os
import pwd
import shutil
import tarfile
import tempfile
import unittest

import archivekit
import census
import harness
import kernelkit
import sessionkit
from archivekit import GZIP, archive, member

ORDINARY = """
import os
open("a","w").write("1"); os.link("a","b"); os.mkfifo("p"); os.symlink(os.path.abspath("a"),"abs"); os.mkdir("empty")
os.symlink("a", "rel")
open("run.sh","w").write("#!/bin/sh\\n"); os.chmod("run.sh",0o755)
long = "/".join(["n"*60]*4); os.makedirs(long); open(long+"/z","w").write("deep")
open("sparse","wb").truncate(1<<30)
open("é ☃.txt","w").write("text"); open(b"raw\\xff","w").write("bytes")
os.mkdir("locked"); open("locked/in","w").write("in"); os.chmod("locked",0o555)
"""
LONG = "/".join(["n" * 60] * 4) + "/z"
# Until there is a file "stop": names come and go and are now this, now that; one file grows and shrinks.
CHURN = """
import itertools, os, shutil
os.mkdir("d")
print("up", flush=True)
for number in itertools.count():
    if os.path.exists("stop"):
        break
    name = f"d/{number % 60}"
    if os.path.isdir(name) and not os.path.islink(name):
        shutil.rmtree(name)
    elif os.path.lexists(name):
        os.unlink(name)
    kind = (number // 60 + number) % 6
    if kind == 0:
        os.symlink("0", name)
    elif kind == 1:
        os.makedirs(name + "/in")
    elif kind == 2:
        os.mkfifo(name)
    elif kind > 3:
        with open(name, "w") as file:
            file.write("x" * (number % 5000))
    with open("log", "a") as file:
        file.write("line\\n" * 1000)
        if number % 40 == 0:
            file.truncate(100)
"""
MEMBERS = ("id name sessionId labels digest bytes entries leftOut leftOutTruncated "
           "createdAt").split()


class Case(sessionkit.Case):
    def take(self, session, **body):
        """A snapshot that goes with the test."""
        reply = session.post("snapshots", body)
        self.assertEqual(reply.status, 201, reply)
        self.assertEqual(list(reply.json), MEMBERS)
        self.assertEqual(reply.header("Location"), f"/v1/snapshots/{reply.json['id']}")
        self.addCleanup(self.remove, reply.json["id"])
        return reply.json

    def remove(self, name):
        self.assertEqual(self.daemon.request("DELETE", f"/v1/snapshots/{name}").status, 204)

    def bring_in(self, name, data, **options):
        return self.daemon.request("PUT", f"/v1/snapshots/{name}/content", data, media_type=GZIP,
                                   **options)

    def ids(self, query=""):
        reply = self.daemon.get("/v1/snapshots" + query)
        self.assertEqual(reply.status, 200, reply)
        return [row["id"] for row in reply.json["items"]]


class Ordinary(Case):
    def test_a_tree_and_back(self):
        session = self.session()
        self.assert_success(session.run_code(ORDINARY))
        with self.within(10):
            made = self.take(session, name="tree")
        self.assertLess(made["bytes"], 10 << 20)
        self.assertEqual({row["path"]: row["why"] for row in made["leftOut"]},
                         {"abs": "symlink", "p": "fifo"})
        session.put("extra", b"")
        session.put("a", b"2")
        self.assert_success(session.shell("rm -r run.sh rel locked; rmdir empty; echo x > sparse"))
        reply = session.post("restore", {"snapshotId": "tree"})
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(reply.json["entries"], made["entries"])
        # Nothing of the old tree is left.
        folder = self.daemon.path("state/workspaces")
        census.wait_until(lambda: {*os.listdir(folder)} <= {".trash", f"session-{session.id}"} and
                          (not os.path.isdir(folder + "/.trash") or not os.listdir(folder + "/.trash")),
                          harness.seconds(20), "the end of the old tree")
        self.check_tree(session)
        # A fresh session of the same files, also when the first is gone.
        other = self.session(snapshotId=made["id"])
        self.check_tree(other)
        self.assertEqual(other.get()["options"]["snapshotId"], made["id"])

    def check_tree(self, session):
        result = session.run_code(
            "import os, json\n"
            "s = os.stat('sparse')\n"
            "print(json.dumps([open('a').read(), open('b').read(), os.path.exists('extra'),\n"
            "  oct(os.stat('run.sh').st_mode & 0o7777), os.listdir('empty'),\n"
            f"  open({LONG!r}).read(), s.st_size, s.st_blocks * 512 < 1 << 20,\n"
            "  os.readlink('rel'), os.path.lexists('abs'), os.path.lexists('p'),\n"
            "  open('é ☃.txt').read(), open(b'raw\\xff').read(),\n"
            "  open('locked/in').read(), oct(os.stat('locked').st_mode & 0o7777)]))")
        self.assert_success(result)
        self.assertEqual(json.loads(result["stdout"]),
                         ["1", "1", False, "0o755", [], "deep", 1 << 30, True, "a", False, False,
                          "text", "bytes", "in", "0o555"])

    def test_the_same_files_are_stored_once(self):
        session = self.session()
        session.put("data", os.urandom(100000))
        first, second = self.take(session), self.take(session)
        self.assertEqual(first["digest"], second["digest"])
        self.assertEqual(os.listdir(self.daemon.path("state/snapshots")), [first["digest"]])
        self.remove(first["id"])
        self.assertEqual(self.daemon.get(f"/v1/snapshots/{second['id']}/content").status, 200)
        self.remove(second["id"])
        self.assertEqual(os.listdir(self.daemon.path("state/snapshots")), [])

    def test_an_empty_session(self):
        session = self.session()
        made = self.take(session)
        self.assertEqual((made["entries"], made["leftOut"], made["name"]), (0, [], None))
        session.put("a", b"1")
        self.assertEqual(session.post("restore", {"snapshotId": made["id"]}).status, 200)
        self.assertEqual(session.names(), [])

    def test_plain_trees_are_plain_ustar(self):
        """What simple readers take: no extended headers, files and directories alone."""
        session = self.session()
        session.put("a/b.txt", b"1" * 700)
        session.put("c", b"")
        session.put("é ☃.txt", b"text")
        session.put("ü" * 120, b"too long for the plain header")
        session.put("z", b"behind it")
        made = self.take(session)
        data = self.daemon.get(f"/v1/snapshots/{made['id']}/content").body
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            self.assertEqual(tar.pax_headers, {})
            rows = [(info.name, info.type, info.uid, info.pax_headers) for info in tar]
            texts = [tar.extractfile(info).read() for info in tar if info.isreg()][1:]
        long = next(row for row in rows if row[0] == "ü" * 120)
        self.assertEqual(long[3]["path"], "ü" * 120)
        self.assertEqual(sorted(texts), [b"", b"behind it", b"text", b"too long for the plain header"])
        rows.remove(long)
        self.assertEqual(sorted(rows), [
            ("a", tarfile.DIRTYPE, 0, {}), ("a/b.txt", tarfile.REGTYPE, 0, {}),
            ("c", tarfile.REGTYPE, 0, {}), ("z", tarfile.REGTYPE, 0, {}),
            ("é ☃.txt", tarfile.REGTYPE, 0, {})])


class Restored(Case):
    def test_kernels_see_the_new_files(self):
        session = self.session()
        session.put("a", b"1")
        made = self.take(session)
        kernel = kernelkit.Kernel(self.daemon, session.id)
        kernel.cell("x = 5; open('a', 'w').write('2'); open('extra', 'w')")
        self.assertEqual(session.post("restore", {"snapshotId": made["id"]}).status, 200)
        self.assertEqual(kernel.value("(x, open('a').read(), __import__('os').listdir())"),
                         "(5, '1', ['a'])")
        self.assertEqual(session.names(), ["a"])
        session.put("b", b"2")
        self.assertEqual(kernel.value("open('b').read()"), "'2'")

    def test_running_executions_are_not_pulled_from_under(self):
        session = self.session()
        session.put("a", b"1")
        made = self.take(session)
        reply = session.post("run", {"command": ["sh", "-c", "echo up; read x; cat a"], "id": "going",
                                     "interactive": True}, headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202, reply)
        census.wait_until(lambda: self.daemon.get("/v1/executions/going/stdout").body == b"up\n", 10,
                          "the program's start")
        self.assert_problem(session.post("restore", {"snapshotId": made["id"]}), 409, "session_busy")
        # A snapshot does not mind.
        self.take(session)
        self.daemon.request("POST", "/v1/executions/going/stdin?eof=true", b"\n",
                            media_type=sessionkit.OCTETS)
        self.daemon.get("/v1/executions/going?waitS=10")
        self.assertEqual(session.post("restore", {"snapshotId": made["id"]}).status, 200)

    def test_spares_do_not_show_old_files(self):
        session = self.session(prewarm=2)
        session.put("a", b"1")
        made = self.take(session)
        for _ in range(5):
            self.assert_success(session.run_code("print(open('a').read())"), "1\n")
            session.put("a", b"2")
            self.assert_success(session.run_code("print(open('a').read())"), "2\n")
            self.assertEqual(session.post("restore", {"snapshotId": made["id"]}).status, 200)

    def test_a_quota_holds(self):
        session = self.session()
        session.put("big", os.urandom(3 << 20))
        made = self.take(session)
        small = self.session(diskMb=1)
        small.put("a", b"1")
        self.assert_problem(small.post("restore", {"snapshotId": made["id"]}), 507,
                            "workspace_full")
        self.assertEqual((small.names(), small.content("a")), (["a"], b"1"))
        self.assert_problem(self.create(id="too-small", diskMb=1, snapshotId=made["id"]), 507,
                            "workspace_full")
        self.assert_problem(self.daemon.get("/v1/sessions/too-small"), 404, "session_not_found")

    def test_a_directory_of_the_host_stays_the_same_one(self):
        path = tempfile.mkdtemp(prefix="kernd-mine-")
        self.addCleanup(shutil.rmtree, path)
        if self.daemon.user:
            os.chown(path, pwd.getpwnam(self.daemon.user).pw_uid, -1)
        before = os.stat(path)
        session = self.session(workspace=path)
        session.put("a/b", b"1")
        made = self.take(session)
        session.put("a/b", b"2")
        session.put("extra", b"")
        self.assertEqual(session.post("restore", {"snapshotId": made["id"]}).status, 200)
        self.assertEqual((os.listdir(path), session.content("a/b")), (["a"], b"1"))
        self.assertEqual(os.stat(path).st_ino, before.st_ino)
        for query in ("", "?replace=true"):
            bad = self.daemon.request("PUT", f"{session.path}/archive{query}",
                                      archivekit.hostile()[".."], media_type=GZIP)
            self.assert_problem(bad, 422, "bad_archive")
        self.assertEqual((os.listdir(path), session.content("a/b")), (["a"], b"1"))

    def test_refusals(self):
        session = self.session()
        for body, status, code, pointer in (
                ({"snapshotId": "nothing"}, 404, "snapshot_not_found", None),
                ({}, 422, "bad_value", "/snapshotId"), ({"snapshotId": 5}, 422, "bad_value", None),
                ({"snapshotId": "../x"}, 422, "bad_value", "/snapshotId"),
                ({"snapshotID": "x"}, 422, "unknown_field", "/snapshotID")):
            with self.subTest(body=body):
                self.assert_problem(session.post("restore", body), status, code, pointer)
        self.assert_problem(self.create(snapshotId="nothing"), 404, "snapshot_not_found")
        self.assert_problem(self.create(snapshotId="x", workspace="/tmp"), 422, "bad_value",
                            "/snapshotId")
        self.assert_problem(self.daemon.post("/v1/sessions/none/restore", {"snapshotId": "x"}), 404,
                            "session_not_found")

    def test_a_session_with_a_setup(self):
        session = self.session()
        session.put("script", b"echo from the snapshot > made\n")
        made = self.take(session, name="with-script")
        other = self.session(snapshotId="with-script", setup="sh script")
        self.assertEqual(other.content("made"), b"from the snapshot\n")
        again = self.create(id=other.id, snapshotId="with-script", setup="sh script")
        self.assertEqual(again.status, 200, again)
        self.assert_problem(self.create(id=other.id, snapshotId=made["id"], setup="sh script"), 409,
                            "session_exists")


class AtTheSameTime(Case):
    def test_restores_among_other_calls(self):
        """Whoever comes in between is answered, and never finds half of each."""
        session = self.session()
        for name in ("a", "b"):
            session.put(name, b"1")
        made = self.take(session)
        body = {"snapshotId": made["id"]}
        calls = (
            lambda: session.post("restore", body),
            lambda: session.put("a", b"2"),
            lambda: session.page(recursive=True),
            lambda: session.post("run", {"command": ["cat", "a", "b"]}),
            lambda: self.daemon.request("PUT", session.path + "/archive",
                                        archive(member("c", b"3")), media_type=GZIP),
            lambda: self.daemon.get(session.path + "/archive"))
        seen = harness.parallel(len(calls), lambda n: [calls[n]() for _ in range(12)])
        for number, replies in enumerate(seen):
            for reply in replies:
                self.assertIn(reply.status, (200, 201, 204, 409), (number, reply))
                if reply.status == 409:
                    self.assertEqual(reply.json["code"], "session_busy")
                    self.assertEqual(number in (0, 4), True, reply)
        for reply in seen[2]:
            names = [row["path"] for row in reply.json["items"]]
            self.assertEqual(names[:2], ["a", "b"])
        for reply in seen[3]:
            self.assertIn(reply.json["stdout"], ("11", "21"))
        census.wait_until(lambda: session.post("restore", body).status == 200, 10, "an idle session")
        self.assertEqual(session.names(), ["a", "b"])


    def test_files_that_change_meanwhile(self):
        """Each snapshot, archive and fork is whole, and what it could not hold as it was is named."""
        session = self.session()
        session.put("kept", b"kept")
        reply = session.post("runCode", {"code": CHURN, "language": "python", "id": "churn", "trackFiles": False},
                             headers={"Prefer": "respond-async"})
        self.assertEqual(reply.status, 202, reply)
        census.wait_until(lambda: self.daemon.get("/v1/executions/churn/stdout").body == b"up\n", 10,
                          "the program's start")
        whys = set()
        for _ in range(8):
            made = self.take(session)
            whys |= {row["why"] for row in made["leftOut"]}
            other = self.session(snapshotId=made["id"])
            self.assertEqual(other.content("kept"), b"kept")
            self.check_members(self.daemon.get(f"/v1/snapshots/{made['id']}/content").body, made["entries"])
            self.check_members(self.daemon.get(f"{session.path}/archive?path=d").body)
            forked = session.post("fork", {})
            self.assertEqual(forked.status, 201, forked)
            self.addCleanup(self.daemon.request, "DELETE", forked.header("Location"))
        self.assertIn("fifo", whys)
        self.assertLessEqual(whys, {"fifo", "changed"})
        session.put("stop", b"")
        ended = self.daemon.get("/v1/executions/churn?waitS=20").json
        self.assertEqual((ended["state"], ended["exitCode"]), ("done", 0), ended)

    def check_members(self, data, entries=None):
        with tarfile.open(fileobj=io.BytesIO(data)) as tar:
            names = [info.name for info in tar]
        self.assertEqual(len(names), len(set(names)))
        self.assertEqual(len(names), entries or len(names))


class Told(Case):
    def test_list_get_and_names(self):
        session, other = self.session(), self.session()
        made = [self.take(session, labels={"n": str(number)}) for number in range(3)]
        made.append(self.take(other, name="named"))
        self.assertEqual(self.ids(), [row["id"] for row in made[::-1]])
        self.assertEqual(self.ids(f"?sessionId={other.id}"), [made[3]["id"]])
        page = self.daemon.get("/v1/snapshots?limit=3").json
        self.assertEqual(self.ids(f"?cursor={page['nextCursor']}"), [made[0]["id"]])
        self.assertEqual(self.daemon.get("/v1/snapshots/named").json, made[3])
        self.assertEqual(self.daemon.get(f"/v1/snapshots/{made[1]['id']}").json, made[1])
        for query, status, code in (("limit=0", 422, "bad_value"), ("cursor=x", 400, "bad_cursor"),
                                    ("sessionId=..", 422, "bad_value"), ("x=1", 422, "unknown_field")):
            with self.subTest(query=query):
                self.assert_problem(self.daemon.get(f"/v1/snapshots?{query}"), status, code)

    def test_names_and_labels(self):
        session = self.session()
        self.take(session, name="taken")
        self.assert_problem(session.post("snapshots", {"name": "taken"}), 409, "conflict", "/name")
        for body, code, pointer in (
                ({"name": "a/b"}, "bad_value", "/name"), ({"name": ""}, "bad_value", "/name"),
                ({"name": "snp_x"}, "bad_value", "/name"), ({"name": 1}, "bad_value", "/name"),
                ({"labels": []}, "bad_value", "/labels"),
                ({"labels": {"a": 1}}, "bad_value", "/labels/a"),
                ({"path": "x"}, "unknown_field", "/path")):
            with self.subTest(body=body):
                self.assert_problem(session.post("snapshots", body), 422, code, pointer)
        made = self.take(session, labels={"k": "two\nlines\\n", "x": ""})
        self.assertEqual(made["labels"], {"k": "two\nlines\\n", "x": ""})
        self.assertEqual(self.daemon.get(f"/v1/snapshots/{made['id']}").json["labels"],
                         made["labels"])

    def test_deleting_is_repeatable_and_leaves_sessions_alone(self):
        session = self.session()
        session.put("a", b"1")
        made = self.take(session)
        other = self.session(snapshotId=made["id"])
        self.remove(made["id"])
        self.remove(made["id"])
        self.assert_problem(self.daemon.get(f"/v1/snapshots/{made['id']}"), 404,
                            "snapshot_not_found")
        self.assert_problem(self.daemon.get(f"/v1/snapshots/{made['id']}/content"), 404,
                            "snapshot_not_found")
        self.assertEqual(other.content("a"), b"1")

    def test_a_snapshot_outlives_its_session(self):
        session = sessionkit.Session(self.daemon)
        session.put("a", b"1")
        made = self.take(session)
        session.delete()
        self.assertEqual(self.session(snapshotId=made["id"]).content("a"), b"1")

    def test_an_idempotency_key(self):
        session = self.session()
        key = {"Idempotency-Key": "once"}
        first = session.post("snapshots", {}, headers=key)
        again = session.post("snapshots", {}, headers=key)
        self.addCleanup(self.remove, first.json["id"])
        self.assertEqual((first.status, again.status), (201, 201))
        self.assertEqual(first.json, again.json)
        self.assertEqual(again.header("Idempotency-Replayed"), "true")


class Content(Case):
    def test_download(self):
        session = self.session()
        session.put("data", os.urandom(50000))
        made = self.take(session, name="here")
        target = "/v1/snapshots/here/content"
        whole = self.daemon.get(target)
        self.assertEqual((whole.status, whole.media_type), (200, GZIP))
        self.assertEqual(hashlib.sha256(whole.body).hexdigest(), made["digest"])
        self.assertEqual(len(whole.body), made["bytes"])
        self.assertEqual(whole.header("ETag"), f'"{made["digest"]}"')
        self.assertIn('filename="here.tar.gz"', whole.header("Content-Disposition"))
        part = self.daemon.get(target, headers={"Range": "bytes=100-299"})
        self.assertEqual((part.status, part.body), (206, whole.body[100:300]))
        self.assertEqual(part.header("Content-Range"), f"bytes 100-299/{made['bytes']}")
        self.assertEqual(self.daemon.get(target, headers={"Range": "bytes=900000-"}).status, 416)
        same = {"If-None-Match": whole.header("ETag")}
        again = self.daemon.get(target, headers=same)
        self.assertEqual((again.status, again.header("Content-Length")), (304, str(made["bytes"])))
        head = self.daemon.request("HEAD", target)
        self.assertEqual((head.status, head.header("Content-Length")), (200, str(made["bytes"])))

    def test_import(self):
        data = archive(member("a/b", b"1"), member("c", b"2", mode=0o755))
        reply = self.bring_in("mine", data)
        self.addCleanup(self.remove, "mine")
        self.assertEqual(reply.status, 201, reply)
        self.assertEqual((reply.json["digest"], reply.json["sessionId"], reply.json["entries"]),
                         (hashlib.sha256(data).hexdigest(), None, 2))
        self.assertEqual(self.daemon.get("/v1/snapshots/mine/content").body, data)
        session = self.session(snapshotId="mine")
        self.assertEqual(session.content("a/b"), b"1")
        # Again under the same name: in place of the old one, which leaves nothing.
        other = archive(member("new", b"3"), mode="w:xz")
        reply = self.bring_in("mine", other)
        self.assertEqual(reply.status, 200, reply)
        self.assertEqual(self.daemon.get("/v1/snapshots/mine/content").media_type,
                         "application/x-xz")
        self.assertEqual(os.listdir(self.daemon.path("state/snapshots")), [reply.json["digest"]])
        self.assertEqual(self.bring_in("mine", other).status, 200)
        self.assertEqual(session.post("restore", {"snapshotId": "mine"}).status, 200)
        self.assertEqual(session.names(), ["new"])

    def test_hostile_imports(self):
        before = self.ids()
        for what, data in archivekit.hostile().items():
            with self.subTest(what=what):
                self.assert_problem(self.bring_in("bad", data), 422, "bad_archive")
        self.assert_problem(self.bring_in("snp_x", archive()), 422, "bad_value")
        self.assertEqual(self.ids(), before)
        self.assertEqual(os.listdir(self.daemon.path("state/snapshots")), [])


class Restarted(Case):
    def test_snapshots_survive(self):
        session = self.session()
        self.assert_success(session.run_code("import os; open('a','w').write('1'); os.mkfifo('p')"))
        made = self.take(session, name="kept", labels={"a": "b"})
        stray = self.daemon.path("state/snapshots/" + "0" * 64)
        with open(stray, "wb") as file:
            file.write(b"nobody's")
        left = self.daemon.path("state/workspaces/staging_left")
        os.mkdir(left)
        owner = os.stat(os.path.dirname(left))
        os.chown(left, owner.st_uid, owner.st_gid)
        self.daemon.kill()
        os.truncate(self.daemon.path("out"), 0)
        self.daemon.start()
        self.assertEqual(self.daemon.get("/v1/snapshots/kept").json, made)
        self.assertFalse(os.path.exists(stray))
        self.assertFalse(os.path.exists(left))
        session.put("a", b"2")
        self.assertEqual(session.post("restore", {"snapshotId": "kept"}).status, 200)
        self.assertEqual(session.content("a"), b"1")


class Aged(Case):
    @classmethod
    def make_daemon(cls):
        return harness.Daemon(["--snapshots-max-age-s", "1"])

    def test_old_ones_without_a_name_go(self):
        session = self.session()
        named, other = self.take(session, name="stays"), self.take(session)
        self.daemon.kill()
        os.truncate(self.daemon.path("out"), 0)
        self.daemon.start()
        census.wait_until(lambda: self.ids() == [named["id"]], 10, "the end of the old snapshot")
        self.assert_problem(self.daemon.get(f"/v1/snapshots/{other['id']}"), 404,
                            "snapshot_not_found")


class Budget(Case):
    @classmethod
    def make_daemon(cls):
        return harness.Daemon(["--snapshots-max-bytes", "300000", "--snapshots-max-age-s", "3600"])

    def test_the_oldest_without_a_name_goes_first(self):
        session = self.session()
        made = []
        for number, name in enumerate((None, "named", None)):
            session.put("data", os.urandom(90000))
            made.append(self.take(session, **({"name": name} if name else {})))
        session.put("data", os.urandom(90000))
        made.append(self.take(session))
        self.assertEqual(self.ids(), [made[3]["id"], made[2]["id"], made[1]["id"]])
        session.put("data", os.urandom(290000))
        self.assert_problem(session.post("snapshots", {}), 507, "store_full")
        session.put("data", os.urandom(400000))
        self.assert_problem(session.post("snapshots", {}), 507, "store_full")
        self.assert_problem(self.bring_in("large", archive(member("data", os.urandom(400000)))), 507, "store_full")
        # None of them went for what has no room anyway.
        self.assertEqual(self.ids(), [made[3]["id"], made[2]["id"], made[1]["id"]])
        for row in made[1:]:
            self.remove(row["id"])
        # What is stored once counts once.
        session.put("data", os.urandom(200000))
        same = [self.take(session, name=f"same-{number}")["id"] for number in range(3)]
        self.assertEqual(sorted(self.ids()), sorted(same))


if __name__ == "__main__":
    unittest.main()
