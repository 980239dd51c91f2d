# SPDX-License-Identifier: Apache-2.0
include tests/golden/switchpoll.mk
include tests/golden/daemon/local.mk

# Writes the expected texts anew; read the difference before it is committed.
golden-update: all
	for test in agent/replay switchpoll/replay daemon/replay daemon/analyze; do \
		FT_WRITE_GOLDEN=1 $(srcdir)/tests/golden/$$test.py || exit 1; \
	done
.PHONY: golden-update
