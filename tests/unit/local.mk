# SPDX-License-Identifier: Apache-2.0
# Each module has tests/unit/check_MODULE.c; each layer lists its own in a file of its own.
if HAVE_CHECK
include tests/unit/base.mk
include tests/unit/config.mk
include tests/unit/fabric.mk
include tests/unit/proto.mk
include tests/unit/io.mk
include tests/unit/agent.mk
include tests/unit/switchpoll.mk
include tests/unit/daemon.mk
include tests/unit/cli.mk
endif
