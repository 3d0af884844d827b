#!/usr/bin/env python3
"""What administrators' tools and frameworks do with the server.

usage: run.py [TEST...]

Sets up a virtual environment below the target directory with the versions of requirements.txt, and runs the test_*.py of
this folder in it; names choose modules, classes or tests as unittest takes them (test_dump.Replay). The closing lines
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
sys.path.insert(0, str(HERE.parent))
from server import target_directory  # noqa: E402


def environment():
    """The interpreter of the environment, which is made once for each content of requirements.txt."""
    directory = target_directory() / "compat" / "tools"
    python = directory / "venv" / "bin" / "python"
    requirements = HERE / "requirements.txt"
    stamp = directory / "stamp"
    wanted = hashlib.sha256(requirements.read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        shutil.rmtree(directory, ignore_errors=True)
        venv.create(directory / "venv", with_pip=True)
        subprocess.run([str(python), "-m", "pip", "--quiet", "install", "--requirement", str(requirements)], check=True)
        stamp.write_text(wanted)
    return python


if __name__ == "__main__":
    interpreter = str(environment())
    os.environ["PYTHONDONTWRITEBYTECODE"] = "1"
    os.execv(interpreter, [interpreter, str(HERE / "suite.py"), *sys.argv[1:]])
