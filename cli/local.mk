# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += cli/libftcli.a
cli_libftcli_a_SOURCES = \
	cli/cli.c cli/cli.h \
	cli/diagnose.c cli/diagnose.h \
	cli/loads.c cli/loads.h \
	cli/args/args.c cli/args/args.h \
	cli/args/args_commands.c \
	cli/args/args_help.c \
	cli/args/args_options.h \
	cli/args/args_sim.c \
	cli/args/args_table.c \
	cli/args/args_values.c \
	cli/args/moment.c cli/args/moment.h \
	cli/fetch/consume.c cli/fetch/consume.h \
	cli/fetch/fetch.c cli/fetch/fetch.h \
	cli/fetch/follow.c cli/fetch/follow.h \
	cli/fetch/history.c cli/fetch/history.h \
	cli/fetch/node.c cli/fetch/node.h \
	cli/fetch/probe.c cli/fetch/probe.h \
	cli/fetch/record.c cli/fetch/record.h \
	cli/inputs/asked.c cli/inputs/asked.h \
	cli/inputs/captured_load.c cli/inputs/captured_load.h \
	cli/inputs/change.c cli/inputs/change.h \
	cli/inputs/hashes.c cli/inputs/hashes.h \
	cli/inputs/inputs.c cli/inputs/inputs.h \
	cli/live/analyze.c cli/live/analyze.h \
	cli/live/children.c cli/live/children.h \
	cli/live/digest.c cli/live/digest.h \
	cli/live/live.c cli/live/live.h \
	cli/live/replay.c cli/live/replay.h \
	cli/live/show_digest.c cli/live/show_digest.h \
	cli/output/answer.c cli/output/answer.h \
	cli/output/choice.c cli/output/choice.h \
	cli/output/grid.c cli/output/grid.h \
	cli/output/matrix.c cli/output/matrix.h \
	cli/output/rows.h \
	cli/output/safe.c cli/output/safe.h \
	cli/output/text.c cli/output/text.h \
	cli/output/units.c cli/output/units.h \
	cli/plan/plan.c cli/plan/plan.h \
	cli/plan/plan_files.c cli/plan/plan_files.h \
	cli/plan/plan_job.c cli/plan/plan_job.h \
	cli/plan/plan_job_print.c \
	cli/plan/plan_ports.c cli/plan/plan_ports.h \
	cli/plan/previous.c cli/plan/previous.h \
	cli/show/export.c \
	cli/show/show.h \
	cli/show/show_collisions.c \
	cli/show/show_diagnoses.c \
	cli/show/show_doctor.c \
	cli/show/show_events.c \
	cli/show/show_explain.c \
	cli/show/show_explain_named.c \
	cli/show/show_explain_node.c \
	cli/show/show_hash.c \
	cli/show/show_history.c \
	cli/show/show_imbalance.c \
	cli/show/show_json.c \
	cli/show/show_links.c \
	cli/show/show_lossy.c cli/show/show_lossy.h \
	cli/show/show_matrix.c cli/show/show_matrix.h \
	cli/show/show_paths.c \
	cli/show/show_moves.c \
	cli/show/show_plans.c \
	cli/show/show_probes.c \
	cli/show/show_qps.c \
	cli/show/show_ranks.c \
	cli/show/show_probe.c \
	cli/show/show_rhythm.c \
	cli/show/show_spread.c \
	cli/show/show_topology.c \
	cli/top/show_top.c cli/top/show_top.h \
	cli/top/top.c cli/top/top.h \
	cli/top/top_fetch.c cli/top/top_fetch.h \
	cli/top/top_screen.c cli/top/top_screen.h \
	cli/top/top_view.c cli/top/top_view.h \
	cli/traces/astra.c cli/traces/astra.h \
	cli/traces/astra_files.c cli/traces/astra_files.h \
	cli/traces/chakra.h \
	cli/traces/chakra_export.c \
	cli/traces/chakra_import.c \
	cli/whatif/whatif.c cli/whatif/whatif.h \
	cli/whatif/whatif_error.c cli/whatif/whatif_error.h

bin_PROGRAMS += cli/fabrictrace
cli_fabrictrace_SOURCES = cli/main.c
cli_fabrictrace_LDADD = cli/libftcli.a lib/whatif/libftwhatif.a lib/files/libftfiles.a lib/sim/libftsim.a \
	lib/diagnosis/libftdiagnosis.a lib/fabric/libftfabric.a lib/config/libftconfig.a proto/libftproto.a $(IO_LIBS) \
	$(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) \
	$(XXHASH_LIBS) $(NCURSES_LIBS) -lm
