"""Federations from Python: the bits of a run; killed clients; own losses; the program's processes and ours in one federation."""
import os, pathlib, re, signal, socket, subprocess, sys, tempfile, threading, time, unittest

import numpy as np

import hfsad

RNG = np.random.default_rng(9)
CLIENTS = ["north/a", "north/b", "south/c", "south/d"]
OF = np.repeat(CLIENTS, 15)
X = RNG.normal(size=(60, 3))
Y = X @ [1.0, 2, 3] + RNG.standard_t(2, size=60)
SPEC = {"loss": {"kind": "quantile", "tau": 0.4}, "features": {"intercept": "global"}, "run": {"iterations": 8, "edge_rounds": 3}}


def rows(client):
    return X[OF == client], Y[OF == client]


def data():
    return hfsad.Data(X, Y, clients=OF)


class Broker:
    """mosquitto on a socket in a folder, or with certificates on a port of loopback."""

    def __init__(self, folder, keys=None):
        self.url, config = f"unix://{folder}/socket", f"listener 0 {folder}/socket\nallow_anonymous true\n"
        if keys is not None:
            with socket.socket() as free:
                free.bind(("127.0.0.1", 0))
                port = free.getsockname()[1]
            self.url, config = f"mqtts://localhost:{port}", re.sub(r"(?m)^listener \d+", f"listener {port}", (keys / "mosquitto.conf").read_text())
        (folder / "broker.conf").write_text(config + "user root\n" * (os.getuid() == 0))
        path = os.environ["PATH"] + ":/usr/sbin"
        self.process = subprocess.Popen(["mosquitto", "-c", folder / "broker.conf"], env={**os.environ, "PATH": path},
                                        stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)

    def __enter__(self):
        return self

    def __exit__(self, *_):
        self.process.kill()
        self.process.wait()


class Members(unittest.TestCase):
    """One process of Python for each client; cloud and edges in threads of this one."""

    def play(self, spec, make_client, above=None, certified=False):
        with tempfile.TemporaryDirectory(prefix="hf") as folder:
            folder = pathlib.Path(folder)
            keys = folder / "keys" if certified else None
            if certified:
                for words in (["init"], ["issue", "cloud", "north", "south", *CLIENTS]):
                    subprocess.run([hfsad.program(), "keys", *words, "--dir", keys], check=True, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL)
            (folder / "secret").touch(0o600)
            (folder / "secret").write_text("0123456789abcdef")
            with Broker(folder, keys) as broker:
                common = {"broker": broker.url, "durability": "process", "linger": 0.5,
                          **({"keys": keys} if certified else {"secret": folder / "secret"})}
                nodes = "features 3\n" + "\n".join(CLIENTS) + "\n"
                inner = [hfsad.Edge(above or spec, name, nodes=nodes, state=folder / name, **common) for name in ("north", "south")]
                cloud = hfsad.Cloud(above or spec, nodes=nodes, state=folder / "cloud", out=folder / "out", **common)
                clients = [make_client(name, {"nodes": nodes, "state": folder / name.replace("/", "+"), **common}) for name in CLIENTS]
                members = [member for member in (cloud, *inner, *clients) if member]
                ends = {}

                def join(member):
                    try:
                        ends[member.name] = member.join()
                    except Exception as error:
                        ends[member.name] = error
                        for other in members:  # they would wait for it
                            other.cancel()

                threads = [threading.Thread(target=join, args=(member,)) for member in members]
                for thread in threads:
                    thread.start()
                for thread in threads:
                    thread.join()
                return ends

    def test_bits_of_a_run(self):
        ends = self.play(SPEC, lambda name, common: hfsad.Client(SPEC, name, data=rows(name), **common))
        np.testing.assert_array_equal(ends["cloud"].models.array, hfsad.run(SPEC, data()).models.array)
        self.assertEqual({ends[name] for name in CLIENTS}, {"iterations"})

    def test_program_beside_python(self):
        """A client of the program among clients of Python: the same bits, by a secret and with certificates over TLS."""
        for certified in (False, True):
            self.beside(certified)

    def beside(self, certified):
        processes = []

        def make(name, common):
            if name != "south/d":
                return hfsad.Client(SPEC, name, data=rows(name), **common)
            folder = common["state"].parent
            command = hfsad.Spec(SPEC)._command(folder, hfsad.Data(*rows(name), clients=np.full(15, name)))
            (folder / "nodes").write_text(common["nodes"])
            processes.append(subprocess.Popen([hfsad.program(), "client", *command, f"--set=federation.nodes={folder}/nodes",
                                               f"--name={name}", f"--broker={common['broker']}", f"--state={common['state']}",
                                               f"--keys={common['keys']}" if certified else f"--secret={common['secret']}",
                                               "--log-level=error"]))
            return None

        ends = self.play(SPEC, make, certified=certified)
        self.assertEqual(processes[0].wait(60), 0)
        np.testing.assert_array_equal(ends["cloud"].models.array, hfsad.run(SPEC, data()).models.array)

    def test_own_loss(self):
        """Cloud and edges need not have the loss."""

        def cauchy(w, X, y, weight):
            r = X @ w - y
            return weight @ np.log1p(r**2 / 2), X.T @ (weight * r / (1 + r**2 / 2))

        spec = {**SPEC, "loss": hfsad.Loss(cauchy)}
        ends = self.play(spec, lambda name, common: hfsad.Client(spec, name, data=rows(name), **common), {**SPEC, "loss": {"kind": "own"}})
        np.testing.assert_array_equal(ends["cloud"].models.array, hfsad.run(spec, data()).models.array)

    def test_exception_of_a_loss(self):
        def odd(w, X, y, weight):
            raise ZeroDivisionError("odd")

        spec = {**SPEC, "loss": hfsad.Loss(odd)}
        ends = self.play(spec, lambda name, common: hfsad.Client(spec, name, data=rows(name), **common), {**SPEC, "loss": {"kind": "own"}})
        self.assertIn(ZeroDivisionError, {type(end) for end in ends.values()})

    def test_refusals(self):
        with tempfile.TemporaryDirectory() as folder:
            for sentence, client in [
                ("no loss was supplied", hfsad.Client({"loss": {"kind": "own"}}, "north/a", data=rows("north/a"), nodes=CLIENTS, state=folder)),
                ("no client west/z", hfsad.Client(SPEC, "west/z", data=rows("north/a"), nodes=CLIENTS, state=folder)),
                ("unencrypted", hfsad.Client(SPEC, "north/a", data=rows("north/a"), nodes=CLIENTS, state=folder, broker="mqtt://example.org")),
            ]:
                with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                    client.join()

    def test_cancel(self):
        with tempfile.TemporaryDirectory() as folder:
            client = hfsad.Client(SPEC, "north/a", data=rows("north/a"), nodes=CLIENTS, state=pathlib.Path(folder) / "s",
                                  broker="unix:///nowhere")
            threading.Timer(0.2, client.cancel).start()
            self.assertEqual(client.join(), "interrupted")


class Up(unittest.TestCase):
    def test_bits_of_a_run(self):
        np.testing.assert_array_equal(hfsad.Federation(SPEC, data()).up().models.array, hfsad.run(SPEC, data()).models.array)

    def test_killed_client(self):
        federation = hfsad.Federation({**SPEC, "run.iterations": 60}, data(), processes=True).start()
        end = time.monotonic() + 30
        while len(first := federation.processes()) < 8 and time.monotonic() < end:
            time.sleep(0.02)
        os.kill(first["client north/b"], signal.SIGKILL)
        result = federation.wait()
        self.assertEqual({name for name in first if name.startswith("client")}, {f"client {name}" for name in CLIENTS})
        np.testing.assert_array_equal(result.models.array, hfsad.run({**SPEC, "run.iterations": 60}, data()).models.array)

    def test_errors(self):
        with self.assertRaisesRegex(ValueError, "this loss takes the labels"):
            hfsad.Federation({"loss": "hinge"}, data()).up()
        with self.assertRaisesRegex(ValueError, "hfsad.Client"):
            hfsad.Federation({"loss": hfsad.Loss(lambda *_: (0, 0))}, data())


if __name__ == "__main__":
    unittest.main()
