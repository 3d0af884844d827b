#!/usr/bin/env python3
"""Runs pymongo's own test suite against the built server and compares with the failures that are expected.

usage: run.py [--secure] [--modules NAME,NAME] [-k EXPRESSION] [--uri URI] [--details FILE] [--logs DIRECTORY]

It sets itself up below the target directory: a virtual environment with the versions of requirements.txt, and the tests
from pymongo's source distribution. Each module of tests runs in its own process. A test fails the run if it fails without being in
expected.txt, or passes although it is there; a test in expected.txt that did not run at all is stale and fails it too.
Only what depends on the machine and not on the server (reason `machine: ...`) may do either.
The closing lines have cargo's form, so that `./test` counts them. Standard library only.
"""
import argparse
import hashlib
import json
import os
import shutil
import signal
import subprocess
import sys
import tarfile
import urllib.parse
import venv
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from server import Server, ServerFailure, target_directory  # noqa: E402

VERSION = "4.17.0"
MODULES = """
collection cursor bulk database client crud_unified gridfs gridfs_bucket session retryable_writes retryable_writes_unified transactions
change_stream
""".split()
# What else talks to a server and says something of its behaviour; run in long mode.
MORE_MODULES = """
read_concern read_write_concern_spec command_monitoring monitoring custom_types examples json_util_integration collation
retryable_reads retryable_reads_unified versioned_api_integration csot collection_management run_command comment grid_file
gridfs_spec raw_bson decimal128 dbref code threads pooling streaming_protocol sessions_unified read_preferences write_concern
transactions_unified client_context heartbeat_monitoring unified_format common crud_v1 server_selection_in_window
""".split()
# What is about users, logins and encryption; run once more with --auth and TLS.
SECURE_MODULES = "auth auth_spec ssl versioned_api_integration run_command monitoring command_monitoring command_logging".split()
USER, PASSWORD = "suite", "password of the suite"
MAKE_USER = """
import pymongo, sys
admin = pymongo.MongoClient(sys.argv[1]).admin
admin.command("createUser", sys.argv[2], pwd=sys.argv[3], roles=["root"])
"""
TEST_SECONDS_MAX = 60
MODULE_SECONDS_MAX = 900


class Setup:
    """The environment and the tests; made once for each content of requirements.txt."""

    def __init__(self):
        self.directory = target_directory() / "compat" / "pymongo"
        self.python = self.directory / "venv" / "bin" / "python"
        self.tests = self.directory / "tests"
        self.requirements = HERE / "requirements.txt"

    def prepare(self):
        stamp = self.directory / "stamp"
        wanted = hashlib.sha256(self.requirements.read_bytes() + VERSION.encode()).hexdigest()
        if stamp.is_file() and stamp.read_text() == wanted:
            return
        shutil.rmtree(self.directory, ignore_errors=True)
        self.directory.mkdir(parents=True)
        venv.create(self.python.parent.parent, with_pip=True)
        self.pip("install", "--requirement", str(self.requirements))
        self.pip("download", "--no-deps", "--no-binary", "pymongo", "--dest", str(self.directory), f"pymongo=={VERSION}")
        self.extract(self.directory / f"pymongo-{VERSION}.tar.gz")
        stamp.write_text(wanted)

    def pip(self, *arguments):
        subprocess.run([str(self.python), "-m", "pip", "--quiet", *arguments], check=True)

    def extract(self, archive):
        """Only the tests and pytest's settings: pymongo itself must come from the environment."""
        root = f"pymongo-{VERSION}/"
        with tarfile.open(archive) as source:
            for member in source.getmembers():
                name = member.name.removeprefix(root)
                if name == "pyproject.toml" or name.startswith("test/"):
                    member.name = name
                    source.extract(member, self.tests)


def expected_failures():
    """expected.txt: a test and the reason, with two blanks or more between; `#` begins a comment."""
    expected = {}
    for line in (HERE / "expected.txt").read_text().splitlines():
        if not line.strip() or line.startswith("#"):
            continue
        test, blank, reason = line.partition("  ")
        if not reason.strip() or test in expected:
            sys.exit(f"expected.txt: a test, two blanks, a reason; each test once: {line}")
        expected[test] = reason.strip()
    return expected


def certificates(setup):
    """Those that the tests bring, for both sides."""
    return setup.tests / "test" / "certificates"


def secure_options(setup):
    """A server that wants logins and encrypted connections; clients' certificates are not needed, but have to be good."""
    own = certificates(setup)
    options = ["--auth", "--tlsMode", "requireTLS", "--tlsCertificateKeyFile", str(own / "server.pem")]
    return [*options, "--tlsCAFile", str(own / "ca.pem"), "--tlsAllowConnectionsWithoutCertificates"]


def secure_uri(uri, setup):
    own = certificates(setup)
    return f"{uri}&tls=true&tlsCAFile={own / 'ca.pem'}&tlsCertificateKeyFile={own / 'client.pem'}"


def environment_of(uri, setup):
    place = urllib.parse.urlsplit(uri)
    environment = {key: value for key, value in os.environ.items() if key in ("PATH", "HOME", "LANG", "TMPDIR")}
    environment.update(
        DB_IP=place.hostname or "localhost",
        DB_PORT=str(place.port or 27017),
        PYMONGO_MUST_CONNECT="1",
        PYTHONPATH=str(HERE),
        PYTHONDONTWRITEBYTECODE="1",
        PANDO_OUTCOMES=str(setup.directory / f"outcomes-{os.getpid()}.jsonl"),
    )
    return environment


def run_module(name, setup, environment, options):
    """The outcomes of one module by test; a test that failed in any of its phases failed."""
    outcomes = Path(environment["PANDO_OUTCOMES"])
    outcomes.unlink(missing_ok=True)
    command = [str(setup.python), "-m", "pytest", "-q", "-p", "outcomes", "-p", "no:cacheprovider", "-o", "addopts="]
    marks = "default or default_async or auth or tls" if options.secure else "default or default_async"
    command += ["-m", marks, f"--timeout={TEST_SECONDS_MAX}", f"test/test_{name}.py"]
    if options.keyword:
        command += ["-k", options.keyword]
    with open(Path(options.logs) / f"{name}.log", "w", encoding="utf-8") as log:
        process = subprocess.Popen(
            command, cwd=setup.tests, env=environment, stdout=log, stderr=subprocess.STDOUT, start_new_session=True
        )
        cut = False
        try:
            process.wait(MODULE_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            cut = True
        # Its own group: whatever the tests left running ends too.
        try:
            os.killpg(process.pid, signal.SIGKILL)
        except ProcessLookupError:
            pass
        process.wait()
    results = {}
    if outcomes.is_file():
        for line in outcomes.read_text(encoding="utf-8").splitlines():
            result = json.loads(line)
            if result["test"] not in results or result["outcome"] == "failed":
                results[result["test"]] = result
        outcomes.unlink()
    trouble = None
    if cut:
        trouble = f"cut after {MODULE_SECONDS_MAX} s"
    elif not any(result["outcome"] in ("passed", "failed") for result in results.values()) and not options.keyword:
        trouble = f"no test ran (pytest ended with {process.returncode})"
    if trouble:
        results[f"test/test_{name}.py"] = {"test": f"test/test_{name}.py", "outcome": "failed", "reason": trouble}
    return results


class Tally:
    def __init__(self, expected, modules, is_partial):
        self.expected = expected
        self.passed = self.skipped = self.awaited = 0
        self.failures = []
        files = {f"test/test_{name}.py" for name in modules}
        # With -k only a part runs, and what did not run says nothing.
        self.unseen = set() if is_partial else {test for test in expected if test.split("::")[0] in files}

    def add(self, result):
        test, outcome = result["test"], result["outcome"]
        self.unseen.discard(test)
        if outcome == "skipped":
            self.skipped += 1
            if test in self.expected:
                self.fail(test, "is expected to fail, but the suite skips it: remove it from expected.txt")
        elif self.expected.get(test, "").startswith("machine: "):
            self.skipped += 1
        elif outcome == "failed" and test in self.expected:
            self.awaited += 1
        elif outcome == "failed":
            self.fail(test, result["reason"])
        elif test in self.expected:
            self.fail(test, "passes: remove it from expected.txt")
        else:
            self.passed += 1

    def fail(self, test, reason):
        self.failures.append(test)
        print(f"test {test} ... FAILED\n    {reason}", flush=True)

    def close(self):
        for test in sorted(self.unseen):
            self.fail(test, "is in expected.txt, but there is no such test")
        word = "FAILED" if self.failures else "ok"
        print(
            f"test result: {word}. {self.passed} passed; {len(self.failures)} failed; "
            f"{self.awaited} that do not pass yet; {self.skipped} skipped by the suite",
            flush=True,
        )


def run(uri, options, setup):
    usual = SECURE_MODULES if options.secure else MODULES
    modules = options.modules.split(",") if options.modules else list(usual)
    if not options.modules and not options.secure and os.environ.get("PANDO_TEST_LONG"):
        modules += MORE_MODULES
    tally = Tally(expected_failures(), modules, bool(options.keyword))
    environment = environment_of(uri, setup)
    if options.secure:
        # The first user, made from this machine.
        subprocess.run([str(setup.python), "-c", MAKE_USER, secure_uri(uri, setup), USER, PASSWORD], check=True)
        own = certificates(setup)
        environment.update(DB_USER=USER, DB_PASSWORD=PASSWORD)
        environment.update(CLIENT_PEM=str(own / "client.pem"), CA_PEM=str(own / "ca.pem"))
    details = open(options.details, "w", encoding="utf-8") if options.details else None
    for name in modules:
        results = run_module(name, setup, environment, options)
        outcomes = [result["outcome"] for result in results.values()]
        print(f"{name}: " + ", ".join(f"{outcomes.count(o)} {o}" for o in ("passed", "failed", "skipped")), flush=True)
        for result in results.values():
            tally.add(result)
            if details:
                details.write(json.dumps(result) + "\n")
        if details:
            details.flush()
    tally.close()
    return 1 if tally.failures else 0


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--modules", help="names such as collection,cursor instead of those that must pass")
    parser.add_argument("-k", dest="keyword", help="pytest's -k")
    parser.add_argument("--secure", action="store_true", help="with authentication, a user, and TLS")
    parser.add_argument("--uri", help="a server that runs already, instead of one of our own")
    parser.add_argument("--details", help="one JSON line for each test goes there")
    parser.add_argument("--logs", help="pytest's output by module goes there")
    options = parser.parse_args()
    setup = Setup()
    setup.prepare()
    options.logs = options.logs or str(setup.directory / "logs")
    Path(options.logs).mkdir(parents=True, exist_ok=True)
    if options.uri:
        return run(options.uri, options, setup)
    try:
        with Server("pymongo", secure_options(setup) if options.secure else []) as server:
            return run(server.uri, options, setup)
    except ServerFailure as failure:
        print(f"test the server ... FAILED\n    {failure}\ntest result: FAILED. 0 passed; 1 failed", flush=True)
        return 1


if __name__ == "__main__":
    sys.exit(main())
