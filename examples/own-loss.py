"""The loss of own-loss.c in Python: log(1 + r^2 / 2), on which an outlier has little influence; first in numpy, then in PyTorch.

    PYTHONPATH=build/python python3 examples/own-loss.py

PyTorch (Debian: python3-torch) needs no gradient by hand.
"""
import numpy as np

import hfsad


def cauchy(w, X, y, weight):
    r = X @ w - y
    return weight @ np.log1p(r**2 / 2), X.T @ (weight * r / (1 + r**2 / 2))


def cauchy_torch(w, X, y, weight):
    import torch

    at = torch.tensor(w, requires_grad=True)
    r = torch.tensor(X) @ at - torch.tensor(y)
    value = (torch.tensor(weight) * torch.log1p(r**2 / 2)).sum()
    value.backward()
    return value.item(), at.grad.numpy()


def main():
    rng = np.random.default_rng(1)
    truth = np.array([1.0, -2.0, 0.5])
    X = rng.normal(size=(300, 3))
    y = X @ truth + rng.standard_cauchy(300)
    data = hfsad.Data(X, y, clients=np.arange(300) % 10, truth=truth)
    losses = {"squared": "squared", "Cauchy in numpy": hfsad.Loss(cauchy)}
    try:
        import torch

        torch.set_num_threads(1)
        losses["Cauchy in PyTorch"] = hfsad.Loss(cauchy_torch)
    except ImportError:
        print("PyTorch is not installed: only the loss in numpy runs")
    for name, loss in losses.items():
        if isinstance(loss, hfsad.Loss):
            print(f"{name}: gradient against differences {loss.check(truth, X, y):.0e}")
        result = hfsad.run({"loss": loss, "run.iterations": 60}, data, progress=False)
        error = np.linalg.norm(result.coef - truth) / np.linalg.norm(truth)
        print(f"{name}: relative error {error:.3f}")


if __name__ == "__main__":
    main()
