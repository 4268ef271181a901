"""ungrain-bench-cpu, asked for one thing at a time."""
import json
import subprocess


class Program:
    def __init__(self, path, words=(), threads=0, flags=()):
        command = [path, "--ask", "--threads", str(threads), *flags, *words]
        self.process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)

    def ask(self, do, **request):
        self.process.stdin.write(json.dumps({"do": do, **request}) + "\n")
        self.process.stdin.flush()
        line = self.process.stdout.readline()
        if not line:
            raise SystemExit(f"ungrain-bench-cpu ended, status {self.process.wait()}, when asked to {do} {request}")
        answer = json.loads(line)
        if "failed" in answer:
            raise SystemExit(f"ungrain-bench-cpu: {answer['failed']}, when asked to {do} {request}")
        return answer

    def close(self):
        self.process.stdin.close()
        self.process.wait()


LONG = 3e3  # ms: where the run that is checked took longer, it is the first that counts


class Ours:
    """One case on one image, ready to be timed; run once and checked against the reference when it is made."""

    def __init__(self, program, case, width, height, **setup):
        self.program = program
        self.answer = program.ask("open", case=case, width=width, height=height, **setup)
        self.id = self.answer["id"]
        self.first = [self.answer["first_ms"]] if self.answer["first_ms"] > LONG else []

    def run(self, seconds):
        if self.first:
            return [self.first.pop()]
        return self.program.ask("run", id=self.id, seconds=seconds)["ms"]

    def psnr(self):
        return self.program.ask("psnr", id=self.id)["psnr"]

    def save(self, path):
        self.program.ask("save", id=self.id, path=str(path))

    def close(self):
        self.program.ask("close", id=self.id)
