# SPDX-License-Identifier: Apache-2.0
"""Programs and packages that people use work under the filter and the limits of a box.

Nothing is installed here: `make deps-dev` does that. What is missing is a skip, and a failure when
MUST_WORK=1.
"""
import importlib.util
import shutil
import subprocess
import unittest

from escape import EscapeCase, harness
from templatekit import Forked

# Debian's interpreter decides: that is the one that boxes see.
PYTHON = "/usr/bin/python3"


def importable(name):
    return subprocess.run([PYTHON, "-c", f"import {name}"], capture_output=True,
                          check=False).returncode == 0


class Packages(Forked, EscapeCase):
    daemon_arguments = ()

    def need_module(self, name):
        if not importable(name):
            self.skipTest(f"the Python package {name} is not installed")

    def need_program(self, name):
        if shutil.which(name) is None:
            self.skipTest(f"{name} is not installed")

    def works(self, code, wanted, language="python", **options):
        options.setdefault("timeoutS", harness.seconds(60))
        result = self.run_code(code, language, **options)
        self.assert_success(result, wanted)
        return result

    def test_numpy(self):
        self.need_module("numpy")
        self.works("import numpy as np\na = np.arange(12).reshape(3, 4)\n"
                   "print((a @ a.T).sum(), np.linalg.inv(np.eye(3) * 2)[0, 0],"
                   " np.random.default_rng(1).random() < 1)", "1134 0.5 True\n")

    def test_numpy_with_few_processes(self):
        self.need_module("numpy")
        self.works("import numpy as np\nprint(np.ones((300, 300)).dot(np.ones((300, 300))).sum())",
                   "27000000.0\n", pids=32, cpus=1)

    def test_pandas(self):
        self.need_module("pandas")
        result = self.works("import pandas as pd\ndf = pd.read_csv('a.csv')\nprint(df.y.sum())\n"
                            "df.to_csv('b.csv', index=False)\ndf", "30\n",
                            files={"a.csv": "x,y\n1,10\n2,20\n"}, fetchFiles=["b.csv"])
        self.assertIn("<table", result["results"][0]["data"]["text/html"])

    def test_matplotlib(self):
        self.need_module("matplotlib")
        png = "iVBORw0KGgo"
        for code, images in (
                ("import matplotlib.pyplot as plt\nplt.plot([1, 2])", 1),
                ("import matplotlib.pyplot as plt\nplt.plot([1]); plt.savefig('a.png'); plt.show()",
                 1),
                ("import matplotlib.pyplot as plt\nfig, ax = plt.subplots(); ax.plot([1]); fig", 1),
                ("import matplotlib.pyplot as plt\nfor i in range(3):\n  plt.figure(); plt.plot([i])",
                 3),
                ("import matplotlib\nprint(matplotlib.get_backend().lower())", 0)):
            with self.subTest(code=code):
                result = self.run_code(code, timeoutS=harness.seconds(60))
                self.assert_success(result)
                found = [r["data"]["image/png"] for r in result["results"]
                         if "image/png" in r["data"]]
                self.assertEqual(len(found), images, [list(r["data"]) for r in result["results"]])
                for image in found:
                    self.assertTrue(image.startswith(png))
                    self.assertGreater(len(image), 2000, "a blank one")

    def test_pillow(self):
        self.need_module("PIL")
        result = self.works("from PIL import Image\nim = Image.new('RGB', (8, 8), 'red')\n"
                            "im.save('a.png'); print(Image.open('a.png').size)\nim", "(8, 8)\n")
        self.assertTrue(result["results"][0]["data"]["image/png"].startswith("iVBORw0KGgo"))

    def test_requests(self):
        self.need_module("requests")
        self.works("""
import http.server, threading, requests
server = http.server.ThreadingHTTPServer(("127.0.0.1", 0), http.server.SimpleHTTPRequestHandler)
threading.Thread(target=server.serve_forever, daemon=True).start()
print(requests.get(f"http://127.0.0.1:{server.server_port}/a.txt").text)
try: requests.get("http://example.org", timeout=3)
except requests.RequestException as error: print(type(error).__name__)
""", "hello\nConnectionError\n", files={"a.txt": "hello"})

    def test_sqlite(self):
        self.works("import sqlite3\nc = sqlite3.connect('a.db')\nc.execute('pragma journal_mode=wal')\n"
                   "c.execute('create table t (x)')\nc.executemany('insert into t values (?)',"
                   " [(i,) for i in range(100)])\nc.commit()\n"
                   "print(c.execute('select sum(x) from t').fetchone())", "(4950,)\n")

    def test_multiprocessing(self):
        self.works("import multiprocessing as mp\nwith mp.Pool(3) as p: print(sum(p.map(abs,"
                   " range(-100, 100))))\nwith mp.Manager() as m: print(m.dict(a=1)['a'])",
                   "10000\n1\n")

    def test_ssl_and_hashes(self):
        self.works("import ssl, hashlib, secrets, uuid, zlib, lzma, bz2\n"
                   "c = ssl.create_default_context(); print(len(c.get_ca_certs()) > 0)\n"
                   "print(hashlib.scrypt(b'a', salt=b'b', n=16, r=8, p=1).hex()[:8])\n"
                   "uuid.uuid4(); print(len(lzma.compress(bytes(100000))) < 1000)",
                   "True\n8f96457f\nTrue\n".replace("8f96457f", self.scrypt()))

    @staticmethod
    def scrypt():
        import hashlib
        return hashlib.scrypt(b"a", salt=b"b", n=16, r=8, p=1).hex()[:8]

    def test_standard_library_parts_that_touch_the_kernel(self):
        self.works("""
import asyncio, ctypes, mmap, os, pty, queue, resource, select, selectors, signal, subprocess, tempfile
async def go():
    p = await asyncio.create_subprocess_exec("echo", "sub", stdout=-1)
    return (await p.communicate())[0]
print(asyncio.run(go()))
m = mmap.mmap(-1, 4096); m[:2] = b"ok"; print(m[:2])
e = select.epoll(); r, w = os.pipe(); e.register(r, select.EPOLLIN); os.write(w, b"x"); print(len(e.poll(1)))
fd = os.memfd_create("x"); os.write(fd, b"12"); print(os.fstat(fd).st_size)
print(subprocess.run(["sh", "-c", "echo $((6*7))"], capture_output=True).stdout)
signal.signal(signal.SIGUSR1, lambda *a: print("signal")); os.kill(os.getpid(), signal.SIGUSR1)
print(os.eventfd(0) > 0, os.sched_getaffinity(0) != set(), os.getrandom(4) != b"")
master, slave = pty.openpty(); os.write(slave, b"t"); print(os.read(master, 1))
""", "b'sub\\n'\nb'ok'\n1\n2\nb'42\\n'\nsignal\nTrue True True\nb't'\n")

    def test_node_workers(self):
        self.need_program("node")
        self.works("""
const { Worker, isMainThread } = require("worker_threads");
const w = new Worker("require('worker_threads').parentPort.postMessage(6 * 7)", { eval: true });
w.on("message", m => console.log("worker", m));
w.on("exit", () => require("child_process").exec("echo child", (e, out) => console.log(out.trim())));
""", "worker 42\nchild\n", "node")

    def test_node_server_and_files(self):
        self.need_program("node")
        self.works("""
const http = require("http"), fs = require("fs/promises"), crypto = require("crypto");
const s = http.createServer((q, r) => r.end("served")).listen(0, "127.0.0.1", async () => {
  const r = await fetch("http://127.0.0.1:" + s.address().port);
  console.log(await r.text()); s.close();
  await fs.writeFile("x", "1"); console.log(String(await fs.readFile("x")));
  console.log(crypto.createHash("sha256").update("a").digest("hex").slice(0, 8));
});
""", "served\n1\nca978112\n", "node")

    def test_node_modules(self):
        self.need_program("node")
        self.works("import('fs').then(m => console.log(typeof m.readFileSync))", "function\n", "node")
        self.works("console.log(require('./m').x)", "5\n", "node", files={"m.js": "exports.x = 5"})

    def test_git(self):
        self.need_program("git")
        self.works("""
git init -q . && git config user.email a@b && git config user.name n &&
echo x > f && git add f && git commit -qm first && git clone -q . /tmp/copy &&
git -C /tmp/copy log --format=%s && git gc -q && git fsck 2>&1 | head -1
""", "first\n", "bash")

    def test_compilers(self):
        self.need_program("gcc")
        self.works("gcc -O2 -o p p.c -lm -lpthread && ./p", "1.414\n", "bash", files={
            "p.c": "#include <stdio.h>\n#include <math.h>\n#include <pthread.h>\n"
                   "static void *f(void *a){ printf(\"%.3f\\n\", sqrt(2)); return a; }\n"
                   "int main(void){ pthread_t t; pthread_create(&t, 0, f, 0);"
                   " pthread_join(t, 0); return 0; }\n"})

    def test_usual_tools(self):
        self.works("""
seq 5 | sort -r | head -2 | tr '\\n' ' '; echo abc | sed s/b/x/ | awk '{print toupper($0)}'
printf 'a\\nb\\n' > t; grep -c . t; tar czf t.tgz t; tar tzf t.tgz; find . -name 't*' | wc -l
date -d @0 +%Y; mktemp -d > /dev/null && echo tmp; xargs -P 4 -n 1 echo < t | sort | tr -d '\\n'; echo
timeout 5 sh -c 'echo inner'; flock t echo locked; nproc > /dev/null; tty; perl -e 'print 6*7, "\\n"'
exit 0
""", "5 4 AXC\n2\nt\n2\n1970\ntmp\nab\ninner\nlocked\nnot a tty\n42\n", "bash")

    def test_what_is_not_there_is_an_ordinary_error(self):
        result = self.run_code("import no_such_package_here")
        self.assertIn("ModuleNotFoundError", result["stderr"])
        self.assertEqual((result["exitCode"], result["fault"]), (1, None))
        self.assertIsNone(importlib.util.find_spec("no_such_package_here"))


if __name__ == "__main__":
    unittest.main()
