# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += cli/libftcli.a
cli_libftcli_a_SOURCES = \
	cli/analyze.c cli/analyze.h \
	cli/captured.c cli/captured.h cli/captured_load.c \
	cli/chakra.h cli/chakra_export.c cli/chakra_import.c \
	cli/change.c cli/change.h \
	cli/answer.c cli/answer.h \
	cli/args.c cli/args.h cli/args_commands.c cli/args_options.h cli/args_sim.c \
	cli/args_table.c cli/args_values.c \
	cli/astra.c cli/astra.h \
	cli/astra_files.c cli/astra_files.h \
	cli/children.c cli/children.h \
	cli/cli.c cli/cli.h \
	cli/consume.c cli/consume.h \
	cli/diagnose.c cli/diagnose.h \
	cli/digest.c cli/digest.h \
	cli/export.c \
	cli/fetch.c cli/fetch.h \
	cli/follow.c cli/follow.h \
	cli/grid.c cli/grid.h \
	cli/live.c cli/live.h \
	cli/loads.c cli/loads.h \
	cli/hashes.c cli/hashes.h \
	cli/inputs.c cli/inputs.h \
	cli/matrix.c cli/matrix.h \
	cli/moment.c cli/moment.h \
	cli/plan.c cli/plan.h \
	cli/plan_files.c cli/plan_files.h \
	cli/plan_job.c cli/plan_job.h cli/plan_job_print.c \
	cli/previous.c cli/previous.h \
	cli/record.c cli/record.h \
	cli/replay.c cli/replay.h \
	cli/rows.h \
	cli/safe.c cli/safe.h \
	cli/show.h \
	cli/show_collisions.c \
	cli/show_digest.c cli/show_digest.h \
	cli/show_doctor.c \
	cli/show_events.c \
	cli/show_explain.c \
	cli/show_explain_named.c \
	cli/show_diagnoses.c \
	cli/show_hash.c \
	cli/show_plans.c \
	cli/show_spread.c \
	cli/show_imbalance.c \
	cli/show_json.c \
	cli/show_links.c \
	cli/show_matrix.c cli/show_matrix.h \
	cli/show_paths.c \
	cli/show_qps.c \
	cli/show_ranks.c \
	cli/show_top.c cli/show_top.h \
	cli/show_topology.c \
	cli/text.c cli/text.h \
	cli/top.c cli/top.h \
	cli/top_fetch.c cli/top_fetch.h \
	cli/top_screen.c cli/top_screen.h \
	cli/top_view.c cli/top_view.h \
	cli/units.c cli/units.h \
	cli/whatif.c cli/whatif.h \
	cli/whatif_draw.c cli/whatif_draw.h \
	cli/whatif_error.c cli/whatif_error.h \
	cli/whatif_measure.c cli/whatif_measure.h \
	cli/whatif_record.c cli/whatif_record.h \
	cli/whatif_times.c cli/whatif_times.h

bin_PROGRAMS += cli/fabrictrace
cli_fabrictrace_SOURCES = cli/main.c
cli_fabrictrace_LDADD = cli/libftcli.a lib/files/libftfiles.a lib/sim/libftsim.a \
	lib/diagnosis/libftdiagnosis.a lib/fabric/libftfabric.a lib/config/libftconfig.a proto/libftproto.a $(IO_LIBS) \
	$(PROTOBUFC_LIBS) $(JANSSON_LIBS) $(YAML_LIBS) \
	$(XXHASH_LIBS) $(NCURSES_LIBS) -lm
