"""How many gateways may share one table, and by which way to commit: a simulation of their store, links and clocks.

    fleet.py [--seconds S] [--every S] [--seed S] [--gateways N,N,...]

Each gateway commits once in `--every` seconds, at a moment of its own, for `--seconds`. A request takes its link's way there and back, its
bytes' time on the link, and the store's own time; a store that is asked more than it takes in a second answers 503, and is asked again
behind a growing pause. What a commit asks for is what engine/upload does, request by request (direct.h, inbox.h, gather.h), and
tests/upload counts on the real code; what is drawn here are times.

Prints a line for each way and number of gateways: commits a second that were made at home and that reached the table, those that waited
at the end, names that were lost to another for each commit, the delay from a commit at home to the snapshot of the lake that has it,
the requests of a gateway and of all, the gather's own among them, and the bytes that a commit took. Then the knees: the most gateways
of these whose commits all came through, 99 of 100 of them within `--every`. Ends with 1 when a commit is in the table twice, or is
neither there nor waiting, or when one that is alone costs other requests than the tests of the real code count.
"""
import argparse
import collections
import heapq
import math
import random
import sys

# The store: what S3 promises for a prefix, and times as its users see them beside it; median in ms, sigma of the logarithm.
WRITES_A_SECOND, READS_A_SECOND = 3500, 5500
STORE_MS = {"GET": (15, 0.5), "HEAD": (12, 0.5), "PUT": (30, 0.5), "LIST": (40, 0.5), "DELETE": (20, 0.5)}
# A gateway's link (LTE), and that of the machine that gathers, beside the store: ms there and back, bytes a second.
GATEWAY_RTT_MS, GATEWAY_RATE = (60, 0.4), 500_000
GATHER_RTT_MS, GATHER_RATE = (2, 0.2), 50_000_000

# Bytes: a data file has a minute of sensors; the others are as small tables have them, and a manifest's place in a list as packed.
DATA, MANIFEST, LIST, SNAPSHOT, HINT, COMMITTABLE = 20_000, 2600, 900, 1200, 8, 2200
LIST_PLACE = 75

# direct.h
MANIFESTS_MAX, WAIT_MS, DOUBLINGS, TRIES_MAX = 2000, 50, 8, 64
ALONE = {"direct": 10, "gather": 2}  # requests beside the files: tests/upload/direct_test.c, inbox_send_test.c
MERGE_EVERY = 600  # seconds between two runs of whoever compacts and merges the table's manifests
# gather.h, inbox.h
ROUND_SECONDS, ENTRIES_MAX, SHARE_MAX, CONNECTIONS, PAGE = 1, 512, 32, 4, 1000
MANIFESTS_MERGED = 30  # manifest.merge-min-count: a gather's commit merges beyond


class World:
    """Time in seconds, and processes: generators that yield how long they wait."""

    def __init__(self, seed):
        self.rng = random.Random(seed)
        self.now, self.count, self.heap = 0.0, 0, []

    def spawn(self, process, at):
        self.count += 1
        heapq.heappush(self.heap, (at, self.count, process))

    def run(self, until):
        while self.heap and self.heap[0][0] <= until:
            self.now, _, process = heapq.heappop(self.heap)
            try:
                self.spawn(process, self.now + next(process))
            except StopIteration:
                pass

    def draw(self, median_ms, sigma):
        return self.rng.lognormvariate(math.log(median_ms / 1000), sigma)


class Store:
    def __init__(self, world):
        self.world = world
        self.second, self.asked = -1, [0, 0]
        self.requests, self.bytes = 0, 0

    def takes(self, verb):
        """False: it is asked more in this second than it takes."""
        if int(self.world.now) != self.second:
            self.second, self.asked = int(self.world.now), [0, 0]
        writes = verb in ("PUT", "DELETE")
        self.asked[writes] += 1
        return self.asked[writes] <= (WRITES_A_SECOND if writes else READS_A_SECOND)


class Link:
    """A device's way to the store."""

    def __init__(self, store, rtt_ms, rate):
        self.store, self.world = store, store.world
        self.rtt, self.rate = self.world.draw(*rtt_ms), rate
        self.requests = 0

    def ask(self, verb, size=0, effect=lambda: None):
        """`yield from` it: what `effect` says at the moment in which the store does it."""
        pause = 0.5
        while True:
            self.requests += 1
            self.store.requests += 1
            self.store.bytes += size
            yield self.rtt / 2 + (size / self.rate if verb == "PUT" else 0)
            if self.store.takes(verb):
                break
            yield self.rtt / 2 + pause * (0.5 + self.world.rng.random())
            pause = min(2 * pause, 60)
        served = self.world.draw(*STORE_MS[verb])
        yield served / 2
        answer = effect()
        yield served / 2 + self.rtt / 2 + (size / self.rate if verb == "GET" else 0)
        return answer

    def put_all(self, sizes):
        """Files that travel at once, over connections that share the link: the slowest one's time."""
        self.requests += len(sizes) - 1
        self.store.requests += len(sizes) - 1
        self.store.bytes += sum(sizes[1:])
        yield sum(sizes[1:]) / self.rate
        yield from self.ask("PUT", sizes[0])


class Lake:
    """The table: what each of its snapshots brought."""

    def __init__(self, world):
        self.world = world
        self.newest, self.manifests = 0, 0
        self.times = collections.Counter()  # (gateway, number): how often it is in the table
        self.delays = []
        self.inbox = collections.defaultdict(dict)  # gateway -> {number: commits}
        self.lost = 0

    def publish(self, number, commits, manifests):
        """The conditional PUT of snapshot-`number`: whether it was the first. `commits`: (gateway, number, when it was made)."""
        if self.newest >= number:
            self.lost += 1
            return False
        self.newest, self.manifests = number, manifests
        for gateway, at, made in commits:
            self.times[gateway, at] += 1
            self.delays.append(self.world.now - made)
        return True


def commit_directly(link, lake, commits):
    """False: others were always faster, or there are too many manifests."""
    rng = link.world.rng
    yield from link.ask("GET", HINT)  # a pause?
    yield from link.ask("GET", HINT)
    base, manifests = yield from link.ask("GET", SNAPSHOT, lambda: (lake.newest, lake.manifests))
    sizes = [DATA] * len(commits) + [MANIFEST, LIST]
    for k in range(TRIES_MAX):
        yield from link.ask("GET", LIST + LIST_PLACE * manifests)
        yield from link.ask("GET", LIST)
        if manifests > MANIFESTS_MAX:
            return False
        yield from link.put_all([LIST + LIST_PLACE * manifests] + sizes)
        sizes = []
        if (yield from link.ask("PUT", SNAPSHOT, lambda: lake.publish(base + 1, commits, manifests + 1))):
            yield from link.ask("PUT", HINT)
            return True
        yield rng.random() * WAIT_MS / 1000 * 2 ** min(k + 1, DOUBLINGS)
        there = True
        while there:  # the winners, up to the name that isn't there
            newest, manifests = yield from link.ask("GET", SNAPSHOT, lambda: (lake.newest, lake.manifests))
            there = newest > base
            base += there
    return False


def hand_in(link, lake, gateway, commits):
    number = commits[0][1]
    yield from link.ask("GET", SNAPSHOT)  # is there a newer schema?
    yield from link.put_all([DATA] * len(commits))
    yield from link.ask("PUT", COMMITTABLE, lambda: lake.inbox[gateway].__setitem__(number, commits))
    return True


class Gateway:
    def __init__(self, number, lake, store, way):
        self.number, self.lake, self.way = number, lake, way
        self.link = Link(store, GATEWAY_RTT_MS, GATEWAY_RATE)
        self.waiting = []
        self.made = 0

    def live(self, every, until):
        """Commits at home by its clock, and brings all that waits, one commit of the lake after the other."""
        world = self.lake.world
        due = world.rng.random() * every
        while True:
            if due > world.now and not self.waiting:
                yield due - world.now
            while due <= world.now and due < until:
                self.made += 1
                self.waiting.append((self.number, self.made, due))
                due += every * (0.95 + 0.1 * world.rng.random())
            if not self.waiting and due >= until:
                return
            if self.waiting:
                yield from self.bring()

    def bring(self):
        commits, pause = list(self.waiting), 1
        if self.way == "direct":
            done = yield from commit_directly(self.link, self.lake, commits)
        else:
            done = yield from hand_in(self.link, self.lake, self.number, commits)
        if done:
            del self.waiting[:len(commits)]
        else:
            yield pause + 10 * self.lake.world.rng.random()


def merge(lake):
    while True:
        yield MERGE_EVERY
        lake.manifests = min(lake.manifests, 1)


def at_once(world, processes):
    """All of them, over the connections that there are."""
    todo, left = list(reversed(processes)), [CONNECTIONS]

    def work():
        while todo:
            yield from todo.pop()
        left[0] -= 1

    for _ in range(CONNECTIONS):
        world.spawn(work(), world.now)
    while left[0] > 0:
        yield 0.002


def choose(inbox, turn):
    """Entries of the gateways from the one on whose turn it is, and how many keys are looked at for that."""
    known = sorted(g for g in inbox if inbox[g])
    chosen, seen = [], 0
    for gateway in [g for g in known if g >= turn] + [g for g in known if g < turn]:
        numbers = sorted(inbox[gateway])
        seen += len(numbers)
        chosen += [(gateway, number) for number in numbers[:SHARE_MAX]]
        if len(chosen) >= ENTRIES_MAX:
            break
    return chosen[:ENTRIES_MAX], seen


def gather(link, lake):
    world, turn = lake.world, 0
    while True:
        begin = world.now
        yield from link.ask("GET", HINT)  # a pause?
        yield from link.ask("GET", HINT)
        base = yield from link.ask("GET", SNAPSHOT, lambda: lake.newest)
        yield from link.ask("HEAD")
        taken, seen = yield from link.ask("LIST", 0, lambda: choose(lake.inbox, turn))
        for _ in range(seen // PAGE):
            yield from link.ask("LIST")
        turn = taken[-1][0] + 1 if len(taken) == ENTRIES_MAX else 0
        commits = []
        yield from at_once(world, [link.ask("GET", COMMITTABLE, lambda g=g, n=n: commits.extend(lake.inbox[g][n])) for g, n in taken])
        yield from at_once(world, [link.ask("HEAD") for _ in commits])
        if commits:
            manifests = 1 if lake.manifests >= MANIFESTS_MERGED else lake.manifests + 1
            for verb in ("PUT", "LIST", "DELETE"):  # marks
                yield from link.ask(verb, SNAPSHOT)
            yield from link.put_all([LIST + LIST_PLACE * manifests, LIST, MANIFEST + 100 * len(commits)])
            yield from link.ask("PUT", SNAPSHOT, lambda: lake.publish(base + 1, commits, manifests))
            yield from link.ask("PUT", HINT)
            yield from link.ask("GET", SNAPSHOT)  # is the one below still what it was?
            yield from at_once(world, [link.ask("DELETE", 0, lambda g=g, n=n: lake.inbox[g].pop(n)) for g, n in taken])
        yield max(0.0, begin + ROUND_SECONDS - world.now)


def simulate(way, count, every, seconds, seed):
    world = World("%d %s %d" % (seed, way, count))
    store, lake = Store(world), Lake(world)
    gateways = [Gateway(i, lake, store, way) for i in range(count)]
    for gateway in gateways:
        world.spawn(gateway.live(every, seconds), 0)
    if way == "gather":
        world.spawn(gather(Link(store, GATHER_RTT_MS, GATHER_RATE), lake), 0)
    else:
        world.spawn(merge(lake), 0)
    world.run(seconds + every)
    made = sum(g.made for g in gateways)
    waiting = {c[:2] for g in gateways for c in g.waiting} | {c[:2] for box in lake.inbox.values() for cs in box.values() for c in cs}
    wrong = [key for key, times in lake.times.items() if times != 1]
    wrong += [(g.number, n) for g in gateways for n in range(1, g.made + 1) if (g.number, n) not in lake.times and (g.number, n) not in waiting]
    there = len(lake.times)
    delays = sorted(lake.delays) or [math.inf]
    own = sum(g.link.requests for g in gateways)
    return {"offered": made / seconds, "reached": there / seconds, "waiting": made - there, "lost": lake.lost / max(1, there),
            "p50": delays[len(delays) // 2], "p99": delays[len(delays) * 99 // 100], "own": own / max(1, there), "requests": store.requests / max(1, there),
            "bytes": store.bytes / max(1, there), "wrong": wrong}


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=int, default=180)
    parser.add_argument("--every", type=int, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--gateways", default="10,20,50,100,200,500,1000,2000,5000,10000")
    o = parser.parse_args()
    wrong = []
    for way, requests in ALONE.items():
        own = simulate(way, 1, 60, 600, o.seed)["own"]
        wrong += ["%s: %.1f requests and a data file, not %d" % (way, own - 1, requests)] if own != requests + 1 else []
    print("%-7s %8s %9s %9s %8s %7s %8s %8s %7s %8s %8s" % ("way", "gateways", "made/s", "reached/s", "waiting", "lost", "p50 s", "p99 s", "own",
                                                            "requests", "bytes"))
    for way in ("direct", "gather"):
        knee = 0
        for count in [int(n) for n in o.gateways.split(",")]:
            r = simulate(way, count, o.every, o.seconds, o.seed)
            print("%-7s %8d %9.2f %9.2f %8d %7.2f %8.2f %8.2f %7.1f %8.1f %8.0f" % (
                way, count, r["offered"], r["reached"], r["waiting"], r["lost"], r["p50"], r["p99"], r["own"], r["requests"], r["bytes"]), flush=True)
            wrong += ["%s, %d gateways: commit %d of gateway %d" % (way, count, n, g) for g, n in r["wrong"][:3]]
            if r["waiting"] == 0 and r["p99"] <= o.every:
                knee = count
        print("%s: up to %d of these gateways, each a commit in %d s" % (way, knee, o.every))
    for what in wrong:
        print("wrong: %s" % what)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main())
