"""Stores that another binary wrote: each of stores/ is opened, checked, written to, and opened again.

`stores/NAME.tar.xz` is the data directory of a server that was ended or killed, and `stores/README.md` says how to make one.
PANDO_BINARY_BEFORE names a binary whose fresh store is opened as well, as that of the commit before.
"""
import os
import shutil
import tarfile
import time
import unittest
from pathlib import Path

from load import Load
from server import Server
from store import check, fill

STORES = Path(__file__).resolve().parent / "stores"


class Stores(unittest.TestCase):
    def opened(self, server):
        """What is there is right, can be changed, and is there again after an end and after a kill."""
        for end in (server.terminate, server.kill, server.stop):
            server.start_again()
            check(server.uri)
            end()

    def test_stores_of_earlier_versions_are_opened(self):
        archives = sorted(STORES.glob("*.tar.xz"))
        self.assertTrue(archives)
        for archive in archives:
            with self.subTest(archive.name):
                server = Server(f"release-{archive.name.split('.')[0]}")
                self.addCleanup(server.kill)
                shutil.rmtree(server.directory, ignore_errors=True)
                server.directory.mkdir(parents=True)
                with tarfile.open(archive) as packed:
                    packed.extractall(server.directory, filter="data")
                self.opened(server)

    def test_what_the_binary_before_wrote_is_opened(self):
        before = os.environ.get("PANDO_BINARY_BEFORE")
        if not before:
            self.skipTest("PANDO_BINARY_BEFORE names none")
        for is_killed in (False, True):
            writer, load = Server("release-before", program=before), Load()
            self.addCleanup(writer.kill)
            writer.start()
            fill(writer.uri)
            load.begin(writer.uri)
            time.sleep(1)
            if is_killed:
                writer.kill()
            load.end()
            if not is_killed:
                writer.terminate()
            reader = Server("release-before", port=writer.port)
            self.addCleanup(reader.kill)
            reader.start_again()
            load.check(reader.uri)
            reader.terminate()
            self.opened(reader)
