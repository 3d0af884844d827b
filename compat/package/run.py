#!/usr/bin/env python3
"""Installs the Debian package that `./package --plain` makes, and serves from it.

Where this user may install packages, dpkg does it and removes it again; elsewhere the package is unpacked into a folder. The closing lines have
cargo's form, so that `./test` counts them. Standard library only.
"""
import gzip
import os
import re
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

HERE = Path(__file__).resolve().parent
sys.path.insert(0, str(HERE.parent))
from server import REPOSITORY, Server, target_directory  # noqa: E402


def run(*words):
    return subprocess.run(words, check=True, capture_output=True, text=True).stdout


class Package:
    """The package, installed below `root`."""

    def __init__(self):
        packages = sorted((target_directory() / "package").glob("pando_*.deb"))
        assert len(packages) == 1, packages
        self.archive = packages[0]
        self.is_installed = os.geteuid() == 0
        self.root = Path("/") if self.is_installed else Path(tempfile.mkdtemp())

    def install(self):
        if self.is_installed:
            # What it depends on comes from the distribution.
            run("apt-get", "install", "-y", "-qq", "--no-install-recommends", str(self.archive))
        else:
            run("dpkg", "-x", str(self.archive), str(self.root))

    def remove(self):
        if self.is_installed:
            run("dpkg", "--purge", "pando")
        else:
            shutil.rmtree(self.root)

    def path(self, name):
        return self.root / name


def it_brings_what_a_service_needs(package):
    unit = package.path("lib/systemd/system/pando.service")
    unit = unit if unit.is_file() else package.path("usr/lib/systemd/system/pando.service")
    assert "ExecStart=/usr/bin/pando serve --config /etc/pando.conf" in unit.read_text()
    assert "dbPath: /var/lib/pando" in package.path("etc/pando.conf").read_text()
    if package.is_installed:
        assert run("stat", "-c", "%U %a", "/var/lib/pando").split() == ["pando", "750"]


def its_program_is_stripped(package):
    program = package.path("usr/bin/pando")
    assert ".debug_line" not in run("readelf", "--sections", "--wide", str(program))
    assert re.match(r"pando \d+\.\d+", run(str(program), "--version"))


def its_manual_and_completions_know_the_options(package):
    manual = gzip.open(package.path("usr/share/man/man1/pando.1.gz"), "rt").read()
    assert "replSet" in manual and "dbpath" in manual
    completions = package.path("usr/share/bash-completion/completions/pando")
    listed = run("bash", "-c", f". '{completions}'; COMP_WORDS=(pando --db); COMP_CWORD=1; _pando pando --db pando; echo ${{COMPREPLY[*]}}")
    assert "--dbpath" in listed, listed
    for name in ("fish/vendor_completions.d/pando.fish", "zsh/vendor-completions/_pando"):
        assert package.path(f"usr/share/{name}").stat().st_size > 0


def it_serves_and_starts_again(package):
    server = Server("package", ["--config", str(configuration(package))], program=str(package.path("usr/bin/pando")))
    with server:
        server.terminate()
        server.start_again()


def configuration(package):
    """The one that it brings; only the places are the test's."""
    text = package.path("etc/pando.conf").read_text()
    folder = Path(tempfile.mkdtemp(dir=target_directory()))
    text = text.replace("/var/log/pando", str(folder)).replace("/var/lib/pando", str(folder / "data"))
    (folder / "pando.conf").write_text(text)
    return folder / "pando.conf"


TESTS = (
    it_brings_what_a_service_needs,
    its_program_is_stripped,
    its_manual_and_completions_know_the_options,
    it_serves_and_starts_again,
)


def main():
    if not shutil.which("dpkg"):
        print("test package ... ignored\n    this system has no dpkg\ntest result: ok. 0 passed; 0 failed; 1 ignored")
        return 0
    subprocess.run([str(REPOSITORY / "package"), "--plain"], check=True)
    package, failed = Package(), 0
    package.install()
    try:
        for test in TESTS:
            try:
                test(package)
                print(f"test {test.__name__} ... ok", flush=True)
            except Exception as error:  # the others are still worth a try
                failed += 1
                print(f"test {test.__name__} ... FAILED\n    {error!r}", flush=True)
    finally:
        package.remove()
    print(f"test result: {'FAILED' if failed else 'ok'}. {len(TESTS) - failed} passed; {failed} failed", flush=True)
    return 1 if failed else 0


if __name__ == "__main__":
    sys.exit(main())
