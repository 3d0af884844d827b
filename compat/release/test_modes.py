"""The ways in which the server can be started: each one opens its store a second time and serves from it."""
import os
import shutil
import tempfile
import unittest

from pymongo import MongoClient, WriteConcern
from pymongo.errors import OperationFailure

from server import Server, binary


class Modes(unittest.TestCase):
    def twice(self, server, check):
        """Starts it three times: it is new, after an end, after a kill. `check(client, start)` looks at it each time."""
        self.addCleanup(server.kill)
        for start, end in enumerate((server.terminate, server.kill, server.stop)):
            if start:
                server.start_again()
            else:
                server.start()
            with MongoClient(server.uri) as client:
                check(client, start)
                client.modes.starts.with_options(write_concern=WriteConcern(j=True)).insert_one({"_id": start})
                self.assertEqual(client.modes.starts.count_documents({}), start + 1)
            end()

    def test_without_options_it_is_a_set_of_one(self):
        def check(client, _):
            hello = client.admin.command("hello")
            self.assertTrue(hello["isWritablePrimary"] and hello["setName"])

        self.twice(Server("release-default"), check)

    def test_standalone(self):
        def check(client, start):
            self.assertNotIn("setName", client.admin.command("hello"))
            with self.assertRaises(OperationFailure) as refused:
                client.admin.command("replSetGetStatus")
            self.assertEqual(refused.exception.code, 76)

        self.twice(Server("release-standalone", ["--standalone"]), check)

    def test_a_named_set(self):
        def check(client, start):
            if start == 0:
                self.assertNotIn("setName", client.admin.command("hello"))
                client.admin.command("replSetInitiate")
            while not (hello := client.admin.command("hello"))["isWritablePrimary"]:
                pass
            self.assertEqual(hello["setName"], "aspens")
            self.assertEqual(client.admin.command("replSetGetStatus")["myState"], 1)

        self.twice(Server("release-set", ["--replSet", "aspens"]), check)

    def test_under_the_name_of_mongod(self):
        folder = tempfile.mkdtemp()
        self.addCleanup(shutil.rmtree, folder)
        program = os.path.join(folder, "mongod")
        os.symlink(binary(), program)

        def check(client, _):
            self.assertNotIn("setName", client.admin.command("hello"))
            words = client.admin.command("getCmdLineOpts")["argv"]
            self.assertTrue(words[0].endswith("mongod"), words)

        self.twice(Server("release-mongod", program=program), check)
