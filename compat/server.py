#!/usr/bin/env python3
"""Starts the built `pando` for a suite of a client and stops it afterwards.

As a module: `with Server() as server: ... server.port, server.uri`.
As a command: `compat/server.py [OPTION OF PANDO...] -- COMMAND...` runs the command with PANDO_PORT and PANDO_URI in its
environment and ends with its status.

The server listens on a free port of 127.0.0.1 with a fresh data directory below the target directory and
enableTestCommands=1. Its output is kept beside the data. A server that dies while the suite runs, or that does not end
after SIGTERM, is a failure even if every test passed: `stop` raises, the command ends with status 1.
Standard library only.
"""
import os
import shutil
import signal
import socket
import subprocess
import sys
import time
from pathlib import Path

REPOSITORY = Path(__file__).resolve().parent.parent
START_SECONDS_MAX = 60
STOP_SECONDS_MAX = 60


class ServerFailure(Exception):
    """The server did not start, did not stay, or did not end as it should."""


def target_directory():
    """Where cargo builds, and the suites keep what they set up."""
    return (REPOSITORY / os.environ.get("CARGO_TARGET_DIR", "target")).resolve()


def binary():
    """What people run: the server of `cargo build --release`, unless PANDO_BINARY names another."""
    return Path(os.environ.get("PANDO_BINARY") or target_directory() / "release" / "pando")


def free_port():
    with socket.socket() as probe:
        probe.bind(("127.0.0.1", 0))
        return probe.getsockname()[1]


class Server:
    """One node with a data directory of its own. `program` names the binary, where it is not the one that was built."""

    def __init__(self, name="compat", options=(), port=None, program=None):
        self.port = port or free_port()
        self.uri = f"mongodb://127.0.0.1:{self.port}/?directConnection=true"
        self.directory = target_directory() / "compat" / "run" / f"{name}-{self.port}"
        self.log = self.directory / "server.log"
        self.data = self.directory / "data"
        self.options = list(options)
        self.program = program
        self.process = None

    def __enter__(self):
        try:
            self.start()
        except BaseException:
            self.kill()
            raise
        return self

    def __exit__(self, kind, error, trace):
        if error is None:
            self.stop()
        else:
            self.kill()

    def start(self):
        """Starts it with nothing in its data directory."""
        shutil.rmtree(self.directory, ignore_errors=True)
        self.data.mkdir(parents=True)
        self.start_again()

    def start_again(self):
        """Starts it with the data that is there; returns after how many seconds it listened."""
        program = Path(self.program or binary())
        if not program.is_file():
            raise ServerFailure(f"{program} is missing: cargo build --release")
        command = [str(program), "--port", str(self.port), "--dbpath", str(self.data)]
        command += ["--setParameter", "enableTestCommands=1", *self.options]
        with open(self.log, "ab") as log:
            self.process = subprocess.Popen(
                command, stdout=log, stderr=subprocess.STDOUT, stdin=subprocess.DEVNULL, start_new_session=True
            )
        began = time.monotonic()
        while not self.answers():
            if not self.is_running():
                raise ServerFailure(f"the server ended at once, see {self.log}:\n{self.last_lines()}")
            if time.monotonic() > began + START_SECONDS_MAX:
                raise ServerFailure(f"the server does not listen after {START_SECONDS_MAX} s, see {self.log}")
            time.sleep(0.01)
        return time.monotonic() - began

    def answers(self):
        try:
            socket.create_connection(("127.0.0.1", self.port), 1).close()
            return True
        except OSError:
            return False

    def is_running(self):
        return self.process is not None and self.process.poll() is None

    def stop(self):
        """Ends the server as a service manager would, and removes its data; the data of a failure stays."""
        self.terminate()
        shutil.rmtree(self.directory, ignore_errors=True)

    def terminate(self):
        """Ends the server as a service manager would."""
        if not self.is_running():
            raise ServerFailure(f"the server had ended by itself, see {self.log}:\n{self.last_lines()}")
        self.process.send_signal(signal.SIGTERM)
        try:
            status = self.process.wait(STOP_SECONDS_MAX)
        except subprocess.TimeoutExpired:
            self.kill()
            raise ServerFailure(f"the server does not end {STOP_SECONDS_MAX} s after SIGTERM, see {self.log}") from None
        if status != 0:
            raise ServerFailure(f"the server ended with status {status}, see {self.log}:\n{self.last_lines()}")

    def kill(self):
        if self.is_running():
            self.process.kill()
            self.process.wait()

    def last_lines(self):
        lines = self.log.read_text(errors="replace").splitlines()
        return "\n".join(line[:400] for line in lines[-20:])


def main(arguments):
    if "--" not in arguments or arguments[-1] == "--":
        sys.exit(__doc__)
    cut = arguments.index("--")
    command = arguments[cut + 1 :]
    try:
        with Server(Path(command[0]).name, arguments[:cut]) as server:
            environment = dict(os.environ, PANDO_PORT=str(server.port), PANDO_URI=server.uri)
            status = subprocess.call(command, env=environment)
    except ServerFailure as failure:
        print(f"test the server ... FAILED\n{failure}", flush=True)
        return 1
    return status


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
