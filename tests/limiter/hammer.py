"""One process of `test_limiter_processes`: asks the shared limiter as fast as it can.

Each line on stdin is a round, `NOW_NS ATTEMPTS`; the answer is a line with the requests admitted of
each client. For `ATTEMPTS` of 0 it says that it has begun, and asks until it is killed.
"""

import sys

from fleetcast.engine import LimiterFile

CLIENTS = [f"10.0.0.{number}" for number in range(7)] + ["2001:db8::1"]
RULES = {
    "requests_per_minute": 30,
    "lockout_failures": 10,
    "lockout_window_seconds": 300,
    "lockout_seconds": 300,
}


def main():
    limiter = LimiterFile(sys.argv[1], **RULES)
    print("ready", flush=True)
    for line in sys.stdin:
        now_ns, attempts = map(int, line.split())
        if attempts == 0:
            print("begun", flush=True)
        while attempts == 0:
            for client in CLIENTS:
                limiter.admit(client, now_ns=now_ns)
                limiter.record_failure(client, now_ns=now_ns)
        admitted = [0] * len(CLIENTS)
        for _ in range(attempts):
            for place, client in enumerate(CLIENTS):
                admitted[place] += limiter.admit(client, now_ns=now_ns) is None
        print(*admitted, flush=True)


if __name__ == "__main__":
    main()
