# SPDX-License-Identifier: Apache-2.0
# The lab's traffic generator; the lab itself is Python: fabric.py, run.py, demo.py.
noinst_PROGRAMS += tests/fabric/rocegen
tests_fabric_rocegen_SOURCES = tests/fabric/rocegen.c tests/fabric/roce.c tests/fabric/roce.h
tests_fabric_rocegen_LDADD = lib/base/libftbase.a $(XXHASH_LIBS)

# Needs no root; the check against a real fabric is run.py.
dist_check_SCRIPTS += tests/fabric/check_lab.py
TESTS += tests/fabric/check_lab.py
EXTRA_DIST += tests/fabric/ecmp.py tests/fabric/fabric.py tests/fabric/run.py tests/fabric/demo.py \
	tests/fabric/lab/__init__.py tests/fabric/lab/agents.py tests/fabric/lab/blind.py \
	tests/fabric/lab/broker.py \
	tests/fabric/lab/course.py tests/fabric/lab/exporters.py tests/fabric/lab/fabric.py \
	tests/fabric/lab/faults.py tests/fabric/lab/judge.py tests/fabric/lab/layout.py \
	tests/fabric/lab/moves.py tests/fabric/lab/packets.py tests/fabric/lab/pipeline.py \
	tests/fabric/lab/records.py tests/fabric/lab/relay.py tests/fabric/lab/routes.py \
	tests/fabric/lab/switchrules.py \
	tests/fabric/lab/timeline.py tests/fabric/lab/traffic.py tests/fabric/lab/truth.py \
	tests/fabric/lab/variants.py tests/fabric/lab/volumes.py tests/fabric/lab/waited.py

if HAVE_CHECK
check_PROGRAMS += tests/fabric/check_roce
TESTS += tests/fabric/check_roce
tests_fabric_check_roce_SOURCES = tests/fabric/check_roce.c tests/fabric/roce.c tests/fabric/roce.h
tests_fabric_check_roce_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_fabric_check_roce_LDADD = lib/base/libftbase.a $(CHECK_LIBS)
endif
