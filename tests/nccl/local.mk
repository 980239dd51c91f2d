# SPDX-License-Identifier: Apache-2.0
nccl_driver = tests/nccl/driver.c tests/nccl/driver.h tests/nccl/reader.c tests/nccl/reader.h
NCCL_TEST_LIBS = agent/libftagent.a lib/base/libftbase.a $(XXHASH_LIBS) -ldl -lpthread

check_PROGRAMS += tests/nccl/harness
tests_nccl_harness_SOURCES = tests/nccl/harness.c $(nccl_driver)
tests_nccl_harness_LDADD = $(NCCL_TEST_LIBS)

check_PROGRAMS += tests/nccl/job
tests_nccl_job_SOURCES = tests/nccl/job.c $(nccl_driver)
tests_nccl_job_LDADD = $(NCCL_TEST_LIBS)

check_PROGRAMS += tests/nccl/stuck
tests_nccl_stuck_SOURCES = tests/nccl/stuck.c $(nccl_driver)
tests_nccl_stuck_LDADD = $(NCCL_TEST_LIBS)

check_PROGRAMS += tests/nccl/together
tests_nccl_together_SOURCES = tests/nccl/together.c $(nccl_driver)
tests_nccl_together_LDADD = $(NCCL_TEST_LIBS)

check_PROGRAMS += tests/bench/bench_nccl
tests_bench_bench_nccl_SOURCES = tests/bench/bench_nccl.c $(nccl_driver)
tests_bench_bench_nccl_LDADD = $(NCCL_TEST_LIBS)

dist_check_SCRIPTS += tests/nccl/harness.sh tests/nccl/live.py tests/nccl/progress.py \
	tests/nccl/diagnosed.py tests/nccl/second.py
TESTS += tests/nccl/harness.sh tests/nccl/live.py tests/nccl/progress.py tests/nccl/diagnosed.py tests/nccl/second.py

# A second plugin, to be loaded behind ours.
counting_plugin = tests/nccl/counting.so
$(counting_plugin): tests/nccl/counting.c agent/nccl/abi.h config.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(CC) $(AM_CPPFLAGS) $(places) $(CPPFLAGS) $(nccl_cflags) \
		-fvisibility=default $(CFLAGS) $(LDFLAGS) -shared -o $@ $(srcdir)/tests/nccl/counting.c
EXTRA_DIST += tests/nccl/counting.c
CLEANFILES += $(counting_plugin)

check_DATA = $(nccl_plugin) $(counting_plugin)
