"""How tests of this folder run: functions with a name, or random cases of a seed until their time is over.

Both print each failure with the command that repeats it, then "N passed, M failed" as the last line, and return the exit code.
"""
import argparse
import shutil
import sys
import tempfile
import time
import traceback
from collections import Counter
from pathlib import Path

import peer


def said(error):
    """What went wrong; another exception than a Failure is a bug of the test, or an answer of another shape."""
    return str(error) if isinstance(error, peer.Failure) else "\n" + traceback.format_exc()


def tests_of(module):
    """The functions `test_*` of a module's globals(), by name."""
    return [test for name, test in sorted(module.items()) if name.startswith("test_")]


def in_a_warehouse(test):
    with tempfile.TemporaryDirectory() as folder:
        test(peer.Tarn(folder))


def run_tests(tests, names, run, options=""):
    """Calls `run(test)` with all of the tests, or with those that are named."""
    passed = failed = 0
    for test in tests:
        if names and test.__name__ not in names:
            continue
        try:
            run(test)
            passed += 1
        except Exception as e:
            failed += 1
            print("%s: %s\n  repeat: python3 tests/interop/%s%s %s" % (
                test.__name__, said(e), Path(sys.argv[0]).name, options, test.__name__), flush=True)
    print("%d passed, %d failed" % (passed, failed))
    return 1 if failed or not passed else 0


def run_given(module, tests=None, **given):
    """`run_tests` with arguments: --seed, the names, and what is given, each with what it is otherwise; False: a switch."""
    given = {"seed": 1, **given}
    parser = argparse.ArgumentParser(description=module["__doc__"], formatter_class=argparse.RawDescriptionHelpFormatter)
    for name, otherwise in given.items():
        if otherwise is False:
            parser.add_argument("--" + name, action="store_true")
        else:
            parser.add_argument("--" + name, type=type(otherwise), default=otherwise)
    parser.add_argument("names", nargs="*")
    args = parser.parse_args()
    values = [(name, getattr(args, name)) for name in given]
    options = "".join(" --" + name if value is True else " --%s %s" % (name, value) for name, value in values if value is not False)
    return run_tests(tests or tests_of(module), args.names, lambda test: test(args), options)


def random_cases(make, summary):
    """Runs cases that `make(seed, folder, java)` gives, up to the first failure, which keeps its folder.

    A case has `run()`, which returns what it counted by name, and `schema_text()`. The summary is a format of the sums.
    """
    parser = argparse.ArgumentParser()
    parser.add_argument("--seconds", type=float, default=60)
    parser.add_argument("--seed", type=int, default=1)
    parser.add_argument("--case", type=int)
    args = parser.parse_args()
    script = Path(sys.argv[0]).name
    end, first, passed, sums = time.monotonic() + args.seconds, args.case or 0, 0, Counter()
    while not passed or (args.case is None and time.monotonic() < end):
        number = first + passed
        folder = Path(tempfile.mkdtemp(prefix="tarn-%s-" % script.removesuffix("_test.py")))
        with peer.java() as java:
            case = make(args.seed * 100003 + number, folder, java)
            try:
                sums.update(case.run())
            except Exception as e:
                print("case %d: %s\n%s\nkept: %s\nrepeat: build/venv/bin/python3 tests/interop/%s --seed %d --case %d" % (
                    number, said(e), case.schema_text(), folder, script, args.seed, number))
                print("%d passed, 1 failed" % passed)
                return 1
        shutil.rmtree(folder)
        passed += 1
    print(summary % sums)
    print("%d passed, 0 failed" % passed)
    return 0
