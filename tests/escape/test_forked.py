# SPDX-License-Identifier: Apache-2.0
"""Every probe of the walls of a box once more in forked boxes, and those of single calls in kernels."""
import os
import unittest

import escape  # it makes what follows reachable
import test_escape
import test_pairs
import test_syscalls

from againkit import again
from templatekit import StoodBy, Templated, WITH_TEMPLATES


def cases(*modules):
    return [found for module in modules for found in vars(module).values()
            if isinstance(found, type) and issubclass(found, escape.EscapeCase)
            and found.__module__ == module.__name__]


again(globals(), cases(test_escape, test_pairs, test_syscalls), WITH_TEMPLATES, Templated)
if os.uname().machine == "x86_64":
    again(globals(), cases(test_escape, test_syscalls), (*WITH_TEMPLATES, "--spares", "0"), StoodBy, suffix="_standby")
again(globals(), cases(test_escape), (), escape.InKernels, suffix="_kernel")
test_escape_Kernel_kernel.test_settings_of_its_namespaces_end_with_a_box = None  # noqa: F821  it goes on
test_escape_HostFiles_kernel.test_write = None  # noqa: F821  whose control is its point
test_pairs_Files.test_nothing_outside_the_workspace_changes = None  # noqa: F821  of bash, whose boxes are booted


if __name__ == "__main__":
    unittest.main()
