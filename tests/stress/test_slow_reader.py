# SPDX-License-Identifier: Apache-2.0
"""A gibibyte of output, read at a kilobyte a second: the program is not held up, the memory stays
flat, and what is not kept is said.
"""
import os
import sys
import unittest

sys.path.insert(0, os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "http"))

import harness  # noqa: E402  (the path above has to come first)
import streamkit  # noqa: E402

MIB = 1 << 20


class SlowReader(streamkit.Case):
    def events_of(self, name):
        """The events that are kept, but for the output itself, and how much of that there is."""
        others, kept = [], 0
        with self.events(name) as stream:
            while (event := stream.next()) is not None:
                if event["type"] == "stdout":
                    self.assertEqual(event["offset"], kept)
                    kept += len(event["data"])
                else:
                    others.append(event)
        return others, kept

    def read_slowly(self, keep_mib):
        code = streamkit.writer(1024)
        options = {"trackFiles": False, "timeoutS": 300, "maxOutputBytes": keep_mib * MIB}
        alone = self.run_code(code, **options)
        self.assertEqual((alone["truncated"], len(alone["stdout"])), (True, keep_mib * MIB))
        plain_s = alone["usage"]["wallMs"] / 1e3
        del alone
        slow = self.beside_a_slow_reader(code, limit=300, **options)
        self.assertEqual((slow.end["exitCode"], slow.end["fault"], slow.end["truncatedStreams"]),
                         (0, None, ["stdout"]))
        self.assertLess(slow.wall_s, 3 * plain_s + 5, "the box was held up")
        # What is kept for the result is in memory while it runs, for a caller who waits as well.
        self.assert_grown_less(slow.grown_mb, keep_mib + 64)
        print(f"{keep_mib} MiB kept: {plain_s:.1f} s alone, {slow.wall_s:.1f} s with the reader, "
              f"{slow.grown_mb:.0f} MiB more memory", flush=True)
        others, kept = self.events_of(slow.end["id"])
        cuts = [(event["stream"], event["logOnly"]) for event in others
                if event["type"] == "truncated"]
        return cuts, kept

    def test_above_the_callers_own_maximum(self):
        self.assertEqual(self.read_slowly(64), ([("stdout", False)], 64 * MIB))

    def test_above_the_maximum_of_a_log(self):
        cuts, kept = self.read_slowly(256)
        # A log that is full takes nothing of the other streams either, nor the value of the code.
        self.assertEqual(cuts, [("stdout", True), ("stdout", False), ("stderr", True),
                                ("results", True)])
        self.assertGreater(kept, 128 * MIB)
        self.assertLess(kept, 160 * MIB)


if __name__ == "__main__":
    unittest.main()
