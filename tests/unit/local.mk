# SPDX-License-Identifier: Apache-2.0
# Each module has tests/unit/check_MODULE.c; each layer lists its own in a file of its own.
if HAVE_CHECK
include tests/unit/base.mk
include tests/unit/config.mk
include tests/unit/diagnosis.mk
include tests/unit/fabric.mk
include tests/unit/sim.mk
include tests/unit/proto.mk
include tests/unit/io.mk
include tests/unit/topics.mk
include tests/unit/agent.mk
include tests/unit/switchpoll.mk
include tests/unit/daemon.mk
include tests/unit/daemon_diagnosis.mk
include tests/unit/daemon_window.mk
include tests/unit/cli.mk

dist_check_SCRIPTS += tests/unit/run_one.sh
TESTS += tests/unit/run_one.sh
endif

# make one TEST=check_join [CASE=what_is_tested]: builds and runs one unit test program, or one of its
# tests. CK_FORK=no in the environment keeps it in one process, for a debugger.
one: $(BUILT_SOURCES)
	@test -n '$(TEST)' || { echo 'usage: make one TEST=check_MODULE [CASE=NAME]' >&2; exit 1; }
	$(AM_V_at)$(MAKE) $(AM_MAKEFLAGS) tests/unit/$(TEST)$(EXEEXT)
	$(AM_V_at)srcdir=$(srcdir) $(if $(CASE),CK_RUN_CASE=$(CASE)) tests/unit/$(TEST)$(EXEEXT)
.PHONY: one
