# SPDX-License-Identifier: Apache-2.0
"""Every test of what a python program sees, does and is refused, once more in a forked box."""
import unittest

import test_escape
import test_pairs

import test_kernel_cells  # (escape.py made these reachable)
import test_output
import test_python
import test_results
import test_run
from templatekit import with_templates

AGAIN = [test_python.Exits, test_python.Tracebacks, test_python.MainModule,
         test_python.Environment, test_results.Values, test_results.NotANumber,
         test_results.BadRepresentations, test_results.MimeBundles, test_results.Figures,
         test_results.HostileDriverPeer, test_run.Hello, test_run.Input, test_run.FreshBox,
         test_output.InvalidUtf8, test_output.Caps, test_output.Deadline,
         test_kernel_cells.Output, test_kernel_cells.Results, test_kernel_cells.Python,
         test_kernel_cells.Deaths, test_kernel_cells.Hostile,
         test_escape.Namespaces, test_escape.Processes, test_escape.Kernel, test_escape.Devices,
         test_escape.HostFiles, test_pairs.Signals, test_pairs.Files, test_pairs.Processes]

for found in AGAIN:
    globals()[f"{found.__module__}_{found.__name__}"] = with_templates(found)


if __name__ == "__main__":
    unittest.main()
