# SPDX-License-Identifier: Apache-2.0
"""Every probe of the walls of a box once more in forked boxes."""
import unittest

import escape  # it makes what follows reachable
import test_escape
import test_pairs
import test_syscalls

from againkit import again
from templatekit import Templated, WITH_TEMPLATES

again(globals(),
      [found for module in (test_escape, test_pairs, test_syscalls)
       for found in vars(module).values()
       if isinstance(found, type) and issubclass(found, escape.EscapeCase)
       and found.__module__ == module.__name__],
      WITH_TEMPLATES, Templated)
test_pairs_Files.test_nothing_outside_the_workspace_changes = None  # noqa: F821  of bash, whose boxes are booted


if __name__ == "__main__":
    unittest.main()
