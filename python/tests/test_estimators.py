"""Estimators: scikit-learn's own checks, and its own estimators as judges of the objective."""
import os, pickle, unittest, warnings

os.environ.setdefault("OMP_NUM_THREADS", "1")
import numpy as np
import scipy.optimize, scipy.sparse
from sklearn import datasets, linear_model, svm
from sklearn.base import clone
from sklearn.exceptions import ConvergenceWarning
from sklearn.model_selection import GridSearchCV
from sklearn.pipeline import make_pipeline
from sklearn.preprocessing import StandardScaler
from sklearn.utils.estimator_checks import check_estimator

import hfsad

DIABETES = datasets.load_diabetes(return_X_y=True)
CANCER = datasets.load_breast_cancer(return_X_y=True)
WINE = datasets.load_wine(return_X_y=True)
BY_THE_CLASS = (StandardScaler().fit_transform(CANCER[0]), CANCER[1])
WEIGHT = np.random.default_rng(5).uniform(0.2, 3, len(DIABETES[1]))


def pinball(r, tau):
    return np.where(r >= 0, tau * r, (tau - 1) * r)


def quantile_objective(m, X, y, weight):
    return np.average(pinball(y - m.predict(X), m.quantile), weights=weight) + m.alpha * np.abs(m.coef_).sum()


def huber_objective(m, X, y, weight):
    z = np.abs(y - m.predict(X)) / m.scale_
    weight = np.ones(len(y)) if weight is None else weight
    each = 1 + np.where(z < m.epsilon, z**2, 2 * m.epsilon * z - m.epsilon**2)
    return m.scale_ * (weight @ each) + m.alpha * (m.coef_ @ m.coef_)


def poisson_objective(m, X, y, weight):
    s = np.log(m.predict(X))
    return np.average(np.exp(s) - y * s, weights=weight) + m.alpha / 2 * (m.coef_ @ m.coef_)


def squares_objective(m, X, y, weight):
    return np.average((y - m.predict(X)) ** 2, weights=weight)


def classifier_objective(m, X, y, weight):
    """Added up over the problems of one class against the rest."""
    classes = np.unique(y)
    total = 0.0
    for k, (w, b) in enumerate(zip(m.coef_, m.intercept_)):
        margin = np.where(y == classes[k if len(m.coef_) > 1 else 1], 1, -1) * (X @ w + b)
        hinge = np.maximum(0, 1 - margin)
        loss = getattr(m, "loss", None)
        each = hinge if loss == "hinge" else hinge**2 if loss else np.logaddexp(0, -margin)
        rho = {"l1": 1, "l2": 0, "elasticnet": getattr(m, "l1_ratio", None)}.get(m.penalty)
        if loss or m.solver == "liblinear":
            w = np.append(w, b / m.intercept_scaling) if m.fit_intercept else w
        penalty = 0 if rho is None else rho * np.abs(w).sum() + (1 - rho) / 2 * (w @ w)
        total += m.C * np.average(each, weights=weight) * (len(y) if weight is None else weight.sum()) + penalty
    return total


def multinomial_objective(m, X, y, weight):
    s, W = X @ m.coef_.T + m.intercept_, m.coef_
    each = np.logaddexp.reduce(s, axis=1) - s[np.arange(len(y)), y]
    rho = {"l2": 0.0, "l1": 1.0, "elasticnet": m.l1_ratio}[m.penalty]
    return m.C * (each if weight is None else weight * each).sum() + rho * np.abs(W).sum() + (1 - rho) / 2 * (W**2).sum()


THREE = (StandardScaler().fit_transform(WINE[0]), WINE[1])
# name, parameters, data, objective, parameters of scikit-learn that bring it to its own optimum
PAIRS = [
    ("QuantileRegressor", {"quantile": 0.3, "alpha": 0.01, "solver": "highs"}, DIABETES, quantile_objective, {}),
    ("QuantileRegressor", {"quantile": 0.8, "alpha": 0, "fit_intercept": False, "solver": "highs"}, DIABETES, quantile_objective, {}),
    ("HuberRegressor", {}, DIABETES, huber_objective, {"max_iter": 10000, "tol": 1e-8}),
    ("HuberRegressor", {"epsilon": 2, "alpha": 3.0}, DIABETES, huber_objective, {"max_iter": 10000, "tol": 1e-8}),
    ("LinearRegression", {}, DIABETES, squares_objective, {}),
    ("PoissonRegressor", {"alpha": 0.5}, DIABETES, poisson_objective, {"max_iter": 10000, "tol": 1e-9}),
    ("LogisticRegression", {"C": 0.5}, BY_THE_CLASS, classifier_objective, {"max_iter": 10000, "tol": 1e-10}),
    ("LogisticRegression", {"penalty": "l1", "solver": "liblinear"}, BY_THE_CLASS, classifier_objective, {"max_iter": 10000, "tol": 1e-10}),
    ("LogisticRegression", {"penalty": "elasticnet", "l1_ratio": 0.4, "C": 0.1, "solver": "saga"}, BY_THE_CLASS, classifier_objective,
     {"max_iter": 10000, "tol": 1e-9}),
    ("LogisticRegression", {"multi_class": "ovr", "class_weight": "balanced"}, (StandardScaler().fit_transform(WINE[0]), WINE[1]), None,
     {"max_iter": 10000, "tol": 1e-10}),
    ("LogisticRegression", {"multi_class": "multinomial", "class_weight": "balanced", "C": 0.1}, THREE, None, {"max_iter": 10000, "tol": 1e-10}),
    ("LogisticRegression", {"C": 2.0}, THREE, multinomial_objective, {"max_iter": 10000, "tol": 1e-10}),
    ("LogisticRegression", {"C": 0.2, "fit_intercept": False}, THREE, multinomial_objective, {"max_iter": 10000, "tol": 1e-10}),
    ("LogisticRegression", {"penalty": "l1", "C": 0.3, "solver": "saga"}, THREE, multinomial_objective, {"max_iter": 20000, "tol": 1e-10}),
    ("LogisticRegression", {"penalty": "elasticnet", "l1_ratio": 0.4, "C": 0.3, "solver": "saga"}, THREE, multinomial_objective,
     {"max_iter": 20000, "tol": 1e-10}),
    ("LinearSVC", {}, BY_THE_CLASS, classifier_objective, {"max_iter": 200000, "tol": 1e-9, "dual": False}),
    ("LinearSVC", {"penalty": "l1", "C": 0.3, "dual": False}, BY_THE_CLASS, classifier_objective, {"max_iter": 200000, "tol": 1e-9}),
    ("LinearSVC", {"loss": "hinge", "C": 0.1}, BY_THE_CLASS, classifier_objective, {"max_iter": 200000, "tol": 1e-9}),
]
JUDGES = {name: getattr(linear_model, name, None) or getattr(svm, name) for name, *_ in PAIRS}


class SameObjective(unittest.TestCase):
    def test_pairs(self):
        for name, parameters, (X, y), objective, more in PAIRS:
            for weight in (None, WEIGHT[:len(y)] if len(y) <= len(WEIGHT) else None):
                with self.subTest(name=name, weighted=weight is not None, **parameters), warnings.catch_warnings():
                    warnings.simplefilter("ignore", ConvergenceWarning)
                    mine = getattr(hfsad, name)(**parameters).fit(X, y, sample_weight=weight)
                    judge = JUDGES[name](**{**parameters, **more}).fit(X, y, sample_weight=weight)
                    if objective is None:  # class weights: the models themselves
                        np.testing.assert_allclose(mine.coef_, judge.coef_, atol=1e-3)
                        continue
                    found, best = (objective(m, X, y, weight) for m in (mine, judge))
                    self.assertLess(found, best + 1e-6 * abs(best))
                    self.assertGreater(found, best - 1e-4 * abs(best), "scikit-learn is far from the optimum, or this is another objective")
                    self.assertEqual(mine.certificate_.kind, "converged")


class SeveralQuantiles(unittest.TestCase):
    def test_no_crossing(self):
        """Each is the model of its own level; predictions far outside, where the planes cross, do not."""
        X, y = DIABETES
        levels = [0.1, 0.5, 0.9]
        model = hfsad.QuantileRegressor(quantile=levels, alpha=0.001).fit(X, y)
        for row, level in zip(model.coef_, levels):
            np.testing.assert_allclose(row, hfsad.QuantileRegressor(quantile=level, alpha=0.001).fit(X, y).coef_, atol=1e-6)
        far = 20 * X
        planes = far @ model.coef_.T + model.intercept_
        self.assertTrue((np.diff(planes, axis=1) < 0).any(), "nothing to see here: the planes do not cross")
        self.assertTrue((np.diff(model.predict(far), axis=1) >= 0).all())
        np.testing.assert_allclose((y[:, None] <= model.predict(X)).mean(axis=0), levels, atol=0.03)
        with self.assertRaisesRegex(ValueError, "list of levels that rise"):
            hfsad.QuantileRegressor(quantile=[0.5, 0.1]).fit(X, y)


class SeveralClasses(unittest.TestCase):
    def test_probabilities(self):
        """Of three classes, of two in the form of three, and without a penalty: those of scikit-learn."""
        X, y = datasets.load_iris(return_X_y=True)
        for labels, parameters in ((y, {}), (y > 0, {"multi_class": "multinomial"}), (y, {"penalty": None}), (y, {"multi_class": "ovr"})):
            mine = hfsad.LogisticRegression(**parameters).fit(X, labels)
            judge = linear_model.LogisticRegression(**parameters, tol=1e-9, max_iter=100000).fit(X, labels)
            self.assertEqual((mine.coef_.shape, mine.intercept_.shape), (judge.coef_.shape, judge.intercept_.shape))
            np.testing.assert_allclose(mine.predict_proba(X), judge.predict_proba(X), atol=2e-4)
            np.testing.assert_array_equal(mine.predict(X), judge.predict(X))
        np.testing.assert_allclose(mine.coef_, judge.coef_, atol=1e-2)

    def test_clients_and_sparse(self):
        X, y = datasets.load_iris(return_X_y=True)
        whole = hfsad.LogisticRegression().fit(X, y)
        parts = hfsad.LogisticRegression().fit(scipy.sparse.csr_matrix(X), y, clients=np.arange(150) % 7)
        np.testing.assert_allclose(parts.coef_, whole.coef_, atol=1e-6)
        np.testing.assert_allclose(parts.client_coef_["3"][:, :-1], whole.coef_, atol=1e-6)
        with self.assertRaisesRegex(ValueError, "multinomial: only algorithm: star can train this"):
            hfsad.run({"loss": {"kind": "multinomial", "classes": 3}, "algorithm": "hfsad"}, (X, y))
        with self.assertRaisesRegex(ValueError, "row 101 of part1 has y = 2: the multinomial loss takes the classes 0, 1, ... below loss.classes"):
            hfsad.run({"loss": {"kind": "multinomial", "classes": 2}}, (X, y))


class Positive(unittest.TestCase):
    def test_against_nnls(self):
        """The model itself, because that of least squares is unique; some coefficients are at 0."""
        X, y = DIABETES
        for intercept in (True, False):
            for weight in (None, WEIGHT[:len(y)]):
                mine = hfsad.LinearRegression(positive=True, fit_intercept=intercept).fit(X, y, weight)
                judge = linear_model.LinearRegression(positive=True, fit_intercept=intercept).fit(X, y, weight)
                np.testing.assert_allclose(mine.coef_, judge.coef_, atol=1e-4)
                self.assertTrue((mine.coef_ >= 0).all() and (mine.coef_ == 0).any())
                self.assertEqual(mine.certificate_.kind, "converged")

    def test_star(self):
        """Other losses and priors, with both metrics, against a quasi-Newton method in a box."""
        X, y = CANCER
        X, y = StandardScaler().fit_transform(X), np.where(y, 1.0, -1.0)
        for penalty, l1, ridge in (("l1", 3.0, 0.0), ("l2", 0.0, 3.0), ("none", 0.0, 0.0)):
            bounds = [(0, None)] * X.shape[1] + [(None, None)]

            def objective(w):
                s = X @ w[:-1] + w[-1]
                slope = -y / (1 + np.exp(y * s))
                return (np.logaddexp(0, -y * s).sum() + l1 * w[:-1].sum() + ridge / 2 * w[:-1] @ w[:-1],
                        np.append(X.T @ slope + l1 + ridge * w[:-1], slope.sum()))

            best = scipy.optimize.minimize(objective, np.zeros(X.shape[1] + 1), jac=True, bounds=bounds, method="L-BFGS-B",
                                           options={"ftol": 1e-15, "gtol": 1e-9, "maxiter": 5000}).fun
            for gap in (0.0, 1e-6):
                spec = {"loss": "logistic", "features": {"intercept": "global", "positive": True}, "prior.cloud.penalty": penalty,
                        "prior.edge.penalty": "none", "run.stop.gap": gap}
                if penalty != "none":
                    spec.update({"prior.cloud.lambda": 3.0, "prior.cloud.weight": 1.0})
                found = hfsad.run(spec, hfsad.Data(X, y, parts=3))
                w = found.models["cloud"]
                value = objective(w)[0]
                self.assertTrue((w[:-1] >= 0).all())
                self.assertEqual(found.verdict.kind, "converged")
                self.assertLess(value, best + max(gap, 1e-7) * best)
                self.assertLess(value - best, found.verdict.gap + 1e-8 * best, "the bound is none")
        with self.assertRaisesRegex(ValueError, "features.positive: only algorithm: star can train this"):
            hfsad.run({"loss": "squared", "algorithm": "hfsad", "features.positive": True}, (X, y))


class Conventions(unittest.TestCase):
    def test_check_estimator(self):
        for name in hfsad._ESTIMATORS:
            with self.subTest(name), warnings.catch_warnings():
                warnings.simplefilter("ignore")
                check_estimator(getattr(hfsad, name)())

    def test_pipeline_grid_search_clone_pickle(self):
        X, y = DIABETES
        search = GridSearchCV(make_pipeline(StandardScaler(), hfsad.QuantileRegressor()), {"quantileregressor__alpha": [0.01, 1.0]}, cv=3)
        search.fit(X, y)
        best = search.best_estimator_
        again = pickle.loads(pickle.dumps(best))
        np.testing.assert_array_equal(again.predict(X), best.predict(X))
        self.assertEqual(clone(best[-1]).get_params(), best[-1].get_params())
        self.assertIn("objective", again[-1].trace_)

    def test_data_frames(self):
        frame, y = datasets.load_diabetes(return_X_y=True, as_frame=True)
        pipe = make_pipeline(StandardScaler(), hfsad.LADRegressor()).set_output(transform="pandas").fit(frame, y)
        self.assertEqual(list(pipe[-1].feature_names_in_), list(frame.columns))
        with self.assertRaisesRegex(ValueError, "feature names should match"):
            pipe[-1].predict(frame[frame.columns[::-1]])

    def test_sparse(self):
        X, y = DIABETES
        X = np.where(np.abs(X) < 0.03, 0, X)
        for kind in (scipy.sparse.csr_matrix, scipy.sparse.csc_matrix, scipy.sparse.coo_matrix):
            np.testing.assert_allclose(hfsad.PoissonRegressor(alpha=0.1).fit(kind(X), y).coef_,
                                       hfsad.PoissonRegressor(alpha=0.1).fit(X, y).coef_, atol=1e-7)
        labels = y > 140
        np.testing.assert_allclose(hfsad.LinearSVC(loss="hinge").fit(scipy.sparse.csr_matrix(X), labels).coef_,
                                   hfsad.LinearSVC(loss="hinge").fit(X, labels).coef_, atol=1e-6)

    def test_clients(self):
        X, y = DIABETES
        clients, edges = np.arange(len(y)) % 6, np.where(np.arange(len(y)) % 6 < 3, "north", "south")
        split = hfsad.QuantileRegressor(alpha=0.01).fit(X, y, clients=clients, edges=edges)
        whole = hfsad.QuantileRegressor(alpha=0.01).fit(X, y)
        np.testing.assert_allclose(split.coef_, whole.coef_, atol=1e-6)
        self.assertEqual(set(split.client_coef_), {f"{'north' if i < 3 else 'south'}/{i}" for i in range(6)})
        np.testing.assert_allclose(split.predict(X, clients=clients, edges=edges), whole.predict(X), atol=1e-5)
        self.assertIsNone(whole.client_coef_)

    def test_groups(self):
        rng = np.random.default_rng(3)
        X, clients = rng.normal(size=(1200, 3)), np.repeat(np.arange(12), 100)
        w = np.where((clients < 10)[:, None], [1.0, 2, -1], [-3.0, 0, 2])
        y = (X * w).sum(axis=1) + 0.1 * rng.normal(size=1200)
        model = hfsad.LADRegressor(link="mcp").fit(X, y, clients=clients)
        self.assertEqual({name for name, group in model.groups_.items() if group}, {"10", "11"})
        self.assertLess(np.abs(y - model.predict(X, clients=clients)).mean(), 0.2)

    def test_positions_of_strided_arrays(self):
        X, y = DIABETES
        both = np.asfortranarray(np.hstack([X, X]))[:, ::2]
        np.testing.assert_allclose(hfsad.LADRegressor().fit(both[::-1], y[::-1]).predict(both),
                                   hfsad.LADRegressor().fit(both.copy(), y).predict(both), atol=1e-6)


class BadInput(unittest.TestCase):
    def test_sentences(self):
        X, y = DIABETES
        nan, text = X.copy(), X.astype(object)
        nan[3, 2], text[0, 0] = np.nan, "blue"
        model, count = hfsad.LADRegressor(), len(y)
        for sentence, call in [
            ("row 4: feature 3 of part1 is nan; expected a finite number", lambda: model.fit(nan, y)),
            ("could not convert string to float", lambda: model.fit(text, y)),
            ("Expected 2D array", lambda: model.fit(y, y)),
            ("y: 3 numbers for 442 rows", lambda: model.fit(X, y[:3])),
            ("row 1: the weight of a row is -1", lambda: model.fit(X, y, sample_weight=-np.ones(count))),
            ("clients: 2 labels for 442 rows", lambda: model.fit(X, y, clients=["a", "b"])),
            ("edges are given without clients", lambda: model.fit(X, y, edges=["a"] * count)),
            ("y has one class", lambda: hfsad.LogisticRegression().fit(X, np.ones(count))),
            ("Invalid parameter 'colour'", lambda: model.set_params(colour=1)),
            ("alpha: -1; expected a number of at least 0", lambda: hfsad.LADRegressor(alpha=-1).fit(X, y)),
            ("loss.tau", lambda: hfsad.QuantileRegressor(quantile=1.5).fit(X, y)),
            ("Input contains NaN", lambda: model.fit(X, np.full(count, np.nan))),
            ("the poisson loss takes", lambda: hfsad.PoissonRegressor().fit(X, -y)),
        ]:
            with self.subTest(sentence), self.assertRaisesRegex(ValueError, sentence):
                call()


if __name__ == "__main__":
    unittest.main()
