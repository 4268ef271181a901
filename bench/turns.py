"""Several things timed by turns, so that what disturbs the machine disturbs them alike."""
import statistics
import time

LONG = 3  # seconds: what takes longer is not repeated
SETTLE = 0.002  # seconds: threads of the one before us may still be waiting for work


class Times:
    def __init__(self, ms):
        self.ms = statistics.median(ms)
        self.fastest = min(ms)
        self.turns = len(ms)
        low, _, high = statistics.quantiles(ms, n=4, method="inclusive") if len(ms) > 3 else (min(ms), 0, max(ms))
        self.spread = (high - low) / 2 / self.ms

    def as_json(self):
        return {"ms": self.ms, "fastest_ms": self.fastest, "spread": self.spread, "turns": self.turns}


class Callable:
    """A member that is a Python call."""

    def __init__(self, call, clock=time.perf_counter):
        self.call, self.clock = call, clock

    def run(self, seconds):
        ms, spent = [], 0.0
        while not ms or spent < seconds:
            start = self.clock()
            self.call()
            ms.append((self.clock() - start) * 1e3)
            spent += ms[-1] / 1e3
        return ms


def take_turns(members, seconds, most=9):
    """Times of the members, in about as many seconds altogether. A turn is one member after the other, each as often as
    its share of the time allows; what counts of it is the median. The first turn is warm-up, unless turns take most of
    the time; what takes very long has no other."""
    def turn(which, share):
        for index in which:
            time.sleep(SETTLE)
            found[index].append(statistics.median(members[index].run(share)))

    found = [[] for _ in members]
    turn(range(len(members)), 0)
    short = [index for index, ms in enumerate(found) if ms[0] < LONG * 1e3]
    took = sum(found[index][0] for index in short) / 1e3
    if took > seconds / 3:
        turn(short, 0)
    elif short:
        count = max(3, min(most, int(seconds / took)))
        for index in short:
            found[index].clear()
        for _ in range(count):
            turn(short, seconds / count / len(short))
    return [Times(ms) for ms in found]
