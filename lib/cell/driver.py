# SPDX-License-Identifier: Apache-2.0
#
# driver: entry of the Python driver, started by kernd-init as "python3 -S driver.py".
#
# Owns: nothing. A script is compiled anew at every start, so all that has any size lives in modules
# beside this file, whose bytecode is cached. They are imported with only this directory and the
# standard library on the path: no file of the workspace or of PYTHONPATH can take their place.
import sys

library = __file__.rpartition("/")[0]
standard = getattr(sys, "_stdlib_dir", None) or sys.prefix + "/lib/python"
found = sys.path[:]
sys.path[:] = [library] + [entry for entry in found if entry.startswith(standard)]

import driver_main  # noqa: E402

driver_main.main(library, found)
