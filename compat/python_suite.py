#!/usr/bin/env python3
"""Runs the test_*.py of a folder beside this file against the built server.

usage: python_suite.py FOLDER [TEST...]

Sets up a virtual environment below the target directory with the versions of the folder's requirements.txt, and runs its
tests in it; names choose modules, classes or tests as unittest takes them (test_dump.Replay). The closing lines
have cargo's form, so that `./test` counts them. Standard library only.
"""
import hashlib
import os
import shutil
import subprocess
import sys
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE))
from server import target_directory  # noqa: E402


def environment(folder):
    """The interpreter of the environment, which is made once for each content of requirements.txt."""
    directory = target_directory() / "compat" / folder.name
    python = directory / "venv" / "bin" / "python"
    requirements = folder / "requirements.txt"
    stamp = directory / "stamp"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(directory, ignore_errors=True)
        venv.create(directory / "venv", with_pip=True)
        subprocess.run([str(python), "-m", "pip", "--quiet", "install", "--requirement", str(requirements)], check=True)
        stamp.write_text(wanted)
    return python


def main(arguments):
    folder = HERE / (arguments or [""])[0]
    if not (folder / "requirements.txt").is_file():
        sys.exit(__doc__)
    interpreter = str(environment(folder))
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.execv(interpreter, [interpreter, str(HERE / "unittest_suite.py"), str(folder), *arguments[1:]])


if __name__ == "__main__":
    main(sys.argv[1:])
