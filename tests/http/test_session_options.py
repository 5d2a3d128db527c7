# SPDX-License-Identifier: Apache-2.0
"""What boxes are made of: grammars, what this engine can't do, host directories, secrets."""
import hashlib
import os
import pwd
import stat
import threading
import unittest

import census
import harness
import sessionkit

SESSION, RUN = "/v1/sessions", "/v1/run"


class Grammars(sessionkit.Case):
    """A bad word is bad_value on every host; a good one that the engine can't do is named."""

    def each(self, name, good, bad):
        before = self.daemon.get(SESSION).json["items"]
        for target, body in ((SESSION, {}), (RUN, {"command": ["true"]})):
            for value in good:
                with self.subTest(target=target, good=value):
                    self.assert_good(target, name, value,
                                     self.daemon.post(target, {**body, name: value}))
            for value in bad:
                with self.subTest(target=target, bad=value):
                    reply = self.daemon.post(target, {**body, name: value})
                    self.assertEqual((reply.status, reply.json["code"]), (422, "bad_value"), reply)
                    self.assertTrue(reply.json["errors"][0]["pointer"].startswith("/" + name), reply)
        self.assertEqual(self.daemon.get(SESSION).json["items"], before)

    def assert_good(self, target, name, value, reply):
        """Engines without it name it; with it, what is not on this host is refused in kern's words."""
        if harness.ENGINE != "kern" or (name, value) == ("engine", harness.OTHER_ENGINE):
            self.assert_problem(reply, 422, "not_supported_here", "/" + name)
        elif target == SESSION:
            self.assertEqual(reply.status, 201, reply)
            self.daemon.request("DELETE", f"{SESSION}/{reply.json['id']}")
        elif reply.status != 200:
            self.assertIn((reply.status, reply.json["code"]),
                          [(422, "bad_value"), (404, "image_not_found"), (503, "box_start_failed")],
                          reply)
            self.assertRegex(reply.json["detail"], "kern (refuses|ended)|not on this host: error:")

    def accepted(self, name, values):
        for value in values:
            with self.subTest(value=value):
                reply = self.daemon.post(RUN, {"command": ["true"], name: value})
                self.assertEqual(reply.status, 200, reply)
                self.session(**{name: value})

    def test_capabilities(self):
        self.accepted("capDrop", [["ALL"], ["SYS_ADMIN", "ALL"], None])
        self.each("capDrop", [[], ["SYS_ADMIN"], ["CAP_NET_BIND_SERVICE", "DAC_OVERRIDE"], ["MKNOD"],
                              ["A_1B"]],
                  ["ALL", 5, {}, [5], [None], ["--privileged"], ["all"], ["SYS ADMIN"], ["A;B"],
                   ["ALL\n"], [""], ["CAP_"], ["1A"], ["A" * 33], ["_A"], ["A_"], ["A__B"], ["ALL "],
                   ["É"], ["A\0"]])

    def test_apparmor(self):
        self.each("apparmor", ["unconfined", "kern-box", "docker-default", "lxc-container-default",
                               ".", "..", "a" * 128],
                  ["--x", "-x", "a b", "a;b", "a\n", "", "a/b", "a:b", "a" * 129, "é", 5, ["a"], " a",
                   "a ", "a\0"])

    def test_profiles(self):
        self.accepted("profiles", [[], None])
        self.each("profiles", [["vcpu:a"], ["vgpio:0.x_y-z"], ["vdisk:A", "vcpu:b"]],
                  ["vcpu:a", [""], ["vcpu:"], ["vgpu:a"], ["a"], ["vcpu:-a"], ["vcpu:a b"],
                   ["vcpu:a;b"], ["vcpu:../x"], ["vcpu:a/b"], ["vcpu:a=b"], ["-vcpu:a"], ["vcpu:a\n"],
                   ["vcpu:é"], [1]])

    def test_egress(self):
        self.accepted("egressAllow", [[], None])
        self.each("egressAllow", [["pypi.org"], ["a.b-c.example", "x.io"], ["A.COM"],
                                  ["a" * 63 + ".org"], ["1.2.3.com"]],
                  ["pypi.org", ["http://pypi.org"], ["pypi.org/x"], ["pypi.org:443"], ["*.org"],
                   ["a.org,b.org"], ["localhost"], [""], ["-a.org"], ["a-.org"], ["a b.org"],
                   ["127.0.0.1"], ["a..org"], ["a.org."], ["a_b.org"], ["a.o"], ["a.xn--p1ai"],
                   ["a" * 64 + ".org"], [".".join(["a" * 60] * 5) + ".org"], ["a.org\r"], ["a.org\n"],
                   [7]])
        self.assert_problem(self.daemon.post(RUN, {"command": ["true"], "network": True,
                                                   "egressAllow": ["pypi.org"]}),
                            422, "bad_value", "/egressAllow")

    def test_image(self):
        self.each("image", ["python:3.12-slim", "ghcr.io/a/b@sha256:00", "alpine"],
                  ["", " ", "a b", "--rm", "a\n", 5, ["alpine"], "a;b"])

    def test_engine_and_flags(self):
        self.each("engine", [harness.OTHER_ENGINE], ["docker", "", 5, "Bubblewrap"])
        self.accepted("engine", ["auto", harness.ENGINE or "bubblewrap", None])
        self.accepted("securityProfile", ["untrusted", None])
        self.each("securityProfile", [], ["trusted", "", 5, "untrusted "])
        self.each("enforceLimits", [False], ["no", 0])
        self.accepted("enforceLimits", [True])
        self.each("requireLimits", [], ["no", 0])

    def test_limits_that_must_hold(self):
        reply = self.daemon.post(RUN, {"command": ["true"], "requireLimits": True})
        if reply.status == 200:
            self.assertEqual(reply.json["limits"]["enforced"]["memory"], "cgroup")
        else:
            self.assert_problem(reply, 422, "limits_not_enforced", "/memoryMb")
            self.assert_problem(self.daemon.post(SESSION, {"requireLimits": True}), 422,
                                "limits_not_enforced", "/memoryMb")


class HostDirectories(sessionkit.Case):
    @classmethod
    def setUpClass(cls):
        super().setUpClass()
        cls.host = os.path.join(cls.daemon.home, "host")
        cls.mine("data")
        cls.mine("other")
        with open(os.path.join(cls.host, "data", "f"), "w", encoding="ascii") as file:
            file.write("from the host\n")

    @classmethod
    def mine(cls, name):
        """A directory of the daemon's own user."""
        path = os.path.join(cls.host, name)
        os.makedirs(path, exist_ok=True)
        if cls.daemon.user:
            account = pwd.getpwnam(cls.daemon.user)
            for each in (cls.host, path):
                os.chown(each, account.pw_uid, account.pw_gid)
        return path

    def both(self, **options):
        yield lambda line, **more: self.run_command(["sh", "-c", line], **options, **more)
        yield self.session(**options).shell

    def test_mounts(self):
        data, other = self.mine("data"), self.mine("other")
        mounts = {data: "/data", other: ["/mnt/other/", "rw"], data + "/f": ["/just/one", "ro"]}
        for shell in self.both(mounts=mounts):
            result = shell("cat /data/f /just/one; echo x > /data/g; echo new > /mnt/other/n; ls /data;"
                           "echo y > /just/one")
            self.assertEqual(result["stdout"], "from the host\nfrom the host\nf\n")
            self.assertEqual(result["stderr"].count("Read-only"), 2, result["stderr"])
            with open(os.path.join(other, "n"), encoding="ascii") as file:
                self.assertEqual(file.read(), "new\n")
        session = self.session(mounts=mounts)
        self.assertEqual(session.get()["options"]["mounts"],
                         {data: ["/data", "ro"], other: ["/mnt/other", "rw"],
                          data + "/f": ["/just/one", "ro"]})

    def refused(self, mounts, code, status):
        for target, body in ((SESSION, {}), (RUN, {"command": ["true"]})):
            with self.subTest(target=target, mounts=mounts):
                reply = self.daemon.post(target, {**body, "mounts": mounts})
                self.assert_problem(reply, status, code)
                self.assertTrue(reply.json["errors"][0]["pointer"].startswith("/mounts"), reply)

    def test_sources_refused(self):
        data = self.mine("data")
        links = {}
        for name, target in (("etc", "/etc"), ("key", "/etc/ssl"), ("state", self.daemon.state)):
            links[name] = os.path.join(self.host, "link-" + name)
            if not os.path.lexists(links[name]):
                os.symlink(target, links[name])
        sources = ["/", "/etc", "/etc/ssl", "/etc/passwd", "/root", "/boot", "/proc", "/proc/self",
                   "/sys", "/dev", "/dev/null", "/run", "/var/run", "/run/docker.sock",
                   "/var/run/docker.sock", self.daemon.state, self.daemon.runtime, self.daemon.home,
                   self.daemon.socket_path, self.daemon.token_path, *links.values()]
        for source in sources:
            if os.path.lexists(source):
                self.refused({source: "/x"}, "mount_refused", 403)
        for source in (data + "/missing", "data", "", "~/x", data + "/../data", data + "\n", "a:b",
                       data + "/f/x", data + ":/x"):
            self.refused({source: "/x"}, "bad_value", 422)
        socket = os.path.join(self.host, "socket")
        if not os.path.exists(socket):
            os.mkfifo(socket)
        self.refused({socket: "/x"}, "mount_refused", 403)

    def test_targets_refused(self):
        data, other = self.mine("data"), self.mine("other")
        for target in ("/", "/proc", "/proc/x", "/sys", "/dev", "/dev/shm/x", "/run", "/run/kernd",
                       "/run/kernd/x", "/run/secrets", "/run/secrets/x", "/usr", "/etc", "/bin",
                       "/workspace", "/workspace/", "/workspace/data", "//", "/./"):
            self.refused({data: target}, "mount_refused", 403)
        for target in ("x", "", "/a/../b", "/a:b", "/a\nb", 5, None, [], ["/x"], ["/x", "rx"],
                       ["/x", "ro", 1], ["/x", None], [5, "ro"], {}, "/x\0"):
            self.refused({data: target}, "bad_value", 422)
        for one, two in (("/x", "/x"), ("/x", "/x/y"), ("/x/y", "/x")):
            self.refused({data: one, other: two}, "bad_value", 422)
        self.refused({f"/a{number}": "/x" for number in range(65)}, "bad_value", 422)
        self.refused([data], "bad_value", 422)

    def test_a_box_can_not_lead_a_mount_astray(self):
        """A directory made for a mount by way of a link that a box left would be made on the host."""
        session = self.session()
        self.assert_success(session.shell(f"ln -s /oldroot{self.host} data"))
        for target in ("/workspace/data/made", "/workspace/./data/made"):
            self.refused({self.mine("data"): target}, "mount_refused", 403)
        self.assertFalse(os.path.exists(os.path.join(self.host, "made")))

    def test_a_source_that_leads_elsewhere_later(self):
        path = os.path.join(self.host, "moving")
        os.makedirs(path, exist_ok=True)
        session = self.session(mounts={path: "/x"})
        self.assert_success(session.run(["ls", "/x"]), "")
        os.rename(path, path + ".old")
        os.symlink("/etc", path)
        self.assert_problem(session.post("run", {"command": ["ls", "/x"]}), 403, "mount_refused")
        os.unlink(path)
        self.assert_problem(session.post("run", {"command": ["ls", "/x"]}), 422, "bad_value")

    def test_workspace(self):
        path = os.path.join(self.mine("other"), "made", "deep")
        session = sessionkit.Session(self.daemon, workspace=path + "/")
        self.assertEqual((session.made["ownedWorkspace"], session.made["options"]["workspace"]),
                         (False, path))
        self.assert_success(session.shell("echo 1 > f"))
        session.put("g", b"2")
        with open(os.path.join(path, "f"), encoding="ascii") as file:
            self.assertEqual(file.read(), "1\n")
        self.assertEqual(stat.S_IMODE(os.stat(path).st_mode), 0o700)
        session.delete()
        self.assertEqual(sorted(os.listdir(path)), ["f", "g"])
        result = self.run_command(["cat", "g"], workspace=path)
        self.assert_success(result, "2")
        self.assertEqual(sorted(os.listdir(path)), ["f", "g"])

    def test_workspaces_refused(self):
        for path in ("/", "/etc", "/root", "/boot", "/proc", "/sys", "/dev", "/run", "/var/run",
                     "/etc/new", self.daemon.home, self.daemon.state + "/x", self.daemon.runtime):
            for target, body in ((SESSION, {}), (RUN, {"command": ["true"]})):
                with self.subTest(path=path, target=target):
                    self.assert_problem(self.daemon.post(target, {**body, "workspace": path}), 403,
                                        "mount_refused", "/workspace")
        for path in ("x", "", "a/b", self.host + "/../x", self.host + "\n", "/a:b",
                     self.host + "/data/f", "/usr/share/kernd-new", "a\0b"):
            with self.subTest(path=path):
                self.assert_problem(self.daemon.post(SESSION, {"workspace": path}), 422, "bad_value",
                                    "/workspace")

    def test_a_workspace_that_vanishes(self):
        path = os.path.join(self.mine("other"), "vanishing")
        session = self.session(workspace=path)
        os.rmdir(path)
        self.assert_problem(session.post("run", {"command": ["true"]}), 409, "conflict")
        self.assert_problem(self.daemon.get(session.path + "/files"), 409, "conflict")
        self.assertEqual(session.get()["workspaceBytes"], None)
        os.mkdir(path)
        self.daemon.user and os.chown(path, pwd.getpwnam(self.daemon.user).pw_uid, -1)
        self.assert_success(session.run(["ls"]), "")

    def test_no_path_in_errors(self):
        reply = self.daemon.post(SESSION, {"mounts": {self.mine("data") + "/secret-name": "/x"}})
        self.assertNotIn("secret-name", reply.json["detail"])


class Roots(sessionkit.Case):
    """workspace_roots: what is not below one of them is refused."""

    @classmethod
    def make_daemon(cls):
        daemon = harness.Daemon()
        cls.allowed = daemon.path("allowed")
        os.mkdir(cls.allowed)
        if daemon.user:
            os.chown(cls.allowed, pwd.getpwnam(daemon.user).pw_uid, -1)
        daemon.arguments = ["--workspace-roots", cls.allowed]
        return daemon

    def test_inside_and_outside(self):
        self.session(workspace=self.allowed + "/a")
        self.session(mounts={self.allowed: "/x"})
        outside = self.daemon.path("outside")
        os.makedirs(outside, exist_ok=True)
        for options in ({"workspace": outside}, {"workspace": outside + "/new"},
                        {"mounts": {outside: "/x"}}, {"mounts": {"/usr/share": "/x"}}):
            self.assert_problem(self.create(**options), 403, "mount_refused")
        os.symlink(outside, self.allowed + "/link")
        self.assert_problem(self.create(workspace=self.allowed + "/link"), 403, "mount_refused")


class Environment(sessionkit.Case):
    def test_values_show_nowhere_but_in_the_box(self):
        value = harness.new_mark()
        self.daemon.secrets.append(value)
        session = self.session(env={"API_KEY": value})
        self.assertNotIn(value, str(session.made))
        self.assert_success(session.shell("echo ${#API_KEY}"), f"{len(value)}\n")
        for reply in (session.post("run", {"command": ["sh", "-c", "exit 3"]}),
                      session.post("run", {"command": ["sleep", "9"], "timeoutS": 0.2}),
                      session.post("run", {"command": ["no-such-program"]}),
                      session.post("run", {"command": 5}), session.post("setup", {"command": "exit 1"}),
                      session.patch(env={"A B": value}), session.patch(env={"A": [value]}),
                      session.patch(labels={"a": "b"}), self.create(id=session.id),
                      self.create(env={"A-": value}), self.daemon.get("/v1/sessions"),
                      self.daemon.get("/v1/executions"), session.post("fork", {"id": "env-fork"})):
            self.assertNotIn(value, reply.body.decode(), reply)
        self.daemon.request("DELETE", "/v1/sessions/env-fork")
        mark = harness.new_mark()
        thread = threading.Thread(target=session.shell, args=("sleep 3",), kwargs={"env": {"M": mark}})
        thread.start()
        census.wait_until(lambda: census.with_environment(mark), harness.seconds(10), "start")
        self.assertEqual(census.with_argument(value), [])
        thread.join()
        self.assertEqual(session.names(), [])
        for path in files_below(self.daemon.state) + files_below(self.daemon.runtime):
            if value in contents(path):
                self.assertEqual(os.stat(path).st_mode & 0o077, 0, path)
                self.assertIn(os.path.basename(path).split("-")[0], ("kernd.db",), path)

    def test_what_a_value_may_hold(self):
        values = {"A": "x=y", "B": " edge ", "C": "line\nline\r\n", "D": "", "E": "é☃😀", "F": "#$\"'\\",
                  "_9": "x" * 100000}
        session = self.session(env=values)
        self.assert_success(session.run_code(
            "import os, sys; print(all(os.environ[k] == v for k, v in eval(sys.stdin.read()).items()))",
            stdin=repr(values)), "True\n")
        for bad in ({"": "x"}, {"A=B": "x"}, {"1A": "x"}, {"A-B": "x"}, {"A B": "x"}, {"É": "x"},
                    {"A": "x\0y"}, {"A": None}, {"A": 1}):
            reply = self.create(env=bad)
            self.assertEqual((reply.status, reply.json["code"]), (422, "bad_value"), reply)


class Secrets(sessionkit.Case):
    def test_files_of_that_box_alone(self):
        value = harness.new_mark()
        self.daemon.secrets.append(value)
        session = self.session()
        for post in (lambda body: self.daemon.result(RUN, body),
                     lambda body: self.daemon.result(session.path + "/run", body)):
            result = post({"command": ["sh", "-c", "cd /run/secrets; sha256sum KEY; stat -c '%a %U' *;"
                                       "env; ls /run/secrets; echo x > /run/secrets/KEY"],
                           "secrets": {"KEY": value, "b.bin": harness.b64(b"\0\xff")}})
            lines = result["stdout"].splitlines()
            self.assertEqual(lines[0].split()[0], hashlib.sha256(value.encode()).hexdigest())
            self.assertEqual(lines[1:3], [f"400 {harness.BOX_USER}"] * 2)
            self.assertEqual(lines[-2:], ["KEY", "b.bin"])
            self.assertNotIn(value, str(result))
            self.assertIn("Read-only", result["stderr"])
        result = self.run_code("print(open('/run/secrets/KEY').read()[:2])",
                               secrets={"KEY": "ab" + value})
        self.assert_success(result, "ab\n")
        # There is no such directory; kern's boxes have an empty one, of their image.
        result = session.shell("ls /run/secrets/")
        self.assertEqual((result["exitCode"], result["stdout"]),
                         (0 if harness.ENGINE == "kern" else 2, ""))
        self.assertEqual(session.names(), [])

    def test_nowhere_else(self):
        value, mark = harness.new_mark(), harness.new_mark()
        self.daemon.secrets.append(value)
        session = self.session()
        script = "echo ready > r; while [ ! -e go ]; do sleep 0.1; done; cat /run/secrets/KEY > /dev/null"
        replies = []
        thread = threading.Thread(target=lambda: replies.append(session.shell(
            script, secrets={"KEY": value}, env={"MARK": mark}, timeoutS=300)))
        thread.start()
        census.wait_until(lambda: "r" in session.names(), harness.seconds(10), "start")
        try:
            self.assertEqual(census.with_argument(value), [])
            self.assertEqual(census.with_environment(value), [])
            other = session.shell("cat /run/secrets/KEY; ls -R /run; ls /workspace")
            self.assertNotIn(value, other["stdout"] + other["stderr"])
            found = [path for path in files_below(self.daemon.home)
                     if "boxes" not in path and value in contents(path)]
            self.assertEqual(found, [])
        finally:
            session.put("go", b"")
            thread.join()
        self.assert_success(replies[0])
        harness.wait_for_none(lambda: [path for path in files_below(self.daemon.home)
                                       if value in contents(path)])

    def test_bad_ones(self):
        for name in ("", ".x", "a/b", "-a", "a b", "é", "x" * 129, ".."):
            reply = self.daemon.post(RUN, {"command": ["true"], "secrets": {name: "canary-x"}})
            self.assertEqual((reply.status, reply.json["code"]), (422, "bad_value"), reply)
            self.assertNotIn("canary-x", reply.body.decode())
        for value in (5, None, {"base64": "!canary-x"}, []):
            reply = self.daemon.post(RUN, {"command": ["true"], "secrets": {"A": value}})
            self.assert_problem(reply, 422, "bad_value")
            self.assertNotIn("canary-x", reply.body.decode())
        self.assert_problem(self.daemon.post(RUN, {"command": ["true"],
                                                   "secrets": {"A": "x" * (1 << 20) + "x"}}),
                            422, "bad_value", "/secrets")
        self.assert_problem(self.daemon.post(SESSION, {"secrets": {"A": "x"}}), 422, "unknown_field",
                            "/secrets")


def files_below(top):
    return [os.path.join(directory, name) for directory, _, names in os.walk(top) for name in names]


def contents(path):
    try:
        with open(path, encoding="utf-8", errors="replace") as file:
            return file.read()
    except OSError:
        return ""


if __name__ == "__main__":
    unittest.main()
