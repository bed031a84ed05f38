"""One step of a model: a forward pass, or forward, backward and optimizer."""

import contextlib
import math

from .errors import WorkerError, bad_request

PHASES = ("forward", "backward", "optimizer")
OPTIMIZERS = ("adamw", "sgd")


class Step:
    """Callable. Under a profiler its phases are ranges of these names."""

    def __init__(self, model, inputs, train=False, labels=None, options=None):
        self.model = model
        self.inputs = inputs
        self.train = train
        self.labels = labels or {}
        self.phase = None
        self.count = 0
        self.losses = []
        self.loss_kind = None
        self.options = options or {}
        self.optimizer = self._optimizer() if train else None
        self.before = checksum(model) if train and not _on_meta(model) else None

    @property
    def arguments(self):
        return {**self.inputs, **self.labels}

    def _optimizer(self):
        import torch

        name = self.options.get("optimizer", "adamw")
        if name not in OPTIMIZERS:
            raise bad_request(f"option optimizer {name!r}: one of {', '.join(OPTIMIZERS)}")
        rate = float(self.options.get("learning_rate", 1e-3))
        kind = torch.optim.AdamW if name == "adamw" else torch.optim.SGD
        return kind([p for p in self.model.parameters() if p.requires_grad], lr=rate)

    @contextlib.contextmanager
    def in_phase(self, name):
        from torch.profiler import record_function

        before, self.phase = self.phase, name
        try:
            with record_function(name):
                yield
        finally:
            self.phase = before

    def __call__(self, call=None):
        """Runs one step. call stands in for the model, compiled say."""
        import torch

        call = self.model if call is None else call
        self.count += 1
        if not self.train:
            self.model.eval()
            with torch.no_grad(), self.in_phase("forward"):
                return call(**self.inputs)
        self.model.train()
        with self.in_phase("forward"):
            out = call(**self.arguments)
            loss = self.loss(out)
        if not loss.requires_grad:
            raise WorkerError("tracer", "the loss does not depend on any parameter: there is nothing to train")
        with self.in_phase("backward"):
            loss.backward()
        with self.in_phase("optimizer"):
            self.optimizer.step()
            self.optimizer.zero_grad(set_to_none=True)
        self.losses.append(loss.detach())
        return out

    def loss(self, out):
        """The model's own loss; of a model that has none, the mean square of
        its first output, so that the backward pass is still real."""
        import torch

        loss = getattr(out, "loss", None)
        if isinstance(loss, torch.Tensor):
            self.loss_kind = "model"
            return loss if loss.dim() == 0 else loss.mean()
        self.loss_kind = "mean_square_of_output"
        return first_tensor(out).float().square().mean()

    def details(self):
        """For the result line: the losses, and whether training changed anything."""
        if not self.train or not self.count:
            return {}
        if _on_meta(self.model):
            return {"loss_kind": self.loss_kind}
        after = checksum(self.model)
        return {
            "loss": [float(x) for x in self.losses],
            "loss_kind": self.loss_kind,
            "loss_finite": all(math.isfinite(float(x)) for x in self.losses),
            "parameters": len(after),
            "parameters_changed": sum(a != b for a, b in zip(self.before, after, strict=True)),
        }


def first_tensor(out):
    import torch

    if isinstance(out, torch.Tensor):
        if out.is_floating_point():
            return out
    else:
        values = out.values() if hasattr(out, "values") else out if isinstance(out, (list, tuple)) else ()
        for value in values:
            found = first_tensor(value)
            if found is not None:
                return found
    return None


def checksum(model):
    """One number a parameter, enough to see that an update reached it."""
    import torch

    return [float(torch.sum(p.detach() * p.detach(), dtype=torch.float64)) for p in model.parameters()]


def _on_meta(model):
    return any(p.is_meta for p in model.parameters())
