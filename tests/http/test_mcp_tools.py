# SPDX-License-Identifier: Apache-2.0
"""The tools of the Model Context Protocol: what they do, how results look, where state lives."""
import json
import re
import unittest

import mcpkit

PNG = ("import base64, zlib, struct, os\n"
       "def chunk(k, d): return struct.pack('>I', len(d)) + k + d + "
       "struct.pack('>I', zlib.crc32(k + d))\n"
       "def png(n, h): return (b'\\x89PNG\\r\\n\\x1a\\n' + chunk(b'IHDR', struct.pack('>IIBBBBB', n, h, 8, 0, 0, 0, 0)) + "
       "chunk(b'IDAT', zlib.compress(b''.join(b'\\0' + os.urandom(n) for _ in range(h)))) + chunk(b'IEND', b''))\n"
       "class Picture:\n"
       "    def __init__(self, n, h): self.n, self.h = n, h\n"
       "    def _repr_png_(self): return png(self.n, self.h)\n")
FORBIDDEN = re.compile("image|mount|network|egress|memory|cpus|pids|disk|limit_|engine|workspace|env")


# All that a model can say. What a box is made of, sees of the host and may use is not among it: the
# user's configuration fixes that. `timeout_s` can't go beyond what the scope of the caller allows.
ARGUMENTS = {"code", "command", "content", "cwd", "glob", "ignore_case", "kernel", "language", "limit",
             "name", "new_text", "offset", "old_text", "path", "recursive", "replace_all",
             "session_id", "snapshot_id", "stdin", "text", "timeout_s"}


def argument_names(schema):
    """Of the object and of all that is in it."""
    for name, part in schema.get("properties", {}).items():
        yield name
        yield from argument_names(part)
    for part in (schema.get("items"), *schema.get("anyOf", ()), *schema.get("$defs", {}).values()):
        if part:
            yield from argument_names(part)


class Descriptions(mcpkit.Case):
    def test_no_tool_can_change_the_box(self):
        tools = self.client().tools()
        found = {name for tool in tools for name in argument_names(tool["inputSchema"])}
        self.assertEqual(found, ARGUMENTS)
        self.assertFalse([name for name in found if FORBIDDEN.search(name)])
        self.assertFalse([tool["name"] for tool in tools if "test" in tool["name"]])

    def test_all(self):
        tools = self.client().tools()
        self.assertEqual([tool["name"] for tool in tools],
                         [tool["name"] for tool in self.client(mcpkit.STATELESS).tools()])
        for tool in tools:
            with self.subTest(tool=tool["name"]):
                self.assertRegex(tool["name"], "^[A-Za-z0-9_.-]{1,64}$")
                self.assertTrue(tool["title"] and tool["description"])
                self.assertEqual(tool["inputSchema"]["type"], "object")
                self.assertIs(tool["inputSchema"]["additionalProperties"], False)
                self.assertEqual(set(tool["annotations"]),
                                 {"title", "readOnlyHint", "destructiveHint", "idempotentHint",
                                  "openWorldHint"})
                self.assertIs(tool["annotations"]["openWorldHint"], False)
                for name in tool["inputSchema"]["properties"]:
                    self.assertIsNone(FORBIDDEN.search(name), name)

    def test_what_no_schema_has_is_refused(self):
        client = self.client()
        for name in ("image", "mounts", "network", "memoryMb", "memory_mb", "pids", "workspace",
                     "enforceLimits"):
            for tool in ("run_code", "run_command"):
                given = {"code": "1"} if tool == "run_code" else {"command": "true"}
                result = client.call(tool, **given, **{name: True})
                self.assertTrue(result["isError"])
                self.assertEqual(result["structuredContent"]["error"]["code"], "unknown_field")


class Running(mcpkit.Case):
    def test_state(self):
        client = self.client()
        self.assertIn("hello", client.text("run_code", code="x = 40\nprint('hello')"))
        self.assertIn("42", client.text("run_code", code="x + 2"))
        result = client.call("run_code", code="x", kernel=False)
        self.assertTrue(result["isError"])
        self.assertIn("NameError", result["content"][0]["text"])
        self.assertFalse(client.call("reset_kernel")["isError"])
        self.assertTrue(client.call("run_code", code="x")["isError"])

    def test_clients_have_sessions_of_their_own(self):
        one, other = self.client(), self.client()
        one.call("write_file", path="a", content="1")
        self.assertIn("(empty)", other.text("list_files"))
        again = mcpkit.Client(self.daemon)
        again.session = one.session
        self.assertIn("a (1B)", again.text("list_files"))
        stateless = self.client(mcpkit.STATELESS)
        stateless.call("write_file", path="b", content="1")
        self.assertIn("b (1B)", self.client(mcpkit.STATELESS).text("list_files"))

    def test_named_session(self):
        client = self.client()
        made = self.daemon.post("/v1/sessions", {"id": "named"})
        self.assertEqual(made.status, 201)
        client.call("write_file", path="a", content="1", session_id="named")
        self.assertEqual(self.daemon.get("/v1/sessions/named/files/a").body, b"1")
        result = client.call("run_code", code="print(open('a').read())", session_id="named")
        self.assertEqual(result["structuredContent"]["session_id"], "named")
        self.assertIn("1", result["content"][0]["text"])
        for tool, given in (("run_code", {"code": "1"}), ("run_command", {"command": "true"}),
                            ("read_file", {"path": "a"}), ("list_files", {}),
                            ("session_info", {}), ("reset_kernel", {})):
            result = client.call(tool, session_id="nobodys", **given)
            self.assertTrue(result["isError"])
            self.assertEqual(result["structuredContent"]["error"]["code"], "session_not_found")

    def test_languages(self):
        client = self.client()
        for language, code in (("python", "print('a' * 3)"), ("bash", "printf aaa"),
                               ("node", "console.log('a'.repeat(3))")):
            for kernel in (False, True):
                with self.subTest(language=language, kernel=kernel):
                    result = client.call("run_code", language=language, code=code, kernel=kernel)
                    self.assertFalse(result["isError"], result)
                    self.assertEqual(result["structuredContent"]["stdout"].strip(), "aaa")
                    self.assertEqual(result["structuredContent"]["state_kept"], kernel)

    def test_commands(self):
        client = self.client()
        result = client.call("run_command", command="pwd; cat; echo e >&2; exit 3", stdin="in\n")
        self.assertTrue(result["isError"])
        found = result["structuredContent"]
        self.assertEqual((found["stdout"], found["stderr"], found["exit_code"], found["fault"]),
                         ("/workspace\nin\n", "e\n", 3, None))
        self.assertIn("[exit code 3]", result["content"][0]["text"])
        result = client.call("run_command", command="mkdir -p d; echo 1 > d/f")
        self.assertIn({"path": "d/f", "change": "created"}, result["structuredContent"]["files"])
        self.assertIn("/workspace/d", client.text("run_command", command="pwd", cwd="d"))

    def test_time_limit(self):
        client = self.client()
        client.call("run_code", code="kept = 1")
        result = client.call("run_code", code="print('begun', flush=True)\nwhile True: pass",
                             timeout_s=0.5)
        found = result["structuredContent"]
        self.assertEqual((found["fault"], found["state_kept"]), ("timeout", True))
        self.assertIn("begun", result["content"][0]["text"])
        self.assertIn("1", client.text("run_code", code="kept"))
        result = client.call("run_command", command="sleep 60", timeout_s=0.5)
        self.assertEqual(result["structuredContent"]["fault"], "timeout")
        self.assertTrue(result["isError"])

    def test_dead_interpreter(self):
        client = self.client()
        result = client.call("run_code", code="import os; os._exit(3)")
        self.assertIn("variables are lost", result["content"][0]["text"])
        result = client.call("run_code", code="print('again')")
        self.assertFalse(result["isError"])
        self.assertIn("new interpreter", result["content"][0]["text"])
        self.assertIn("again", result["content"][0]["text"])

    def test_bad_arguments(self):
        client = self.client()
        for tool, given in (("run_code", {}), ("run_code", {"code": 1}),
                            ("run_code", {"code": "1", "language": "ruby"}),
                            ("run_code", {"code": "1", "timeout_s": 0}),
                            ("run_code", {"code": "1", "timeout_s": "5"}),
                            ("run_code", {"code": "1", "timeout_s": 1e8}),
                            ("run_code", {"code": "1", "kernel": "yes"}),
                            ("run_code", {"code": "1", "session_id": "../x"}),
                            ("run_command", {"command": "a\0b"}),
                            ("read_file", {"path": ""}), ("read_file", {"path": "../../etc/passwd"}),
                            ("read_file", {"path": "a", "offset": 0}),
                            ("write_file", {"path": "a"}), ("list_files", {"limit": 0}),
                            ("edit_file", {"path": "a", "old_text": "", "new_text": ""})):
            with self.subTest(tool=tool, given=given):
                result = client.call(tool, **given)
                self.assertTrue(result["isError"])
                self.assertTrue(result["structuredContent"]["error"]["message"])
        self.assertFalse(client.check("session_info", client.result(
            "tools/call", {"name": "session_info"}))["isError"])


class Output(mcpkit.Case):
    def test_image_once(self):
        result = self.client().call("run_code", code=PNG + "Picture(20, 20)")
        images = [part for part in result["content"] if part["type"] == "image"]
        self.assertEqual(len(images), 1)
        self.assertEqual(images[0]["mimeType"], "image/png")
        self.assertTrue(images[0]["data"].startswith("iVBORw0KGgo"))
        self.assertEqual(json.dumps(result).count(images[0]["data"]), 1)
        self.assertEqual(result["structuredContent"]["images"], 1)

    def test_large_image_is_left_out(self):
        result = self.client().call("run_code", code=PNG + "Picture(5000, 1000)")
        self.assertEqual([part["type"] for part in result["content"]], ["text"])
        self.assertIn("left out", result["content"][0]["text"])
        self.assertLess(len(json.dumps(result)), 10000)

    def test_long_text(self):
        client = self.client()
        result = client.call("run_code", code="print('first'); print('é' * 1000000); print('last')")
        text = result["content"][0]["text"]
        self.assertLess(len(text.encode()), 50000)
        self.assertTrue(text.startswith("first\n") and text.endswith("last\n"))
        self.assertNotIn("\ufffd", text)
        self.assertIn("read_file", text)
        self.assertEqual(result["structuredContent"]["stdout"], text)

    def test_rich_text(self):
        result = self.client().call(
            "run_code", code="class A:\n def _repr_html_(self): return '<b>1</b>'\n"
                             " def __repr__(self): return 'plain'\nA()")
        self.assertEqual(result["structuredContent"]["results"],
                         [{"mime_type": "text/plain", "text": "plain"}])


class Files(mcpkit.Case):
    def test_write_and_read(self):
        client = self.client()
        client.call("write_file", path="/workspace/a/b.txt", content="one\ntwo\nthree é\n")
        self.assertEqual(client.text("read_file", path="a/b.txt"), "one\ntwo\nthree é\n")
        part = client.call("read_file", path="a/b.txt", offset=2, limit=1)["content"]
        self.assertEqual(part[0]["text"], "two\n")
        self.assertIn("offset 3;", part[1]["text"])
        self.assertEqual(client.text("read_file", path="a/b.txt", offset=9), "")
        self.assertTrue(client.call("read_file", path="none")["isError"])
        client.call("write_file", path="empty", content="")
        self.assertEqual(client.text("read_file", path="empty"), "")
        self.assertIn("three", client.text("run_command", command="cat a/b.txt"))

    def test_read_in_parts(self):
        client = self.client()
        lines = "".join(f"line {number}\n" for number in range(20000))
        client.call("write_file", path="long", content=lines)
        found, offset = "", 1
        while offset:
            content = client.call("read_file", path="long", offset=offset)["content"]
            found += content[0]["text"]
            offset = int(re.search(r"offset (\d+)", content[1]["text"]).group(1)) \
                if len(content) > 1 else 0
        self.assertEqual(found, lines)
        client.call("write_file", path="one-line", content="é" * 100000)
        text = client.text("read_file", path="one-line")
        self.assertIn("long line", text)
        self.assertNotIn("\ufffd", text)

    def test_read_images_and_binaries(self):
        client = self.client()
        client.call("run_code", code=PNG + "open('a.png', 'wb').write(png(9, 9))\n"
                    "open('big.png', 'wb').write(png(4000, 1000)); open('b', 'wb').write(b'a\\0b')")
        part = client.call("read_file", path="a.png")["content"][0]
        self.assertEqual((part["type"], part["mimeType"]), ("image", "image/png"))
        self.assertIn("too large", client.text("read_file", path="big.png"))
        self.assertIn("binary", client.text("read_file", path="b"))

    def test_edit(self):
        client = self.client()
        client.call("write_file", path="f", content="a b a\n")
        self.assertIn("2 times", client.text("edit_file", path="f", old_text="a", new_text="c"))
        self.assertIn("does not occur", client.text("edit_file", path="f", old_text="z",
                                                    new_text="c"))
        self.assertFalse(client.call("edit_file", path="f", old_text="a b", new_text="b")["isError"])
        result = client.call("edit_file", path="f", old_text="a", new_text="", replace_all=True)
        self.assertEqual(result["structuredContent"]["replaced"], 1)
        self.assertEqual(client.text("read_file", path="f"), "b \n")
        self.assertTrue(client.call("edit_file", path="none", old_text="a", new_text="")["isError"])

    def test_list_and_search(self):
        client = self.client()
        client.call("run_command", command="mkdir d; for i in 1 2 3; do echo \"Some text $i\" > d/$i.txt;"
                                           " done; echo text > e.py; printf 'text\\0' > bin")
        self.assertEqual(client.text("list_files", recursive=False),
                         "bin (5B)\nd (directory)\ne.py (5B)\n")
        self.assertEqual(client.text("list_files", path="d", glob="[12].txt"),
                         "d/1.txt (12B)\nd/2.txt (12B)\n")
        self.assertTrue(client.call("list_files", limit=2)["structuredContent"]["more"])
        found = client.call("search_files", text="text")["structuredContent"]
        self.assertEqual([(row["path"], row["line"]) for row in found["matches"]],
                         [("d/1.txt", 1), ("d/2.txt", 1), ("d/3.txt", 1), ("e.py", 1)])
        self.assertEqual((found["more"], found["skipped_files"]), (False, 1))
        found = client.call("search_files", text="SOME", ignore_case=True, path="d", glob="3*")
        self.assertEqual(found["structuredContent"]["matches"],
                         [{"path": "d/3.txt", "line": 1, "text": "Some text 3"}])
        found = client.call("search_files", text="text", limit=2)["structuredContent"]
        self.assertEqual((len(found["matches"]), found["more"]), (2, True))
        self.assertIn("(no match)", client.text("search_files", text="absent"))

    def test_snapshots(self):
        client = self.client()
        client.call("write_file", path="a", content="1")
        kept = client.call("snapshot")["structuredContent"]
        self.assertEqual(kept["entries"], 1)
        named = client.call("snapshot", name="before-change")
        self.assertFalse(named["isError"])
        client.call("write_file", path="b", content="2")
        client.call("write_file", path="a", content="3")
        for snapshot in (kept["snapshot_id"], "before-change"):
            client.call("reset_kernel")
            result = client.call("restore", snapshot_id=snapshot)
            self.assertFalse(result["isError"], result)
            self.assertEqual(client.text("list_files"), "a (1B)\n")
            self.assertEqual(client.text("run_command", command="cat a"), "1\n")
        result = client.call("restore", snapshot_id="none")
        self.assertEqual(result["structuredContent"]["error"]["code"], "snapshot_not_found")
        for snapshot in self.daemon.get("/v1/snapshots").json["items"]:
            self.daemon.request("DELETE", f"/v1/snapshots/{snapshot['id']}")

    def test_session_info(self):
        client = self.client()
        client.call("run_code", code="1")
        found = client.call("session_info")["structuredContent"]
        self.assertEqual((found["workspace"], found["network"]), ("/workspace", False))
        self.assertEqual(found["kernels"], [{"language": "python", "state": "idle", "cells": 1}])
        self.assertTrue(found["languages"]["python"].startswith("3."))


if __name__ == "__main__":
    unittest.main()
