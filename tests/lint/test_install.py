# SPDX-License-Identifier: Apache-2.0
"""What `make install` puts where, `make uninstall` takes away, and `make dist` packs."""
import os
import subprocess
import tarfile
import tempfile
import unittest

ROOT = os.path.dirname(os.path.dirname(os.path.dirname(os.path.abspath(__file__))))


def make(*arguments):
    done = subprocess.run(["make", "--no-print-directory", *arguments], cwd=ROOT, text=True,
                          capture_output=True, check=False)
    if done.returncode != 0:
        raise AssertionError(done.stdout[-2000:] + done.stderr[-2000:])
    return done.stdout


def files_below(folder):
    return sorted(os.path.relpath(os.path.join(place, name), folder)
                  for place, _, names in os.walk(folder) for name in names)


class Install(unittest.TestCase):
    def test_install_and_uninstall(self):
        with tempfile.TemporaryDirectory(prefix="kernd-install-") as folder:
            place = [f"DESTDIR={folder}", "PREFIX=/usr"]
            make("install", *place)
            found = files_below(folder)
            for name in ("bin/kernd", "libexec/kernd/kernd-init", "libexec/kernd/kernd-shell",
                         "libexec/kernd/driver.py", "lib/systemd/user/kernd.socket",
                         "share/man/man1/kernd.1", "share/man/man1/kernd-serve.1",
                         "share/man/man5/kernd.conf.5", "share/man/man7/kernd-api.7",
                         "share/bash-completion/completions/kernd",
                         "share/zsh/site-functions/_kernd",
                         "share/fish/vendor_completions.d/kernd.fish"):
                self.assertIn("usr/" + name, found)
            with open(f"{folder}/usr/lib/systemd/user/kernd.service", encoding="utf-8") as file:
                self.assertIn("\nExecStart=/usr/bin/kernd serve\n", file.read())
            shown = subprocess.run([f"{folder}/usr/bin/kernd", "config", "show", "--state",
                                    f"{folder}/state", "--runtime", f"{folder}/run"],
                                   capture_output=True, text=True, check=False)
            self.assertEqual(shown.returncode, 0, shown.stderr)
            make("uninstall", *place)
            self.assertEqual(files_below(folder), [])

    def test_dist_is_the_same_each_time(self):
        if not os.path.exists(os.path.join(ROOT, ".git")):
            return  # a tree that was unpacked from one
        with tempfile.TemporaryDirectory(prefix="kernd-dist-") as folder:
            packed = []
            for name in ("first", "second"):
                path = os.path.join(folder, name, "kernd.tar.gz")
                make("dist", f"DIST={path}")
                with open(path, "rb") as file:
                    packed.append(file.read())
            self.assertEqual(packed[0], packed[1])
            with tarfile.open(path) as archive:
                names = archive.getnames()
            self.assertTrue(all(name.startswith("kernd-") for name in names))
            self.assertIn("Makefile", [name.partition("/")[2] for name in names])


if __name__ == "__main__":
    unittest.main()
