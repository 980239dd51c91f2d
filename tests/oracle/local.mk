# SPDX-License-Identifier: Apache-2.0
# Switches that are asked: adapters on recorded answers, and a real kernel.
TESTS += tests/oracle/check_adapters.py tests/oracle/check_linux.py
EXTRA_DIST += tests/oracle/check_adapters.py tests/oracle/check_linux.py tests/oracle/remote.py
