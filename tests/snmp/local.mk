# SPDX-License-Identifier: Apache-2.0
# Needs root and real agents, so it is no part of "make check": ./check snmp.
EXTRA_DIST += tests/snmp/check_snmp.py tests/snmp/simulated.py
