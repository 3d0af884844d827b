#!/usr/bin/env python3
"""Sets up a suite that needs npm packages, and runs a command in it.

usage: node_suite.py SUITE COMMAND...

The folder compat/SUITE, with compat/tally.mjs, is copied below the target directory, so that the repository stays free of node_modules; there
`npm ci` installs exactly what its package-lock.json names, once for each content of that file. Then the command runs
there, with this process's environment. Standard library only.
"""
import hashlib
import os
import shutil
import subprocess
import sys
from pathlib import Path

from server import target_directory

HERE = Path(__file__).resolve().parent


def prepare(suite):
    """The directory of the suite below the target directory, ready to run."""
    source = HERE / suite
    directory = target_directory() / "compat" / suite
    directory.mkdir(parents=True, exist_ok=True)
    for old in directory.iterdir():
        if old.name not in ("node_modules", "stamp"):
            shutil.rmtree(old) if old.is_dir() else old.unlink()
    ignored = shutil.ignore_patterns("node_modules")
    shutil.copytree(source, directory, dirs_exist_ok=True, ignore=ignored)
    shutil.copy(HERE / "tally.mjs", directory)
    stamp = directory / "stamp"
    wanted = hashlib.sha256((source / "package-lock.json").read_bytes()).hexdigest()
    if not stamp.is_file() or stamp.read_text() != wanted:
        stamp.unlink(missing_ok=True)
        # No package needs its install scripts here: they only build accelerations that the clients do without.
        options = ["--ignore-scripts", "--no-audit", "--no-fund", "--loglevel=error"]
        subprocess.run(["npm", "ci", *options], cwd=directory, check=True)
        stamp.write_text(wanted)
    return directory


def main(arguments):
    if len(arguments) < 2:
        sys.exit(__doc__)
    if shutil.which("npm") is None:
        sys.exit("Node.js 20.19 or newer with npm is needed")
    os.chdir(prepare(arguments[0]))
    os.execvp(arguments[1], arguments[1:])


if __name__ == "__main__":
    main(sys.argv[1:])
