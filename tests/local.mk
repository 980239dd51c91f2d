# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += tests/batch.h tests/put.h tests/certificates.py tests/ports.py tests/speed.py tests/terminal.py
include tests/unit/local.mk
include tests/fuzz/local.mk
include tests/golden/local.mk
include tests/diagnosis/local.mk
include tests/fabric/local.mk
include tests/faults/local.mk
include tests/fidelity/local.mk
include tests/snmp/local.mk
include tests/page/local.mk
include tests/rxe/local.mk
include tests/evolution/local.mk
include tests/kafka/local.mk
include tests/nccl/local.mk
include tests/prometheus/local.mk
include tests/gpu/local.mk
include tests/install/local.mk
include tests/man/local.mk
include tests/oracle/local.mk
include tests/plan/local.mk
include tests/shim/local.mk
include tests/bench/local.mk
