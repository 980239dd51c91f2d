# SPDX-License-Identifier: Apache-2.0
# The lab's traffic generator; the lab itself is Python: fabric.py, run.py, demo.py.
noinst_PROGRAMS += tests/fabric/rocegen
tests_fabric_rocegen_SOURCES = tests/fabric/rocegen.c tests/fabric/roce.c tests/fabric/roce.h
tests_fabric_rocegen_LDADD = lib/base/libftbase.a $(XXHASH_LIBS)

if HAVE_CHECK
check_PROGRAMS += tests/fabric/check_roce
TESTS += tests/fabric/check_roce
tests_fabric_check_roce_SOURCES = tests/fabric/check_roce.c tests/fabric/roce.c tests/fabric/roce.h
tests_fabric_check_roce_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_fabric_check_roce_LDADD = lib/base/libftbase.a $(CHECK_LIBS)
endif
