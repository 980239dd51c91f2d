# SPDX-License-Identifier: Apache-2.0
# Boots a virtual machine, so it is no part of "make check"; run.py exits with 77 when it cannot.
EXTRA_DIST += tests/rxe/run.py tests/rxe/vm.py tests/rxe/judging.py tests/rxe/build-guest.sh \
	tests/rxe/flows.sh tests/rxe/judge_flows.py \
	tests/rxe/guest-init tests/rxe/guest-stage2 tests/rxe/guest-packages
check-rxe: agent/fabrictrace-agent daemon/fabrictraced
	$(PYTHON3) $(srcdir)/tests/rxe/run.py --build . || test $$? = 77
.PHONY: check-rxe
