# SPDX-License-Identifier: Apache-2.0
"""A short walk of the fuzzer that `make fuzz-http` lets run for long."""
import unittest

import harness
import httpfuzz


class Short(harness.Case):
    daemon_arguments = ("--workers", "4")

    def test_five_hundred_requests(self):
        fuzz = httpfuzz.Fuzz(self.daemon, seed=1)
        self.addCleanup(fuzz.finish)
        fuzz.run(500)
        self.assertGreater(sum(count for status, count in fuzz.statuses.items() if status < 300), 50)
        self.assertGreater(fuzz.statuses[422], 50)


if __name__ == "__main__":
    unittest.main()
