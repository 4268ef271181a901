"""Several things timed by turns, so that what disturbs the machine disturbs them alike."""
import statistics
import time

LONG = 6  # seconds: a turn that takes longer is not repeated
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
    its share of the time allows; what counts of it is the median. The first turn is warm-up, unless it alone takes most
    of the time; where it takes very long it is the only one."""
    if not members:
        return []

    def turn(share):
        result = []
        for member in members:
            time.sleep(SETTLE)
            result.append(statistics.median(member.run(share)))
        return result

    first = turn(0)
    took = sum(first) / 1e3
    if took > LONG:
        turns = [first]
    elif took > seconds / 3:
        turns = [first, turn(0)]
    else:
        count = max(3, min(most, int(seconds / took)))
        turns = [turn(seconds / count / len(members)) for _ in range(count)]
    return [Times([one[index] for one in turns]) for index in range(len(members))]
