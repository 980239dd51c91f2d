# SPDX-License-Identifier: Apache-2.0
agent_tests = tests/unit/check_aggregates tests/unit/check_capture tests/unit/check_flows tests/unit/check_interfaces tests/unit/check_missing \
	tests/unit/check_owners tests/unit/check_owners_others tests/unit/check_rdma_devices tests/unit/check_rdma_monitor tests/unit/check_rdma_nldev tests/unit/check_rdma_qpc \
	tests/unit/check_rdma_sysfs tests/unit/check_rdma_table \
	tests/unit/check_report tests/unit/check_settings tests/unit/check_sniffer tests/unit/check_states \
	tests/unit/check_uplink
check_PROGRAMS += $(agent_tests)
TESTS += $(agent_tests)

tests_unit_check_aggregates_SOURCES = tests/unit/check_aggregates.c tests/unit/unit.h
tests_unit_check_aggregates_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_aggregates_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_capture_SOURCES = tests/unit/check_capture.c tests/unit/balanced.h tests/unit/unit.h
tests_unit_check_capture_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_capture_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_flows_SOURCES = tests/unit/check_flows.c tests/unit/unit.h
tests_unit_check_flows_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_flows_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_interfaces_SOURCES = tests/unit/check_interfaces.c tests/unit/unit.h
tests_unit_check_interfaces_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_interfaces_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_missing_SOURCES = tests/unit/check_missing.c tests/unit/unit.h
tests_unit_check_missing_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_missing_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_states_SOURCES = tests/unit/check_states.c tests/unit/ras_answer.h tests/unit/unit.h
tests_unit_check_states_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_states_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_sniffer_SOURCES = tests/unit/check_sniffer.c tests/unit/unit.h
tests_unit_check_sniffer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sniffer_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_report_SOURCES = tests/unit/check_report.c tests/unit/unit.h
tests_unit_check_report_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_report_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_settings_SOURCES = tests/unit/check_settings.c tests/unit/unit.h
tests_unit_check_settings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_settings_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_uplink_SOURCES = tests/unit/check_uplink.c tests/unit/balanced.h tests/unit/unit.h
tests_unit_check_uplink_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_uplink_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

nccl_tests = tests/unit/check_collectives tests/unit/check_jobs tests/unit/check_progress \
	tests/unit/check_rings
check_PROGRAMS += $(nccl_tests)
TESTS += $(nccl_tests)

tests_unit_check_collectives_SOURCES = tests/unit/check_collectives.c tests/unit/unit.h
tests_unit_check_collectives_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_collectives_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_jobs_SOURCES = tests/unit/check_jobs.c tests/unit/jobs_rig.h tests/unit/unit.h
tests_unit_check_jobs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_jobs_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)
tests_unit_check_jobs_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_rings_read -Wl,--wrap=ft_uplink_record

check_PROGRAMS += tests/unit/check_jobs_steps
TESTS += tests/unit/check_jobs_steps
tests_unit_check_jobs_steps_SOURCES = tests/unit/check_jobs_steps.c tests/unit/jobs_rig.h \
	tests/unit/unit.h
tests_unit_check_jobs_steps_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_jobs_steps_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)
tests_unit_check_jobs_steps_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=getsockopt \
	-Wl,--wrap=ft_uplink_record

check_PROGRAMS += tests/unit/check_jobs_sent
TESTS += tests/unit/check_jobs_sent
tests_unit_check_jobs_sent_SOURCES = tests/unit/check_jobs_sent.c tests/unit/jobs_rig.h \
	tests/unit/lingering.h tests/unit/unit.h
tests_unit_check_jobs_sent_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_jobs_sent_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)
tests_unit_check_jobs_sent_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_uplink_record

tests_unit_check_progress_SOURCES = tests/unit/check_progress.c tests/unit/unit.h
tests_unit_check_progress_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_progress_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_rings_SOURCES = tests/unit/check_rings.c tests/unit/unit.h
tests_unit_check_rings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rings_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_owners_SOURCES = tests/unit/check_owners.c tests/unit/unit.h
tests_unit_check_owners_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_owners_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_rdma_monitor_SOURCES = tests/unit/check_rdma_monitor.c tests/unit/unit.h
tests_unit_check_rdma_monitor_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rdma_monitor_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_rdma_nldev_SOURCES = tests/unit/check_rdma_nldev.c tests/unit/unit.h tests/unit/nldev_bytes.h
tests_unit_check_rdma_nldev_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rdma_nldev_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_rdma_sysfs_SOURCES = tests/unit/check_rdma_sysfs.c tests/unit/unit.h
tests_unit_check_rdma_sysfs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rdma_sysfs_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_rdma_table_SOURCES = tests/unit/check_rdma_table.c tests/unit/unit.h \
	tests/unit/rdma_table_rig.h
tests_unit_check_rdma_table_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rdma_table_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_rdma_ends
TESTS += tests/unit/check_rdma_ends
tests_unit_check_rdma_ends_SOURCES = tests/unit/check_rdma_ends.c tests/unit/unit.h \
	tests/unit/rdma_table_rig.h
tests_unit_check_rdma_ends_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rdma_ends_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_rdma_qpc_SOURCES = tests/unit/check_rdma_qpc.c tests/unit/unit.h \
	tests/unit/nldev_bytes.h
tests_unit_check_rdma_qpc_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rdma_qpc_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

tests_unit_check_owners_others_SOURCES = tests/unit/check_owners_others.c tests/unit/unit.h
tests_unit_check_owners_others_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_owners_others_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_plans
TESTS += tests/unit/check_plans
tests_unit_check_plans_SOURCES = tests/unit/check_plans.c tests/unit/lingering.h tests/unit/unit.h
tests_unit_check_plans_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_plans_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)
tests_unit_check_plans_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_plan_file_open \
	-Wl,--wrap=ft_plan_file_read -Wl,--wrap=getsockopt -Wl,--wrap=ft_uplink_record

check_PROGRAMS += tests/unit/check_rdma_limits
TESTS += tests/unit/check_rdma_limits
tests_unit_check_rdma_limits_SOURCES = tests/unit/check_rdma_limits.c tests/unit/unit.h \
	tests/unit/nldev_bytes.h
tests_unit_check_rdma_limits_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rdma_limits_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)
tests_unit_check_rdma_limits_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=ft_netlink_new \
	-Wl,--wrap=ft_netlink_free -Wl,--wrap=ft_netlink_request -Wl,--wrap=ft_owners_get \
	-Wl,--wrap=ft_rdma_devices_find -Wl,--wrap=ft_rdma_query \
	-Wl,--wrap=ft_rdma_table_to_query

tests_unit_check_rdma_devices_SOURCES = tests/unit/check_rdma_devices.c tests/unit/unit.h
tests_unit_check_rdma_devices_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_rdma_devices_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_course
TESTS += tests/unit/check_course
tests_unit_check_course_SOURCES = tests/unit/check_course.c tests/unit/unit.h
tests_unit_check_course_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_course_LDADD = $(AGENT_LIBS) $(CHECK_LIBS)
