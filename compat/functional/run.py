#!/usr/bin/env python3
"""Runs functional-tests against a server; README.md tells where they come from.

    compat/functional/run.py --suite FOLDER --uri mongodb://127.0.0.1:27017/ [--sample 3000] [paths and options of pytest]
"""

import argparse
import os
import pathlib
import subprocess
import sys
import venv

HERE = pathlib.Path(__file__).resolve().parent
TESTS = "documentdb_tests/compatibility/tests"
PACKAGES = ["pytest", "pytest-timeout", "pytest-xdist", "pytest-json-report", "pymongo", "pyyaml", "jinja2"]


def interpreter(folder):
    """A Python that has what the suite needs."""
    python = folder / "bin" / "python"
    if not python.exists():
        venv.create(folder, with_pip=True)
        subprocess.run([python, "-m", "pip", "install", "--quiet", *PACKAGES], check=True)
    return python


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--suite", type=pathlib.Path, required=True, help="the folder of functional-tests")
    parser.add_argument("--uri", required=True, help="of the server")
    parser.add_argument("--environment", type=pathlib.Path, default=HERE.parents[1] / "target" / "functional")
    arguments, rest = parser.parse_known_args()
    suite = arguments.suite.resolve()
    here = lambda word: f"{TESTS}/{word}" if (suite / TESTS / word.split("::")[0]).exists() else word
    rest = [here(word) for word in rest]
    paths = rest if any(word.startswith(TESTS) for word in rest) else [TESTS, *rest]
    environment = {**os.environ, "PYTHONPATH": f"{HERE}{os.pathsep}{suite}"}
    command = [interpreter(arguments.environment), "-m", "pytest", *paths, "-c", "documentdb_tests/pytest.ini"]
    command += ["-o", "addopts=", "-p", "outcomes", "-p", "no:cacheprovider", "-q", "--no-header", "--tb=no", "--timeout=120"]
    command += ["--engine-name", "mongodb", "--connection-string", arguments.uri]
    return subprocess.run(command, cwd=suite, env=environment).returncode


if __name__ == "__main__":
    sys.exit(main())
