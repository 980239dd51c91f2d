# SPDX-License-Identifier: Apache-2.0
"""What the tests of this folder share: verdicts, a line each."""
failures = []


def check(what, good, detail=""):
    print(f"{'ok' if good else 'FAIL'}: {what}{'' if good else f': {detail}'}", flush=True)
    if not good:
        failures.append(what)


def equal(what, got, want):
    check(what, got == want, f"got {got!r}, want {want!r}")


def run_tests(*tests):
    """Returns the exit code."""
    for test in tests:
        print(test.__name__, flush=True)
        test()
    return 1 if failures else 0
