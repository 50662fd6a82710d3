"""hfsad.run and what is around it: the program as the judge, callbacks, exceptions, threads, processes, memory."""
import gc, os, pathlib, pickle, signal, statistics, subprocess, sys, tempfile, threading, time, traceback, unittest

import numpy as np

import hfsad

RNG = np.random.default_rng(7)
X = RNG.normal(size=(300, 4))
Y = X @ [1.0, -2, 0.5, 3] + RNG.standard_t(2, size=300)
CLIENTS = np.array([f"client{i % 5}" for i in range(300)])
EDGES = np.array([f"edge{i % 5 // 3}" for i in range(300)])
SPEC = {"loss": {"kind": "quantile", "tau": 0.4}, "run": {"iterations": 400}, "features": {"intercept": "global"}}


def data(**more):
    return hfsad.Data(X, Y, clients=CLIENTS, edges=EDGES, **more)


class TheProgram(unittest.TestCase):
    """Rows in the order of a CSV file give the bytes of that file."""

    def test_same_bytes(self):
        with tempfile.TemporaryDirectory() as folder:
            folder = pathlib.Path(folder)
            with open(folder / "data.csv", "w") as file:
                file.write("edge,client,y,x1,x2,x3,x4\n")
                for edge, client, y, x in zip(EDGES, CLIENTS, Y, X):
                    file.write(",".join([edge, client, repr(float(y)), *(repr(float(v)) for v in x)]) + "\n")
            (folder / "spec.yaml").write_text("data: data.csv\nloss: {kind: quantile, tau: 0.4}\nrun: {iterations: 400}\n"
                                              "features: {intercept: global}\n")
            subprocess.run([os.environ["HFSAD"], "run", folder / "spec.yaml", "--out", folder / "out", "--quiet"], check=True)
            names = ["x1", "x2", "x3", "x4"]
            result = hfsad.run(SPEC, data(feature_names=names), out=folder / "mine", threads=1)
            result.save(folder / "saved")
            hfsad.run(folder / "spec.yaml", out=folder / "file")
            for mine in ("mine", "saved", "file"):
                for name in ("model.csv", "state.csv"):
                    self.assertEqual((folder / mine / name).read_bytes(), (folder / "out" / name).read_bytes(), f"{mine}/{name}")
            loaded = hfsad.load(folder / "out")
            np.testing.assert_array_equal(loaded.models.array, result.models.array)
            self.assertEqual(list(loaded.models), list(result.models))
            self.assertEqual(loaded.verdict.kind, "converged")

    def test_frame_and_file_names(self):
        import pandas

        frame = pandas.DataFrame({"edge": EDGES, "client": CLIENTS, "y": Y, **{f"x{i + 1}": X[:, i] for i in range(4)}})
        np.testing.assert_array_equal(hfsad.run(SPEC, frame).models.array, hfsad.run(SPEC, data()).models.array)


class Labels(unittest.TestCase):
    """0 and 1, and booleans, are -1 and 1; the caller's array stays as it is."""

    def test_same_models(self):
        truth = Y > 0
        digits = truth.astype(float)
        for algorithm in "star", "hfsad":
            spec = {"loss": "logistic", "prior": {"cloud": "l2"}, "algorithm": algorithm, "run": {"iterations": 5 if algorithm == "hfsad" else 300}}
            models = [hfsad.run(spec, (X, y)).models["cloud"] for y in (2 * digits - 1, digits, truth)]
            np.testing.assert_array_equal(models[0], models[1])
            np.testing.assert_array_equal(models[0], models[2])
        np.testing.assert_array_equal(digits, Y > 0)
        with self.assertRaisesRegex(ValueError, "y is 0 in row .* and -1 in row"):
            hfsad.run({"loss": "hinge"}, (X, np.sign(np.round(Y))))

    def test_text(self):
        with self.assertRaisesRegex(ValueError, "y: .*for text use codes by numpy.unique"):
            hfsad.Data(X, np.where(Y > 0, "yes", "no"))


class Specs(unittest.TestCase):
    def test_forms(self):
        spec = hfsad.Spec(SPEC, run={"seed": np.int64(3)}, **{"loss.tau": np.float32(0.25)})
        self.assertEqual((spec["run.seed"], spec["loss.tau"], spec["run.iterations"]), (3, 0.25, 400))
        self.assertEqual(pickle.loads(pickle.dumps(spec)), spec)
        overrides = [{"node": "edge0/client1", "loss": {"kind": "huber", "delta": 2}}]
        self.assertEqual(hfsad.run(hfsad.Spec(SPEC, overrides=overrides), data()).settings["run.iterations"], 400)

    def test_errors(self):
        for sentence, call in [
            ("did you mean 'run.iterations'", lambda: hfsad.Spec(run={"iteration": 1})),
            ("loss.tau", lambda: hfsad.Spec(loss={"kind": "quantile", "tau": 2.0})),
            ("the key 'data' is missing", lambda: hfsad.run({"loss": "absolute"})),
            ("y: 3 numbers for 300 rows", lambda: hfsad.Data(X, [1, 2, 3])),
            ("the data has no y", lambda: hfsad.run(SPEC, hfsad.Data(X))),
            ("the weight of a row of part1 is -1", lambda: hfsad.run(SPEC, hfsad.Data(X, Y, weight=-np.ones(300)))),
            ("the hinge loss takes the labels", lambda: hfsad.run({"loss": "hinge"}, (X, Y))),
            ("clients: 2 labels for 300 rows", lambda: hfsad.Data(X, Y, clients=[1, 2])),
            ('model: "boss"; expected one of', lambda: hfsad.run(SPEC, data()).predict(X, model="boss")),
            ("has no column client", lambda: hfsad.Data.from_frame(__import__("pandas").DataFrame({"y": [1.0]}))),
        ]:
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                call()
        with self.assertRaises((OSError, ValueError)):
            hfsad.load("/no/such/folder")


class Use(unittest.TestCase):
    def test_predict_evaluate_compare_path_plot(self):
        result = hfsad.run(SPEC, data())
        np.testing.assert_allclose(result.predict(X), X @ result.coef + result.intercept, atol=1e-12)
        own = result.predict(X, clients=CLIENTS, edges=EDGES, model="client")
        model = result.models["edge0/client0"]
        np.testing.assert_allclose(own[0], X[0] @ model[:-1] + model[-1], atol=1e-12)
        figures = result.evaluate(data())
        self.assertEqual(list(figures["node"])[0], "cloud")
        r = Y - result.predict(X, clients=CLIENTS, edges=EDGES)
        self.assertAlmostEqual(figures["loss"][0], np.where(r >= 0, 0.4 * r, -0.6 * r).mean(), places=12)
        table = result.compare()
        self.assertEqual(list(table["algorithm"]), ["auto", "fedavg", "fedprox"])
        spec = {"loss": "squared", "prior.cloud.penalty": "l1", "run.iterations": 30}
        path = hfsad.run(spec, data()).path(n_lambdas=4, select="bic")
        self.assertEqual(path.models.shape, (4, 4))
        self.assertEqual(list(path.points["converged"]), [True] * 4)
        self.assertTrue(all(g <= 1e-4 * f for g, f in zip(path.points["gap_bound"], path.points["objective"])))
        np.testing.assert_allclose(path.result().coef, path.models[path.chosen], atol=1e-6)
        self.assertEqual(len(result.plot("trace").lines), 1)
        result.plot("models")

    def test_warm_start(self):
        spec = {"loss": "huber", "run.iterations": 60, "run.polish": False}
        cold = hfsad.run(spec, data())
        warm = hfsad.run(spec, data(), warm_start=cold)
        self.assertLess(warm.trace["consensus_objective"][0], cold.trace["consensus_objective"][0])

    def test_callback_ends_the_run(self):
        seen = []

        def callback(p):
            seen.append(p.iteration)
            return p.iteration < 5

        result = hfsad.run({**SPEC, "run.polish": False}, data(), callback=callback)
        self.assertEqual((seen, result.stop), ([0, 1, 2, 3, 4, 5], "interrupted"))

    def test_exception_of_the_callback(self):
        class Odd(Exception):
            pass

        def callback(p):
            raise Odd(p.iteration)

        with self.assertRaises(Odd):
            hfsad.run(SPEC, data(), callback=callback)

    def test_interrupt(self):
        """Ctrl-C ends the training, writes the results so far, and is seen by the caller."""
        signal.signal(signal.SIGINT, signal.default_int_handler)  # a job in the background is started with SIGINT ignored
        with tempfile.TemporaryDirectory() as folder:
            timer = threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGINT))
            timer.start()
            with self.assertRaises(KeyboardInterrupt) as caught:
                hfsad.run({"loss": "quantile", "algorithm": "hfsad", "run.iterations": 10**8, "run.trace_every": 10}, data(), out=folder)
            self.assertEqual(caught.exception.result.stop, "interrupted")
            self.assertEqual(list(hfsad.load(folder).models), list(caught.exception.result.models))

    def test_progress(self):
        code = ("import sys, numpy as np, hfsad\n"
                "if sys.argv[1:]: sys.modules['tqdm'] = None\n"
                "hfsad.run({'loss': 'absolute'}, (np.eye(3), [1., 2, 3]), progress=True)\n")
        for arguments in ([], ["without"]):
            told = subprocess.run([sys.executable, "-c", code, *arguments], capture_output=True, text=True, check=True).stderr
            self.assertIn("hfsad", told)


class StandardErrors(unittest.TestCase):
    def test_by_definition(self):
        """HC0 of least squares; Powell's sandwich of a quantile, whose bandwidth has another interpolation of quartiles here."""
        ones = np.column_stack([X, np.ones(300)])
        for loss, tau in (("squared", 0), ("quantile", 0.3)):
            spec = {"loss": {"kind": loss, "tau": tau or 0.5}, "features.intercept": "global", "run.stop.gap": 0, "output.errors": True}
            with tempfile.TemporaryDirectory() as folder:
                result = hfsad.run(spec, data(), out=folder)
                np.testing.assert_array_equal(hfsad.load(folder).standard_errors, result.standard_errors)
            u = Y - ones @ result.models["cloud"]
            bend, slope2 = np.ones(300), u**2
            if tau:
                law = statistics.NormalDist()
                x, z = law.inv_cdf(tau), law.inv_cdf(0.975)
                h = (z**2 * 1.5 * law.pdf(x) ** 2 / (2 * x**2 + 1) / 300) ** (1 / 3)
                width = law.inv_cdf(tau + h) - law.inv_cdf(tau - h)
                width *= min(u.std(ddof=1), (np.quantile(u, 0.75) - np.quantile(u, 0.25)) / 1.34)
                bend, slope2 = np.exp(-((u / width) ** 2) / 2) / (width * np.sqrt(2 * np.pi)), np.full(300, tau * (1 - tau))
            inverse = np.linalg.inv(ones.T @ (bend[:, None] * ones))
            want = np.sqrt(np.diag(inverse @ (ones.T @ (slope2[:, None] * ones)) @ inverse))
            np.testing.assert_allclose(result.standard_errors, want, rtol=2e-2 if tau else 1e-8)
            np.testing.assert_allclose(np.diff(result.conf_int(0.9)).ravel(), 2 * 1.6448536269514722 * result.standard_errors)
        with self.assertRaisesRegex(ValueError, "set output.errors"):
            hfsad.run(SPEC, data()).conf_int()


class OwnLoss(unittest.TestCase):
    def test_against_the_built_in(self):
        """The squared loss by its gradient and by its prox, as callables, against the library's."""

        def gradient(w, X, y, weight):
            r = X @ w - y
            return weight @ r**2 / 2, X.T @ (weight * r)

        def prox(v, sigma, X, y, weight):
            return np.linalg.solve(X.T @ (weight[:, None] * X) + sigma * np.eye(len(v)), X.T @ (weight * y) + sigma * v)

        weight = np.random.default_rng(1).uniform(0.5, 2, 300)
        judge = hfsad.run({"loss": "squared", "features.intercept": "global", "run.stop.gap": 0}, data(weight=weight))
        for loss in (hfsad.Loss(gradient), hfsad.Loss(value=lambda *a: gradient(*a)[0], prox=prox)):
            own = hfsad.run({"loss": loss, "features.intercept": "global", "run.iterations": 300}, data(weight=weight))
            np.testing.assert_allclose(own.models["cloud"], judge.models["cloud"], atol=2e-3)
        self.assertLess(hfsad.Loss(gradient).check(np.ones(4), X, Y), 1e-6)

    def test_exceptions_come_out(self):
        class Odd(Exception):
            pass

        def late(w, X, y, weight, calls=[]):
            calls.append(1)
            if len(calls) > 50:
                raise Odd("late")
            r = X @ w - y
            return r @ r, 2 * X.T @ r

        def at_once(*_):
            raise Odd("at once")

        for function in (late, at_once):
            try:
                hfsad.run({"loss": hfsad.Loss(function)}, data())
                self.fail("no exception")
            except Odd as odd:
                self.assertIn(function.__name__, "".join(traceback.format_tb(odd.__traceback__)))
        for sentence, function in [("shape", lambda w, X, y, weight: (0.0, w[:2])), ("not finite", lambda w, X, y, weight: (0.0, w * np.nan)),
                                   ("the value is nan", lambda w, X, y, weight: (np.nan, w))]:
            with self.assertRaisesRegex(ValueError, sentence):
                hfsad.run({"loss": hfsad.Loss(function)}, data())

    def test_path(self):
        def gradient(w, X, y, weight):
            r = X @ w - y
            return weight @ r**2 / 2, X.T @ (weight * r)

        with self.assertRaisesRegex(ZeroDivisionError, "division"):
            hfsad.path({"loss": hfsad.Loss(lambda *a: (1 / 0, 0)), "prior.cloud.penalty": "l1"}, data(), lambdas=[2.0, 1.0])
        found = hfsad.path({"loss": hfsad.Loss(gradient), "prior.cloud.penalty": "l1", "run.iterations": 30}, data(), lambdas=[20.0, 1.0])
        self.assertEqual(found.models.shape, (2, 4))


class ThreadsAndProcesses(unittest.TestCase):
    def fit(self):
        return hfsad.run({**SPEC, "run.iterations": 100}, data()).models.array.tobytes()

    def test_the_interpreter_is_free_meanwhile(self):
        count, done = [0], threading.Event()

        def work():
            while not done.is_set():
                count[0] += 1
                time.sleep(0.001)

        thread = threading.Thread(target=work)
        thread.start()
        hfsad.run({"loss": "absolute", "run.iterations": 400, "run.polish": False, "run.trace_every": 400}, data(), threads=1)
        done.set()
        thread.join()
        self.assertGreater(count[0], 5)

    def test_threads_give_the_bits_of_turns(self):
        expected, found = self.fit(), []
        threads = [threading.Thread(target=lambda: found.append(self.fit())) for _ in range(4)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        self.assertEqual(found, [expected] * 4)

    def test_a_handle_is_one_threads(self):
        result = hfsad.run({**SPEC, "run.polish": False}, data())
        run, refused = result._run, []

        def callback(_):
            try:
                run.take()
            except RuntimeError as error:
                refused.append(str(error))
            return False

        again = hfsad._core.Run(hfsad.Spec(SPEC)._make(), data()._core, 1, None)
        run = again
        again.train(callback)
        self.assertIn("in use by another thread", refused[0])

    def test_fork(self):
        kept = hfsad.run(SPEC, data())
        expected = self.fit()
        child = os.fork()
        if child == 0:
            status = 1
            try:
                status = 0 if self.fit() == expected else 2
                try:
                    kept.save("nowhere")
                    status = 3
                except RuntimeError:
                    pass
                del kept
            finally:
                os._exit(status)
        self.assertEqual(os.waitstatus_to_exitcode(os.waitpid(child, 0)[1]), 0)
        self.assertEqual(self.fit(), expected)


class Memory(unittest.TestCase):
    def resident(self):
        with open("/proc/self/statm") as file:
            return int(file.read().split()[1]) * os.sysconf("SC_PAGESIZE")

    def test_no_growth(self):
        """Fits, errors, callbacks and own losses leave nothing behind: no memory, and no block of Python's
        allocator. HFSAD_FITS=1000 for the long version."""

        def gradient(w, X, y, weight):
            r = X @ w - y
            return r @ r, 2 * X.T @ r

        def odd(*_):
            raise ZeroDivisionError

        def once():
            hfsad.run({"loss": "absolute", "run.iterations": 3}, data(), threads=2, callback=lambda p: None)
            hfsad.run({"loss": hfsad.Loss(gradient), "run.iterations": 2}, data(), threads=2)
            hfsad.LADRegressor().fit(X[:60], Y[:60])
            hfsad.LogisticRegression().fit(X[:60], Y[:60] > 0).predict(X)
            for wrong in ({"loss": hfsad.Loss(odd)}, {"loss": "hinge"}, {"loss": {"kind": "quantile", "tau": 3}}):
                with self.assertRaises((ZeroDivisionError, ValueError)):
                    hfsad.run(wrong, data(), threads=2)

        fits = int(os.environ.get("HFSAD_FITS", "150"))
        for _ in range(max(30, fits // 4)):
            once()
        # Arenas of the allocators come and go: the lowest of a few figures counts. A cache that fills grows in one
        # stretch, a leak in every one.
        for _ in range(3):
            resident, blocks = [], []
            for _ in range(10):
                for _ in range(fits // 10):
                    once()
                gc.collect()
                resident.append(self.resident())
                blocks.append(sys.getallocatedblocks())
            grown, kept = (min(of[5:]) - min(of[:5]) for of in (resident, blocks))
            print(f"{fits} rounds: {grown / 1024:.0f} KiB of memory and {kept} blocks of Python more", file=sys.stderr)
            if grown < 2 << 20 and kept < fits:
                break
        else:
            self.fail(f"{grown} bytes and {kept} blocks more after {fits} rounds, three times in a row")

    def test_rows_are_borrowed(self):
        """A fit on contiguous rows keeps no copy of X: a few numbers for each row, here of 50. bench/python asserts it on 1 GB."""
        code = ("import numpy as np, resource, hfsad\n"
                "X = np.random.default_rng(0).normal(size=(100000, 50)); y = X @ np.ones(50)\n"
                "model = hfsad.LinearRegression().fit(X[:100], y[:100])\n"
                "before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss\n"
                "model.fit(X, y)\n"
                "print((resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024 / X.nbytes)\n")
        told = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True).stdout
        self.assertLess(float(told), 0.3)


if __name__ == "__main__":
    unittest.main()
