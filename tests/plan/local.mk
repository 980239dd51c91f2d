# SPDX-License-Identifier: Apache-2.0
# The program on fabrics on paper, without a daemon.
TESTS += tests/plan/check_astra.py tests/plan/check_best.py tests/plan/check_plan.py
EXTRA_DIST += tests/plan/README.md tests/plan/chakra.py tests/plan/check_astra.py tests/plan/check_best.py tests/plan/check_plan.py tests/plan/lab.py tests/plan/paper.py tests/plan/run_astra.py
TESTS += tests/plan/check_captured.py tests/plan/check_changes.py tests/plan/check_dual.py tests/plan/check_fabrics.py tests/plan/check_job.py tests/plan/check_odd.py tests/plan/check_refused.py tests/plan/check_traces.py tests/plan/check_fluid.py tests/plan/check_whatif.py
EXTRA_DIST += tests/plan/check_odd.py tests/plan/check_captured.py tests/plan/check_changes.py tests/plan/check_fabrics.py tests/plan/check_refused.py tests/plan/check_dual.py tests/plan/check_job.py tests/plan/check_traces.py tests/plan/et_def.proto tests/plan/capture.ndjson tests/plan/capture.txt tests/plan/hashed.py tests/plan/check_fluid.py tests/plan/check_whatif.py
check_PROGRAMS += tests/plan/fluid
tests_plan_fluid_SOURCES = tests/plan/fluid.c
tests_plan_fluid_LDADD = lib/sim/libftsim.a lib/fabric/libftfabric.a lib/base/libftbase.a -lm
