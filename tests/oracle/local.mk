# SPDX-License-Identifier: Apache-2.0
# Switches that are asked: adapters on recorded answers, and a real kernel;
# flows that are probed over a leaf-spine of real kernels.
TESTS += tests/oracle/check_adapters.py tests/oracle/check_linux.py tests/oracle/check_probe.py tests/oracle/check_probes.py
EXTRA_DIST += tests/oracle/check_adapters.py tests/oracle/check_linux.py tests/oracle/check_probe.py tests/oracle/check_probes.py \
	tests/oracle/remote.py
