# SPDX-License-Identifier: Apache-2.0
# Jobs on paper, whose faults are known: run.py, and check_cases.py for a seed of each case;
# the same through the daemon: daemon.py and check_daemon.py. Dumps of PyTorch: check_flight.py.
dist_check_SCRIPTS += tests/diagnosis/check_cases.py tests/diagnosis/check_daemon.py \
	tests/diagnosis/check_flight.py
TESTS += tests/diagnosis/check_cases.py tests/diagnosis/check_daemon.py tests/diagnosis/check_flight.py
EXTRA_DIST += tests/diagnosis/README.md tests/diagnosis/daemon.py tests/diagnosis/fabric.py \
	tests/diagnosis/job.py tests/diagnosis/run.py
