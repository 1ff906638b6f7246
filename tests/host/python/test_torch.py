# SPDX-License-Identifier: Apache-2.0
"""Models as state dicts and back: their tensors, and bench/torch_twin.py, the network in PyTorch."""
import copy
import importlib.util
import os
import pickle
import subprocess
import sys
import unittest

import numpy as np
import pointsman
from pointsman import _core
from program import FolderTest, ROOT

try:
    import torch
    torch.zeros(1).numpy()  # some are built for another numpy
    torch.set_num_threads(1)
except (ImportError, RuntimeError):
    torch = None


class Tensors(FolderTest):

    def write(self, change=lambda metadata, tensors: None, model="tsp20"):
        metadata, tensors = _core.read_tensors(model)
        change(metadata, tensors)
        path = self.folder / "model.safetensors"
        _core.write_tensors(str(path), metadata, tensors, True)
        return path

    def test_there_and_back(self):
        for model in ("tsp20", "knap50"):
            path = self.write(model=model)
            before, after = _core.read_tensors(model), _core.read_tensors(str(path))
            before[0].pop("version"), after[0].pop("version")
            self.assertEqual(before[0], after[0])
            self.assertEqual(list(before[1]), list(after[1]))
            for name in before[1]:
                np.testing.assert_array_equal(before[1][name], after[1][name])
        instances = pointsman.generate("knapsack", 50, 2)
        self.assertEqual(
            pointsman.solve(instances, model=path, mode="greedy").log_prob.tolist(),
            pointsman.solve(instances, model="knap50", mode="greedy").log_prob.tolist())

    def test_what_a_model_file_would_not_hold(self):
        weight = "actor.pointer.w_q"

        def leave_out(_, tensors):
            del tensors[weight]

        def add(_, tensors):
            tensors["actor.other"] = np.zeros(3, "f4")

        def reshape(_, tensors):
            tensors[weight] = np.zeros((128, 127), "f4")

        def spoil(_, tensors):
            tensors[weight][3, 5] = np.nan

        def rename(metadata, _):
            metadata["problem"] = "tps"

        for change, text in ((leave_out, f'"{weight}": expected this tensor, found none'),
                             (add, '"actor.other": expected no such tensor'), (reshape,
                                                                               "expected shape [128, 128]"),
                             (spoil, "element 389: expected a finite weight"), (rename,
                                                                                'metadata "problem"')):
            with self.subTest(text):
                with self.assertRaises(pointsman.InputError) as caught:
                    self.write(change)
                self.assertIn(text, str(caught.exception))
                self.assertFalse((self.folder / "model.safetensors").exists())


@unittest.skipIf(torch is None, "no PyTorch here")
class Torch(FolderTest):

    def twin(self, path):
        spec = importlib.util.spec_from_file_location("torch_twin", ROOT / "bench/torch_twin.py")
        module = importlib.util.module_from_spec(spec)
        spec.loader.exec_module(module)
        return module, module.Twin(path)

    def test_the_twins_tensors(self):
        for model in ("tsp20", "tsp50"):
            state_dict = pointsman.to_torch(model)
            _, twin = self.twin(_core.find_model(model))
            self.assertEqual(set(state_dict), set(twin.original))
            for name, tensor in state_dict.items():
                self.assertTrue(torch.equal(tensor, twin.original[name]), name)
            self.assertEqual(state_dict.metadata["clip"], twin.metadata["clip"])

    def test_the_twins_answers(self):
        random = np.random.RandomState(5)
        state_dict = pointsman.to_torch("tsp20")
        for tensor in state_dict.values():  # a network that no file holds yet
            tensor += torch.from_numpy(random.normal(scale=1e-3, size=tuple(tensor.shape)).astype("f4"))
        path = self.folder / "mine.safetensors"
        pointsman.from_torch(state_dict, path, clip=9.5)
        module, twin = self.twin(path)
        points = random.random_sample((100, 20, 2)).astype("f4")
        result = pointsman.solve(points, model=path, mode="greedy")
        with torch.no_grad():
            forced = module.forced_choice(torch.from_numpy(result.tours).long())
            _, log_p = twin.rollout(twin.actor, torch.from_numpy(points), forced)
            free, _ = twin.rollout(twin.actor, torch.from_numpy(points), module.greedy_choice)
        np.testing.assert_allclose(result.log_prob, log_p.numpy(), rtol=1e-3, atol=1e-3)
        self.assertGreaterEqual((free.numpy() == result.tours).all(1).sum(),
                                99)  # one may be a tie to the last bit

    def test_a_state_dict_of_ones_own(self):
        plain = dict(pointsman.to_torch("tsp20"))
        path = self.folder / "mine.safetensors"
        with self.assertRaisesRegex(pointsman.InputError, 'metadata "problem": expected a value'):
            pointsman.from_torch(plain, path)
        pointsman.from_torch(plain, path, problem="tsp", n=20, glimpses=1, clip=10.0, centre_logits=True)
        expected = pointsman.to_torch("tsp20").metadata
        for name in ("encoder", "layers", "heads", "feed_forward", "glimpses"):
            self.assertEqual(pointsman.to_torch(path).metadata[name], expected[name])
        with self.assertRaises(pointsman.UsageError):
            pointsman.from_torch(plain, path, like="tsp20")
        pointsman.from_torch(plain, path, like="tsp50", force=True)
        self.assertEqual(pointsman.to_torch(path).metadata["n"], "50")

    def test_a_copy_of_a_state_dict(self):
        state_dict = pointsman.to_torch("tsp20")
        for again in (copy.copy(state_dict), copy.deepcopy(state_dict), pickle.loads(pickle.dumps(state_dict))):
            self.assertEqual(again.metadata, state_dict.metadata)
            self.assertTrue(all(torch.equal(again[name], state_dict[name]) for name in state_dict))

    def test_tensors_as_points(self):
        points = torch.tensor([[0.0, 0], [4, 3], [0, 3], [4, 0]])
        costs = pointsman.solve(points.numpy()).costs
        for tensor in (points, points.half(), points.long()):
            np.testing.assert_array_equal(pointsman.solve(tensor).costs, costs)
        for tensor, found in ((points.bfloat16(), "Tensor of torch.bfloat16"), (points.clone().requires_grad_(), "requires grad")):
            with self.assertRaisesRegex(pointsman.ArgumentError, found) as caught:
                pointsman.solve(tensor)
            self.assertIn("pass .detach().cpu().float()", str(caught.exception))
            np.testing.assert_array_equal(pointsman.solve(tensor.detach().cpu().float()).costs, costs)

    def convert(self, *arguments):
        return subprocess.run([sys.executable, "-m", "pointsman", "convert", *map(str, arguments)],
                              stderr=subprocess.PIPE,
                              env={**os.environ, "PYTHONPATH": os.pathsep.join(sys.path[1:])})

    def test_convert(self):
        there, back = self.folder / "tsp20.pt", self.folder / "back.safetensors"
        self.assertEqual(self.convert("tsp20", there).returncode, 0)
        self.assertEqual(self.convert(there, back).returncode, 0)
        before, after = pointsman.to_torch("tsp20"), pointsman.to_torch(back)
        self.assertTrue(all(torch.equal(before[name], after[name]) for name in before))
        self.assertEqual({**before.metadata, "version": ""}, {**after.metadata, "version": ""})
        again = self.convert(there, back)
        self.assertEqual(again.returncode, 2)
        self.assertIn(b"back.safetensors", again.stderr)
        torch.save(dict(before), self.folder / "plain.pt")
        self.assertEqual(
            self.convert(self.folder / "plain.pt", back, "--like", "tsp20", "--force").returncode, 0)

    def check_refused(self, code, text, *arguments):
        done = self.convert(*arguments)
        lines = done.stderr.decode().splitlines()
        self.assertEqual((done.returncode, len(lines)), (code, 1), lines)
        self.assertIn("pointsman: error: ", lines[0])
        self.assertIn(text, lines[0])

    def test_convert_refuses(self):
        there, back = self.folder / "there.pt", self.folder / "back.safetensors"
        there.write_bytes(b"")
        self.check_refused(2, "there.pt: is there already", "tsp20", there)
        self.check_refused(3, "nosuch.pt: No such file", self.folder / "nosuch.pt", back)
        self.check_refused(3, "nosuch: expected a model", "nosuch", self.folder / "x.pt")
        tensors = dict(pointsman.to_torch("tsp20"))
        del tensors["actor.pointer.w_q"]
        for name, saved in (("module", torch.nn.Linear(2, 2)), ("list", [1, 2]), ("names", {1: torch.zeros(1)}),
                            ("state", {"state_dict": 5}), ("metadata", {"state_dict": {}, "metadata": 3}),
                            ("numbers", {"actor.pointer.w_q": 3}), ("tensors", tensors),
                            ("path", {"state_dict": tensors, "metadata": {"path": "x"}})):
            with self.subTest(name):
                torch.save(saved, there)
                self.check_refused(3, "", there, back, "--like", "tsp20")
        for junk in (b"", b"junk", b"PK\3\4junk", b"\x80\x02."):
            with self.subTest(junk):
                there.write_bytes(junk)
                self.check_refused(3, "there.pt: expected tensors", there, back)
        self.assertFalse(back.exists())


if __name__ == "__main__":
    unittest.main()
