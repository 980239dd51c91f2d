# SPDX-License-Identifier: Apache-2.0
# Jobs on paper, whose faults are known: run.py, and check_cases.py for a seed of each case;
# outsider.py and check_outsider.py: tables as somebody else might write them; fsdp.py and
# check_fsdp.py: jobs whose operations run beside the work; examined.py and check_examined.py: jobs
# of recipes.py, on the cluster of streams.py, whose hosts call ahead; stranger.py and
# check_stranger.py: jobs that only send, save or are late once; plain.py and check_plain.py: plain
# and short tables; frameworks.py and check_frameworks.py: jobs in the order in which frameworks
# communicate, of engines.py and orders.py; tables.py is shared by them;
# the same through the daemon: daemon.py and check_daemon.py, beside a job that lies: liar.py and
# check_liar.py, and what a record, API and tool say of counters: check_witnessed.py. Dumps of
# PyTorch: check_flight.py.
# A job over the fabric of namespaces: lab.py, with trainer and card for each rank and host.
dist_check_SCRIPTS += tests/diagnosis/check_cases.py tests/diagnosis/check_daemon.py \
	tests/diagnosis/check_examined.py \
	tests/diagnosis/check_flight.py tests/diagnosis/check_frameworks.py \
	tests/diagnosis/check_fsdp.py tests/diagnosis/check_liar.py \
	tests/diagnosis/check_outsider.py tests/diagnosis/check_plain.py \
	tests/diagnosis/check_stranger.py tests/diagnosis/check_witnessed.py
TESTS += tests/diagnosis/check_cases.py tests/diagnosis/check_daemon.py \
	tests/diagnosis/check_examined.py tests/diagnosis/check_flight.py \
	tests/diagnosis/check_frameworks.py tests/diagnosis/check_fsdp.py \
	tests/diagnosis/check_liar.py tests/diagnosis/check_outsider.py \
	tests/diagnosis/check_plain.py tests/diagnosis/check_stranger.py \
	tests/diagnosis/check_witnessed.py
EXTRA_DIST += tests/diagnosis/README.md tests/diagnosis/TABLES.md \
	tests/diagnosis/daemon.py tests/diagnosis/engines.py tests/diagnosis/examined.py \
	tests/diagnosis/fabric.py tests/diagnosis/flows.py tests/diagnosis/frameworks.py \
	tests/diagnosis/fsdp.py tests/diagnosis/job.py tests/diagnosis/lab.py \
	tests/diagnosis/labdelay.py tests/diagnosis/labfaults.py tests/diagnosis/labjob.py \
	tests/diagnosis/liar.py \
	tests/diagnosis/orders.py tests/diagnosis/outsider.py tests/diagnosis/plain.py \
	tests/diagnosis/recipes.py \
	tests/diagnosis/run.py \
	tests/diagnosis/stranger.py tests/diagnosis/streams.py tests/diagnosis/tables.py

noinst_PROGRAMS += tests/diagnosis/trainer tests/diagnosis/card
tests_diagnosis_trainer_SOURCES = tests/diagnosis/trainer.c tests/diagnosis/trainer.h \
	tests/diagnosis/shared.c tests/nccl/driver.c tests/nccl/driver.h
tests_diagnosis_trainer_LDADD = -lm -ldl
tests_diagnosis_card_SOURCES = tests/diagnosis/card.c tests/diagnosis/trainer.h \
	tests/diagnosis/shared.c tests/fabric/roce.c tests/fabric/roce.h
tests_diagnosis_card_LDADD = lib/base/libftbase.a $(XXHASH_LIBS)
