# SPDX-License-Identifier: Apache-2.0
"""Files that are put in before a run, found changed after it, and fetched back."""
import base64
import hashlib
import unittest
import urllib.parse

import census
import harness
from harness import b64


def content(entry):
    return base64.b64decode(entry["base64"], validate=True)


def changes(result):
    return {entry["path"]: entry["change"] for entry in result["files"]}


class PutIn(harness.Case):
    def test_text_bytes_and_directories(self):
        data = bytes(range(256)) * 4096
        result = self.run_command(["sh", "-c", "cat a.txt; sha256sum < deep/er/b.bin; wc -c < e"],
                                  files={"a.txt": "é\n", "deep/er/b.bin": b64(data), "e": ""})
        self.assert_success(result, f"é\n{hashlib.sha256(data).hexdigest()}  -\n0\n")

    def test_they_belong_to_the_box(self):
        result = self.run_command(["sh", "-c", "stat -c '%U %a' a d; echo more >> a; cat a; rm a"],
                                  files={"a": "x\n", "d/b": ""})
        self.assert_success(result)
        self.assertEqual(result["stdout"].splitlines()[2:], ["x", "more"])
        self.assertTrue(result["stdout"].startswith(f"{harness.BOX_USER} 6"), result["stdout"])

    def test_workspace_prefix_is_accepted(self):
        result = self.run_command(["cat", "/workspace/a"], files={"/workspace/a": "1"})
        self.assert_success(result, "1")

    def test_percent_signs_and_plus_are_ordinary(self):
        files = {"report%20name.txt": "L", "report name.txt": "S", "a+b.txt": "P", "%2e%2e": "D",
                 "a%2Fb": "E", "%": "F"}
        result = self.run_code("import os; print(sorted((n, open(n).read()) for n in "
                               "os.listdir('.')))", files=files, fetchFiles=list(files))
        self.assert_success(result, f"{sorted(files.items())}\n")
        self.assertEqual({name: content(entry).decode() for name, entry in
                          result["fetched"].items()}, files)

    def test_difficult_names(self):
        files = {"a\nb\"é.txt": "two", "☃ 😀.txt": "three", "-rf": "x", " lead": "y", "tab\t": "z",
                 "\\back": "w", "$(id)": "v", ".hidden": "u", "e\u0301": "nfd", "\u00e9": "nfc",
                 "a" * 255: "long"}
        result = self.run_code("import os; print(sorted((n, open(n).read()) for n in "
                               "os.listdir('.')) == sorted(eval(input()).items()))",
                               files=files, stdin=repr(files), fetchFiles=list(files))
        self.assert_success(result, "True\n")
        self.assertEqual({name: content(entry).decode() for name, entry in
                          result["fetched"].items()}, files)

    def test_names_that_lead_elsewhere(self):
        bad = ["../x", "a/../../x", "a/..", "..", ".", "", "/", "/etc/passwd", "//etc/passwd",
               "/workspace/../etc/x", "/workspacex/y", "a/\0b", "x" * 256, "a/" + "y" * 256 + "/b",
               "z/" * 2600 + "z", "/workspace", "/workspace/"]
        for name in bad:
            with self.subTest(name=name[:40]), self.within(2):
                reply = self.daemon.post("/v1/run", {"command": ["true"], "files": {name: "x"}})
                self.assertIn(reply.status, (400, 422), reply)
                if "\0" not in name:
                    self.assertEqual(reply.json["code"], "bad_path", reply.json)
                    pointer = "/files/" + name.replace("~", "~0").replace("/", "~1")
                    self.assertEqual(reply.json["errors"][0]["pointer"][:120], pointer[:120])

    def test_two_names_for_one_file(self):
        for files in ({"a": "1", "./a": "2"}, {"a": "1", "/workspace/a": "2"},
                      {"a": "1", "a/b": "2"}, {"a/b": "1", "a": "2"}):
            with self.subTest(files=files):
                reply = self.daemon.post("/v1/run", {"command": ["cat", "a"], "files": files})
                self.assertIn(reply.status, (200, 409, 422), reply)
                if reply.status == 200:  # then the later one must have won, and be complete
                    self.assertEqual(reply.json["stdout"], "2")

    def test_content_that_is_neither_text_nor_base64(self):
        for value in (5, None, True, [], {}, {"base64": "%%%"}, {"base64": 5}, {"text": "x"},
                      {"base64": "QQ=="[:3]}, {"base64": "QQ==", "more": 1}):
            with self.subTest(value=value):
                reply = self.daemon.post("/v1/run", {"command": ["true"], "files": {"a/b~c": value}})
                self.assertEqual(reply.status, 422, reply)
                pointer = reply.json["errors"][0]["pointer"]
                self.assertTrue(pointer.startswith("/files/a~1b~0c"), pointer)

    def test_many_files(self):
        files = {f"d{i % 7}/f{i}": str(i) for i in range(500)}
        result = self.run_code("import os; print(sum(len(f) for _, _, f in os.walk('.')))",
                               files=files)
        self.assert_success(result, "500\n")
        self.assertEqual(result["files"], [])


class Tracked(harness.Case):
    """The answer lists what the run changed."""

    def assert_removed(self, name):
        """The workspace goes away behind the answer, whatever the run has made of it."""
        census.wait_until(lambda: not self.daemon.find(name), harness.seconds(20),
                          "removal of the workspace")
        self.daemon.wait_settled(20)

    def test_created_modified_deleted(self):
        code = "echo new > n; mkdir -p d; echo x > d/in; echo more >> m; rm gone; cat same"
        result = self.run_code(code, "bash", files={"m": "1", "gone": "2", "same": "3"})
        found = changes(result)
        self.assertEqual({k: found.get(k) for k in ("n", "d/in", "m", "gone")},
                         {"n": "created", "d/in": "created", "m": "modified", "gone": "deleted"})
        self.assertNotIn("same", found)
        self.assertEqual({e["path"]: e["size"] for e in result["files"]}["n"], 4)

    def test_same_size_and_time(self):
        code = """
import os
s = os.stat("t.txt"); open("t.txt","r+").write("bbbb"); os.utime("t.txt", ns=(s.st_atime_ns, s.st_mtime_ns))
"""
        result = self.run_code(code, files={"t.txt": "aaaa"})
        self.assertEqual(changes(result), {"t.txt": "modified"})

    def test_reading_changes_nothing(self):
        self.assertEqual(self.run_command(["cat", "a"], files={"a": "1"})["files"], [])

    def test_renamed(self):
        self.assertEqual(changes(self.run_command(["mv", "a", "b"], files={"a": "1"})),
                         {"a": "deleted", "b": "created"})

    def test_not_tracked_on_request(self):
        self.assertEqual(self.run_command(["touch", "x"], trackFiles=False)["files"], [])

    def test_files_elsewhere_are_not_listed(self):
        self.assertEqual(self.run_code("touch /tmp/x ~/y /dev/shm/z", "bash")["files"], [])

    def test_names_that_are_not_text(self):
        result = self.run_code(r'''
open(b"\xc3.txt","w").write("test"); open('a\nb"é.txt',"w").write("two"); open("☃ 😀.txt","w").write("three")
''')
        self.assert_success(result)
        self.assertEqual(len(result["files"]), 3)
        paths = [entry["path"] for entry in result["files"]]
        self.assertIn('a\nb"é.txt', paths)
        self.assertIn("☃ 😀.txt", paths)
        odd = next(e for e in result["files"] if e["path"] not in ('a\nb"é.txt', "☃ 😀.txt"))
        # The readable name has a replacement character; the exact one comes in percent form.
        self.assertEqual(odd["path"], "\ufffd.txt")
        self.assertEqual(urllib.parse.unquote_to_bytes(odd["pathPercent"]), b"\xc3.txt")

    def test_links_pipes_and_sockets(self):
        with self.within(10):
            result = self.run_code("""
import os, socket
os.symlink("/etc/passwd", "out"); os.symlink("loop", "loop"); os.mkfifo("pipe")
socket.socket(socket.AF_UNIX).bind("sock"); os.mkdir("d.txt"); os.link("/workspace/a", "hard")
""", files={"a": "1"}, fetchFiles=["out", "loop", "pipe", "sock", "d.txt", "hard"])
        self.assert_success(result)
        for name in ("out", "loop", "pipe", "sock", "d.txt"):
            self.assertNotIn("base64", result["fetched"].get(name) or {}, name)
        self.assertEqual(content(result["fetched"]["hard"]), b"1")

    def test_modes_that_nobody_can_read(self):
        name = harness.new_mark()
        with self.within(10):
            result = self.run_code(f"""
import os
os.mkdir({name!r}); os.makedirs("d/e"); open("d/e/f","w").write("x"); os.makedirs("go/mod"); open("go/mod/m","w").write("y")
os.chmod("d/e/f",0); os.chmod("d/e",0); os.chmod("go/mod",0o555); os.chmod("go",0o555); os.chmod(".",0o555)
""")
        self.assert_success(result)
        self.assert_removed(name)

    def test_very_deep_and_very_many(self):
        name = harness.new_mark()
        with self.within(30):
            result = self.run_code(f"""
import os
os.mkdir({name!r})
for i in range(400): os.mkdir("n" * 200); os.chdir("n" * 200)
os.chdir("/workspace")
for i in range(20000): open(f"f{{i}}", "w").close()
""", timeoutS=25)
        self.assert_success(result)
        self.assertTrue(result["filesTruncated"] or len(result["files"]) >= 20000)
        self.assert_removed(name)

    def test_sparse_file(self):
        result = self.run_code("open('big', 'wb').truncate(1 << 33)", fetchFiles=["big"])
        self.assertIn(result["exitCode"], (0, 1, 153))  # an own cap on file size may stop it
        self.assertNotIn("base64", result["fetched"].get("big") or {})


class Fetched(harness.Case):
    """fetchFiles returns content, or says why not."""

    def test_bytes_come_back(self):
        data = bytes(range(256)) * 4096
        result = self.run_command(["cp", "a", "b"], files={"a": b64(data)}, fetchFiles=["b", "a"])
        self.assertEqual([content(result["fetched"][n]) for n in "ab"], [data, data])
        digest = "fbbab289f7f94b25736c58be46a994c441fd02552cc6022352e3d86d2fab7c83"
        self.assertEqual(hashlib.sha256(data).hexdigest(), digest)

    def test_shorter_overwrite(self):
        result = self.run_code("open('a', 'w').write('abc')", files={"a": "x" * 5000},
                               fetchFiles=["a"])
        self.assertEqual(content(result["fetched"]["a"]), b"abc")

    def test_empty_file(self):
        result = self.run_command(["touch", "e"], fetchFiles=["e"])
        self.assertEqual(content(result["fetched"]["e"]), b"")

    def test_missing(self):
        result = self.run_command(["true"], fetchFiles=["nope", "no/such/dir/x"])
        self.assert_success(result)
        for name in ("nope", "no/such/dir/x"):
            self.assertEqual(result["fetched"][name], {"error": "not_found"})

    def test_after_a_failure_and_after_a_timeout(self):
        result = self.run_code("open('a','w').write('1'); 1/0", fetchFiles=["a"])
        self.assertEqual(content(result["fetched"]["a"]), b"1")
        result = self.run_code("open('a','w').write('1'); import time; time.sleep(60)",
                               fetchFiles=["a"], timeoutS=1)
        self.assert_fault(result, "timeout")
        self.assertEqual(content(result["fetched"]["a"]), b"1")

    def test_links_never_lead_to_the_host(self):
        secret = self.daemon.path("host-file")
        with open(secret, "w", encoding="ascii") as file:
            file.write("host-secret")
        result = self.run_code(f"""
import os
os.symlink({secret!r}, "a"); os.symlink({self.daemon.home!r}, "d"); os.symlink("/", "r")
os.symlink("/proc/self/root", "p"); os.symlink("../../../../../..", "up")
""", fetchFiles=["a", "d/host-file", "r/etc/passwd", "p/etc/passwd", "up/etc/passwd"])
        self.assert_success(result)
        for name, entry in result["fetched"].items():
            self.assertNotIn("base64", entry, name)

    def test_bad_names(self):
        for name in ("../x", "/etc/passwd", "", "a/../b", 5, None):
            with self.subTest(name=name):
                reply = self.daemon.post("/v1/run", {"command": ["true"], "fetchFiles": [name]})
                self.assertEqual(reply.status, 422, reply)
                self.assertEqual(reply.json["errors"][0]["pointer"], "/fetchFiles/0")

    def test_a_swapped_directory_is_not_followed(self):
        result = self.run_code("""
import os
os.mkdir("d"); open("d/passwd", "w").write("mine")
os.rename("d", "old"); os.symlink("/etc", "d")
""", fetchFiles=["d/passwd", "old/passwd"])
        self.assertNotIn("base64", result["fetched"]["d/passwd"])
        self.assertEqual(content(result["fetched"]["old/passwd"]), b"mine")


if __name__ == "__main__":
    unittest.main()
