# SPDX-License-Identifier: Apache-2.0
"""The build backend of pip install (PEP 517): one of our own, so that nothing comes from the network."""
import base64
import hashlib
import os
import re
import zipfile

WHEEL = "Wheel-Version: 1.0\nGenerator: kernd\nRoot-Is-Purelib: true\nTag: py3-none-any\n"


def _read(path):
    with open(path, "rb") as file:
        return file.read()


def _field(name):
    return re.search(rf'^{name} = "(.*)"$', _read("pyproject.toml").decode(), re.M)[1]


def _metadata():
    return (f"Metadata-Version: 2.1\nName: {_field('name')}\nVersion: {_field('version')}\n"
            f"Summary: {_field('description')}\nLicense: Apache-2.0\n"
            f"Requires-Python: {_field('requires-python')}\n")


def build_wheel(directory, config_settings=None, metadata_directory=None):
    title = f"{_field('name')}-{_field('version')}"
    info = f"{title}.dist-info"
    names = [name for name in sorted(os.listdir("kernd")) if name.endswith((".py", ".typed"))]
    files = {**{f"kernd/{name}": _read(f"kernd/{name}") for name in names},
             f"{info}/METADATA": _metadata().encode(), f"{info}/WHEEL": WHEEL.encode()}
    record = ""
    for path, data in files.items():
        digest = base64.urlsafe_b64encode(hashlib.sha256(data).digest()).decode().rstrip("=")
        record += f"{path},sha256={digest},{len(data)}\n"
    files[f"{info}/RECORD"] = f"{record}{info}/RECORD,,\n".encode()
    wheel = f"{title}-py3-none-any.whl"
    with zipfile.ZipFile(os.path.join(directory, wheel), "w", zipfile.ZIP_DEFLATED) as archive:
        for path, data in files.items():
            archive.writestr(path, data)
    return wheel
