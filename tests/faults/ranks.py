#!/usr/bin/env python3
# SPDX-License-Identifier: Apache-2.0
"""Ranks: several MPI processes give the bytes of one, and the death of one of them ends the run cleanly.

    python3 tests/faults/ranks.py BINARY [--kills N] [--ranks N ..] [--seed S] [--hosts] [--cuda FOLDER]    50, 1 to 4

With --hosts the ranks are shared out over two hosts: network namespaces that it makes, with a cable between them, and host
names of their own. That takes root.

1. `solve`, `eval`, `score` and `train` with N processes.
2. One rank is killed (SIGKILL) at a random time of a training: mpirun must end within 10 s with a code that is not 0, no
   file may be torn, and `--resume` with another number of ranks must give the bits of a run that
   nobody killed. Likewise for a stream of answers.
3. Ranks that train asynchronously make every step once. The death of one ends them all, and a signal keeps what they made.
4. A signal to one rank ends all of them within seconds, with what they have.
5. A rank without the MPI module ends with code 4, and so does one that fails by itself, named.
6. With --cuda, a folder with an emulated CUDA module and its driver: ranks train on devices where all of them have one.

Exit code 1 when anything of this does not hold, 77 where mpirun, the MPI module or a right is missing.
"""
import argparse
import contextlib
import hashlib
import json
import os
import pathlib
import random
import re
import shutil
import signal
import subprocess
import sys
import tempfile
import time

SKIPPED, MOST_SECONDS = 77, 10.0
MOST_SIGNAL_SECONDS = 3.0  # of which the launcher takes its part
TIMES = re.compile(r'"(seconds|ms_per_instance|tours_per_second|loading|solving)": ?[^,}\n]*')
TRAIN = ("train", "tsp", "-n", 8, "-b", 24, "-t", 1, "--device", "cpu", "--layers", 1, "--checkpoint-every", 5,
         "--validation-every", 50, "--checkpoint", "checkpoint", "-o", "model.safetensors", "-f")


# A shell on host $1 (a network namespace) for the other words: what a launcher uses ssh for.
HOST_SHELL = """#!/bin/bash
host=${1##*.}
shift
exec ip netns exec "$PREFIX$host" unshare --uts bash -c "hostname node$host; $*"
"""


class Hosts:
    """Two hosts, 10.77.0.1 and 10.77.0.2, as long as it is open."""

    def __init__(self, folder):
        self.prefix, self.shell = f"pm{os.getpid()}-", folder / "host_shell"
        self.shell.write_text(HOST_SHELL.replace("$PREFIX", self.prefix))
        self.shell.chmod(0o755)

    def ip(self, *words):
        subprocess.run(["ip", *words], check=True, capture_output=True)

    def __enter__(self):
        try:
            self.lay_cable()
        except (OSError, subprocess.CalledProcessError):
            self.__exit__()
            raise
        return self

    def lay_cable(self):
        for host in "12":
            self.ip("netns", "add", self.prefix + host)
        self.ip("link", "add", "cable1", "netns", self.prefix + "1", "type", "veth",
                "peer", "name", "cable2", "netns", self.prefix + "2")
        for host in "12":
            self.ip("-n", self.prefix + host, "addr", "add", f"10.77.0.{host}/24", "dev", "cable" + host)
            for device in ("lo", "cable" + host):
                self.ip("-n", self.prefix + host, "link", "set", device, "up")
            subprocess.run([self.shell, host, "true"], check=True, capture_output=True)

    def __exit__(self, *_):
        for host in "12":
            subprocess.run(["ip", "netns", "delete", self.prefix + host], check=False, capture_output=True)

    def mpirun(self, count):
        """mpirun on the first host; rank i is on host 1 + i % 2."""
        return ["ip", "netns", "exec", self.prefix + "1", "unshare", "--uts", "bash", "-c", 'hostname node1; exec "$@"', "-",
                "mpirun", "--mca", "plm_rsh_agent", str(self.shell), "--host", "10.77.0.1:8,10.77.0.2:8",
                "--map-by", "node", "-n", str(count)]


class Ranks:
    def __init__(self, binary, folder, counts, hosts=None):
        self.binary, self.folder, self.counts, self.hosts, self.wrong = str(binary), folder, counts, hosts, []
        # As root, on few cores, and without a network that a container does not have.
        self.environment = dict(os.environ, OMPI_ALLOW_RUN_AS_ROOT="1", OMPI_ALLOW_RUN_AS_ROOT_CONFIRM="1",
                                OMPI_MCA_rmaps_base_oversubscribe="1", OMPI_MCA_btl_vader_single_copy_mechanism="none")

    def mpirun(self, count):
        return [*(self.hosts.mpirun(count) if self.hosts else ("mpirun", "-n", str(count))), "--bind-to", "none"]

    def start(self, ranks, *arguments, environment=None):
        words = [self.binary, *map(str, arguments), "-q"]
        if ranks:
            words = [*self.mpirun(ranks), *words]
        return subprocess.Popen(words, cwd=self.folder, env=environment or self.environment,
                                stdout=subprocess.PIPE, stderr=subprocess.PIPE)

    def run(self, ranks, *arguments, code=0):
        process = self.start(ranks, *arguments)
        out, err = process.communicate(timeout=60)
        self.expect(process.returncode == code, f"code {process.returncode}, expected {code}: {ranks} ranks, "
                    f"{' '.join(map(str, arguments))}: {err.decode()}")
        return out.decode()

    def run_two(self, of_rank_1, environment, *arguments):
        """Two ranks; the second one's environment has of_rank_1, too."""
        script = f'if [ "$OMPI_COMM_WORLD_RANK" = 1 ]; then exec env {of_rank_1} {self.binary} "$@"; fi; exec {self.binary} "$@"'
        return subprocess.run([*self.mpirun(2), "bash", "-c", script, "-", *map(str, arguments)], cwd=self.folder,
                              env=environment, capture_output=True, text=True, timeout=60)

    def expect(self, holds, message):
        if not holds:
            self.wrong.append(message)

    def hash_of(self, name):
        path = self.folder / name
        return hashlib.sha256(path.read_bytes()).hexdigest() if path.exists() else "no file"

    def same(self, what, answer):
        """answer(ranks) is the same for all of them; 0 is no mpirun."""
        answers = {ranks: answer(ranks) for ranks in (0, *self.counts)}
        self.expect(len(set(answers.values())) == 1, f"{what}: differs with the ranks: {answers}")
        print(f"{what:28} same bytes" if len(set(answers.values())) == 1 else f"{what:28} DIFFERS", flush=True)


def make_set(ranks):
    lines = []
    for size in (5, 30, 12):
        ranks.run(0, "generate", "tsp", "-n", size, "-b", 40, "-o", "part.ndjson", "-f")
        lines += (ranks.folder / "part.ndjson").read_text().splitlines()
    random.Random(1).shuffle(lines)
    lines[50] = '{"no":"instance"}'
    (ranks.folder / "set.ndjson").write_text("\n".join(lines) + "\n")
    ranks.run(0, "generate", "tsp", "-n", 20, "-b", 100, "-o", "set.npy")


def check_bytes(ranks):
    def stream(count):
        ranks.run(count, "solve", "set.ndjson", "-t", 1, "-n", 40, "-o", "answers.ndjson", "-f", code=3)
        return ranks.hash_of("answers.ndjson")

    def tours(count):
        ranks.run(count, "solve", "set.npy", "-t", 1, "--mode", "greedy", "-o", "tours.npy", "-f")
        return ranks.hash_of("tours.npy")

    def document(count):
        return TIMES.sub("", ranks.run(count, "solve", "set.npy", "-t", 1))

    def rows(count):
        return TIMES.sub("", ranks.run(count, "eval", "set.npy", "-t", 1, "-m", "tsp20", "--modes", "greedy+x8,sample+20"))

    def scores(count):
        return ranks.run(count, "score", "set.npy", "-t", 1, "--solutions", "tours.npy", "-m", "tsp20")

    def model(count):
        ranks.run(count, *TRAIN, "--steps", 20)
        return ranks.hash_of("model.safetensors")

    for what, answer in (("solve, a stream", stream), ("solve, an array", tours), ("solve, a document", document),
                         ("eval", rows), ("score", scores), ("train", model)):
        ranks.same(what, answer)


def ranks_of(ranks):
    """Process ids of the program's ranks under mpirun, by rank: they work in the folder."""
    found = {}
    for path in pathlib.Path("/proc").glob("[0-9]*"):
        try:
            if os.readlink(path / "cwd") != str(ranks.folder) or os.readlink(path / "exe") != ranks.binary:
                continue
            words = (path / "environ").read_bytes().split(b"\0")
            found.update({int(word[21:]): int(path.name) for word in words if word.startswith(b"OMPI_COMM_WORLD_RANK=")})
        except (OSError, ValueError, IndexError):
            continue  # it has ended
    return found


def kill_one(ranks, rng, process, seconds):
    """Kills a rank after some time. Returns which, None when the run ended before."""
    time.sleep(rng.uniform(0.3, 0.3 + seconds))
    alive = ranks_of(ranks)
    if not alive:
        process.communicate(timeout=60)
        return None
    rank = rng.choice(sorted(alive))
    try:
        os.kill(alive[rank], signal.SIGKILL)
    except ProcessLookupError:
        process.communicate(timeout=60)
        return None
    start = time.monotonic()
    try:
        process.communicate(timeout=60)
    except subprocess.TimeoutExpired:
        process.kill()
        process.communicate()
    taken = time.monotonic() - start
    ranks.expect(taken <= MOST_SECONDS, f"rank {rank} was killed, and the run took {taken:.1f} s to end")
    ranks.expect(process.returncode != 0, f"rank {rank} was killed, and the run ended with code 0")
    return rank


def check_training(ranks, rng):
    steps = 80
    started = time.monotonic()
    ranks.run(2, *TRAIN, "--steps", steps)
    seconds, whole = time.monotonic() - started, ranks.hash_of("model.safetensors")
    for name in ("model.safetensors", "checkpoint"):
        (ranks.folder / name).unlink()
    rank = kill_one(ranks, rng, ranks.start(2, *TRAIN, "--steps", steps), seconds)
    if (ranks.folder / "model.safetensors").exists():
        ranks.run(0, "info", "model.safetensors")  # whole
    resume = ("--resume", "checkpoint") if (ranks.folder / "checkpoint").exists() else ()
    ranks.run(rng.choice((0, 2, 3)), *TRAIN, *resume, "--steps", steps)
    ranks.expect(ranks.hash_of("model.safetensors") == whole, f"train: rank {rank} was killed, and the bits changed")
    return rank is not None


def check_stream(ranks, rng):
    flags = ("solve", "set.ndjson", "-t", 1, "-b", 9, "--mode", "local", "--kicks", 8000)
    started = time.monotonic()
    ranks.run(2, *flags, "-o", "whole.ndjson", "-f", code=3)
    seconds, whole = time.monotonic() - started, (ranks.folder / "whole.ndjson").read_bytes()
    (ranks.folder / "half.ndjson").unlink(missing_ok=True)
    rank = kill_one(ranks, rng, ranks.start(2, *flags, "-o", "half.ndjson"), seconds)
    half = ranks.folder / "half.ndjson"
    ranks.expect(not half.exists() or whole.startswith(half.read_bytes()), "stream: not the start of a whole run's")
    ranks.run(2, *flags, "-o", "half.ndjson", "--resume", code=3)
    ranks.expect(half.read_bytes() == whole, f"stream: rank {rank} was killed, and the bytes changed")
    return rank is not None


def check_asynchronous(ranks, rng):
    steps = 60
    started = time.monotonic()
    for count in ranks.counts:
        summary = json.loads(ranks.run(count, *TRAIN, "--steps", steps, "--asynchronous"))["summary"]
        made = sum(summary.get("gradient_ages", [steps])) + summary.get("gradients_left_out", 0)
        ranks.expect(made == summary["steps"] == steps, f"{count} asynchronous ranks, {steps} steps: {summary}")
        ranks.run(0, "info", "model.safetensors")
    seconds = (time.monotonic() - started) / len(ranks.counts)
    rank = kill_one(ranks, rng, ranks.start(2, *TRAIN, "--steps", 20 * steps, "--asynchronous"), seconds)
    ranks.expect(rank is not None, "no asynchronous rank was there to be killed")
    process = ranks.start(2, *TRAIN, "--steps", 100_000, "--asynchronous")
    time.sleep(1.5)
    alive = ranks_of(ranks)
    for rank in sorted(alive, reverse=True):  # the last of them sees it first
        os.kill(alive[rank], signal.SIGTERM)
        time.sleep(0.1)
    out, err = process.communicate(timeout=60)
    summary = json.loads(out or "{}").get("summary", {})
    ranks.expect(summary.get("status") == "interrupted" and 0 < summary["steps"] < 100_000,
                 f"stopped asynchronous ranks: {summary} {err.decode()}")
    print(f"{'train --asynchronous':28} every step once, ended with rank {rank}", flush=True)


def check_signals(ranks):
    """A signal to one rank ends all, with the best kept and the code of rank 0's own."""
    steps = ("--steps", 1_000_000)
    runs = {"solve": ("solve", "set.npy", "-t", 1, "--mode", "local", "--kicks", 1 << 40),
            "train": (*TRAIN, *steps), "train --asynchronous": (*TRAIN, *steps, "--asynchronous")}
    for number, (what, words) in enumerate(runs.items()):
        for rank in (0, 1):
            sent, code = ((signal.SIGINT, 130), (signal.SIGTERM, 143))[(number + rank) % 2]
            process = ranks.start(2, *words)
            time.sleep(1.5)
            try:
                os.kill(ranks_of(ranks)[rank], sent)
                started = time.monotonic()
                out, err = process.communicate(timeout=20)
                taken = time.monotonic() - started
            except (KeyError, subprocess.TimeoutExpired):
                process.kill()
                out, err, taken = b"", process.communicate()[1], 20
            answer = json.loads(out or "{}")
            status = answer.get("summary", {}).get("status") or ({one["status"] for one in answer.get("solutions", ())})
            ranks.expect(process.returncode == code and taken < MOST_SIGNAL_SECONDS and "interrupted" in status,
                         f"{what}, signal {sent} to rank {rank}: code {process.returncode}, {taken:.1f} s, {status}: {err.decode()}")
    print(f"{'a signal to one rank':28} ends all", flush=True)


def check_failures(ranks):
    process = ranks.start(2, "info", environment=dict(ranks.environment, POINTSMAN_MPI_MODULE="/no/module.so",
                                                      OMPI_MCA_mca_base_env_list="POINTSMAN_MPI_MODULE"))
    err = process.communicate(timeout=60)[1].decode()
    ranks.expect(process.returncode == 4 and "/no/module.so" in err, f"no module: code {process.returncode}: {err}")
    # Rank 1 fails by itself: its processor lacks what POINTSMAN_SIMD asks it for.
    process = ranks.run_two("POINTSMAN_SIMD=none", ranks.environment, "solve", "set.npy", "-q", "--mode", "greedy", "-o", "x.npy")
    ranks.expect(process.returncode != 0 and "rank 1: " in process.stderr,
                 f"rank 1 failed: code {process.returncode}: {process.stderr}")


def check_devices(ranks, folder):
    environment = dict(ranks.environment, LD_LIBRARY_PATH=str(folder), POINTSMAN_CUDA_MODULE=str(folder / "libpointsman_cuda.so"),
                       POINTSMAN_EMULATION_DEVICES="2", POINTSMAN_NCCL="off")
    train = ("-n", 5, "-b", 24, "-t", 1, "--layers", 1, "--steps", 2, "-o", "model.safetensors", "-f")

    def check(what, of_rank_1, flags, code, said, problem="tsp"):
        process = ranks.run_two(of_rank_1, environment, "train", problem, *train, *flags)
        ranks.expect(process.returncode == code and all(text in process.stderr for text in said),
                     f"{what}: code {process.returncode}: {process.stderr}")
        return ranks.hash_of("model.safetensors")

    models = {check("two devices", "", flags, 0, ["on cuda (emulated", "2 ranks"]) for flags in ((), ("--device", "cuda"))}
    ranks.expect(len(models) == 1, "two devices: no two trainings have the same bits")
    one = check("a device for two", "", ("--device", "cuda:0"), 0, ["on cuda (emulated", "2 ranks"])
    ranks.expect(models == {one}, "a device for two: not the bits of two devices")
    environment["POINTSMAN_EMULATION_DEVICES"] = "1"
    check("a device for two", "", (), 0, ["using the CPU; ranks 0 and 1 have one CUDA device", "on cpu"])
    environment["POINTSMAN_EMULATION_DEVICES"] = "2"
    check("asynchronous devices", "", ("--asynchronous",), 0, ["on cuda (emulated", "2 asynchronous ranks"])
    check("no gradients", "", (), 0, ["using the CPU; CUDA computes no gradients for cvrp", "on cpu"], "cvrp")
    check("no gradients", "", ("--device", "cuda"), 4, ["CUDA computes no gradients for cvrp"], "cvrp")
    gone = "POINTSMAN_CUDA_MODULE=/no/module.so"
    check("one device of two", gone, (), 0, ["using the CPU; rank 1: no CUDA module at /no/module.so", "on cpu"])
    check("one device of two", gone, ("--device", "cuda"), 4, ["rank 1: device cuda: no CUDA module at /no/module.so"])
    print(f"{'train on devices':28} where all ranks have one", flush=True)


def missing(binary):
    if shutil.which("mpirun") is None:
        return "mpirun (Debian: openmpi-bin)"
    if json.loads(subprocess.run([binary, "info", "--format", "json"], capture_output=True).stdout)["mpi"].startswith("not"):
        return "the MPI module (Debian: libopenmpi-dev, then configure anew)"
    return None


def can_make_hosts():
    if shutil.which("ip") is None:
        return False
    with tempfile.TemporaryDirectory() as scratch:
        try:
            with Hosts(pathlib.Path(scratch)):
                return True
        except (OSError, subprocess.CalledProcessError):
            return False


def main():
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("binary", type=pathlib.Path)
    parser.add_argument("--kills", type=int, default=50)
    parser.add_argument("--ranks", type=int, nargs="+", default=(1, 2, 3, 4))
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--hosts", action="store_true")
    parser.add_argument("--cuda", type=pathlib.Path)
    flags = parser.parse_args()
    lacking = missing(flags.binary)
    if not lacking and flags.hosts and not can_make_hosts():
        lacking = "root, ip (Debian: iproute2) and the right to make network namespaces"
    if lacking:
        print(f"skipped: needs {lacking}")
        return SKIPPED
    rng, kills = random.Random(flags.seed), 0
    with contextlib.ExitStack() as stack:
        folder = pathlib.Path(stack.enter_context(tempfile.TemporaryDirectory())).resolve()
        hosts = stack.enter_context(Hosts(folder)) if flags.hosts else None
        ranks = Ranks(flags.binary.resolve(), folder, flags.ranks, hosts)
        make_set(ranks)
        check_bytes(ranks)
        check_asynchronous(ranks, rng)
        check_signals(ranks)
        check_failures(ranks)
        if flags.cuda:
            check_devices(ranks, flags.cuda.resolve())
        turn = 0
        while kills < flags.kills and len(ranks.wrong) < 10:
            kills += (check_training, check_stream)[turn % 2](ranks, rng)
            turn += 1
    print(f"{kills} kills")
    print(*ranks.wrong, sep="\n")
    return 1 if ranks.wrong else 0


if __name__ == "__main__":
    sys.exit(main())
