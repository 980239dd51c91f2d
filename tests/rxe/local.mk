# SPDX-License-Identifier: Apache-2.0
# Boots a virtual machine, so it is no part of "make check".
EXTRA_DIST += tests/rxe/README.md tests/rxe/run.py tests/rxe/vm.py tests/rxe/judging.py tests/rxe/build-guest.sh \
	tests/rxe/common.sh tests/rxe/flows.sh tests/rxe/judge_flows.py tests/rxe/numbered.py \
	tests/rxe/guestfabric.py tests/rxe/guestfabric.sh tests/rxe/fabricwire.py \
	tests/rxe/fabric.sh tests/rxe/judge_fabric.py \
	tests/rxe/guestswitches.py tests/rxe/guestswitches.sh \
	tests/rxe/switches.sh tests/rxe/judge_switches.py \
	tests/rxe/pairing.sh tests/rxe/judge_pairing.py \
	tests/rxe/ranks.sh tests/rxe/judge_ranks.py tests/rxe/ranks.c \
	tests/rxe/lag.sh tests/rxe/judge_lag.py tests/rxe/vms.sh tests/rxe/judge_vms.py \
	tests/rxe/churn.sh tests/rxe/judge_churn.py tests/rxe/churn.c \
	tests/rxe/plan.sh tests/rxe/judge_plan.py tests/rxe/collide.sh tests/rxe/judge_collide.py \
	tests/rxe/guestrouter.sh tests/rxe/ucx.sh tests/rxe/judge_ucx.py \
	tests/rxe/guestjob.sh tests/rxe/learnt.sh tests/rxe/judge_learnt.py \
	tests/rxe/demo.py tests/rxe/demo.sh \
	tests/rxe/guest-init tests/rxe/guest-stage2 tests/rxe/guest-packages
check-rxe: agent/fabrictrace-agent $(shim) $(nccl_plugin) daemon/fabrictraced switchpoll/fabrictrace-switchpoll \
		cli/fabrictrace tests/fabric/rocegen
	$(PYTHON3) $(srcdir)/tests/rxe/run.py --build .
.PHONY: check-rxe
