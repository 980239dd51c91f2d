# SPDX-License-Identifier: Apache-2.0
# Jobs on paper, whose faults are known: run.py, and check_cases.py for a seed of each case.
dist_check_SCRIPTS += tests/diagnosis/check_cases.py
TESTS += tests/diagnosis/check_cases.py
EXTRA_DIST += tests/diagnosis/README.md tests/diagnosis/job.py tests/diagnosis/run.py
