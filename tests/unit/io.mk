# SPDX-License-Identifier: Apache-2.0
io_tests = tests/unit/check_loop tests/unit/check_netlink tests/unit/check_pcap tests/unit/check_frame \
	tests/unit/check_transport tests/unit/check_tls tests/unit/check_http tests/unit/check_http_room \
	tests/unit/check_http_rendering tests/unit/check_http_response \
	tests/unit/check_spool tests/unit/check_turns tests/unit/check_standby tests/unit/check_kafka_consumer \
	tests/unit/check_kafka_group tests/unit/check_kafka_commit tests/unit/check_kafka_topics \
	tests/unit/check_kafka_reader tests/unit/check_kafka_spool
check_PROGRAMS += $(io_tests)
TESTS += $(io_tests)

tests_unit_check_netlink_SOURCES = tests/unit/check_netlink.c tests/unit/unit.h
tests_unit_check_netlink_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_netlink_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_loop_SOURCES = tests/unit/check_loop.c tests/unit/unit.h
tests_unit_check_loop_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_loop_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_pcap_SOURCES = tests/unit/check_pcap.c tests/unit/unit.h
tests_unit_check_pcap_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_pcap_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_frame_SOURCES = tests/unit/check_frame.c tests/unit/unit.h
tests_unit_check_frame_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_frame_LDADD = $(IO_LIBS) $(CHECK_LIBS)

transport_rig = tests/unit/transport_rig.c tests/unit/transport_rig.h tests/unit/unit.h

tests_unit_check_transport_SOURCES = tests/unit/check_transport.c $(transport_rig) \
	tests/unit/transport_shared.h
tests_unit_check_transport_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_transport_LDADD = $(IO_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_transport_losses
TESTS += tests/unit/check_transport_losses
tests_unit_check_transport_losses_SOURCES = tests/unit/check_transport_losses.c $(transport_rig) \
	tests/unit/transport_shared.h
tests_unit_check_transport_losses_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_transport_losses_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_tls_SOURCES = tests/unit/check_tls.c $(transport_rig)
tests_unit_check_tls_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_tls_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_standby_SOURCES = tests/unit/check_standby.c $(transport_rig)
tests_unit_check_standby_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_standby_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_turns_SOURCES = tests/unit/check_turns.c $(transport_rig)
tests_unit_check_turns_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_turns_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_spool_SOURCES = tests/unit/check_spool.c tests/unit/unit.h
tests_unit_check_spool_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_spool_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_http_SOURCES = tests/unit/check_http.c tests/unit/unit.h
tests_unit_check_http_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_http_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_http_rendering_SOURCES = tests/unit/check_http_rendering.c tests/unit/unit.h
tests_unit_check_http_rendering_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_http_rendering_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_http_response_SOURCES = tests/unit/check_http_response.c tests/unit/unit.h
tests_unit_check_http_response_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_http_response_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_http_room_SOURCES = tests/unit/check_http_room.c tests/unit/unit.h
tests_unit_check_http_room_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_http_room_LDADD = $(IO_LIBS) $(CHECK_LIBS)

if HAVE_SNMP
check_PROGRAMS += tests/unit/check_snmp tests/unit/check_snmp_answered
TESTS += tests/unit/check_snmp tests/unit/check_snmp_answered
tests_unit_check_snmp_answered_SOURCES = tests/unit/check_snmp_answered.c tests/unit/unit.h
tests_unit_check_snmp_answered_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snmp_answered_LDADD = $(IO_LIBS) $(CHECK_LIBS)
tests_unit_check_snmp_SOURCES = tests/unit/check_snmp.c tests/unit/unit.h
tests_unit_check_snmp_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_snmp_LDADD = $(IO_LIBS) $(CHECK_LIBS)
endif

tests_unit_check_kafka_consumer_SOURCES = tests/unit/check_kafka_consumer.c tests/unit/unit.h
tests_unit_check_kafka_consumer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(RDKAFKA_CFLAGS)
tests_unit_check_kafka_consumer_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_kafka_queue_io_event_enable
tests_unit_check_kafka_consumer_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_kafka_group_SOURCES = tests/unit/check_kafka_group.c tests/unit/unit.h
tests_unit_check_kafka_group_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(RDKAFKA_CFLAGS)
tests_unit_check_kafka_group_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=rd_kafka_query_watermark_offsets
tests_unit_check_kafka_group_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_kafka_commit_SOURCES = tests/unit/check_kafka_commit.c tests/unit/unit.h
tests_unit_check_kafka_commit_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(RDKAFKA_CFLAGS)
tests_unit_check_kafka_commit_LDADD = $(IO_LIBS) $(CHECK_LIBS)
tests_unit_check_kafka_topics_SOURCES = tests/unit/check_kafka_topics.c tests/unit/unit.h
tests_unit_check_kafka_topics_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(RDKAFKA_CFLAGS)
tests_unit_check_kafka_topics_LDADD = $(IO_LIBS) $(CHECK_LIBS)
tests_unit_check_kafka_spool_SOURCES = tests/unit/check_kafka_spool.c tests/unit/unit.h
tests_unit_check_kafka_spool_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_kafka_spool_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_kafka_reader_SOURCES = tests/unit/check_kafka_reader.c tests/unit/unit.h
tests_unit_check_kafka_reader_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(RDKAFKA_CFLAGS)
tests_unit_check_kafka_reader_LDADD = $(IO_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_helper
TESTS += tests/unit/check_helper
tests_unit_check_helper_SOURCES = tests/unit/check_helper.c tests/unit/unit.h
tests_unit_check_helper_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_helper_LDADD = $(IO_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_closer
TESTS += tests/unit/check_closer
tests_unit_check_closer_SOURCES = tests/unit/check_closer.c tests/unit/lingering.h tests/unit/unit.h
tests_unit_check_closer_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_closer_LDADD = $(IO_LIBS) $(CHECK_LIBS)
tests_unit_check_closer_LDFLAGS = $(AM_LDFLAGS) -Wl,--wrap=close

check_PROGRAMS += tests/unit/check_local_users
TESTS += tests/unit/check_local_users
tests_unit_check_local_users_SOURCES = tests/unit/check_local_users.c tests/unit/unit.h
tests_unit_check_local_users_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_local_users_LDADD = $(IO_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_registry
TESTS += tests/unit/check_registry
tests_unit_check_registry_SOURCES = tests/unit/check_registry.c tests/unit/unit.h
tests_unit_check_registry_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_registry_LDADD = $(IO_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_connect tests/unit/check_ready
TESTS += tests/unit/check_connect tests/unit/check_ready
tests_unit_check_connect_SOURCES = tests/unit/check_connect.c tests/unit/unit.h
tests_unit_check_connect_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_connect_LDADD = $(IO_LIBS) $(CHECK_LIBS)

tests_unit_check_ready_SOURCES = tests/unit/check_ready.c tests/unit/unit.h
tests_unit_check_ready_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_ready_LDADD = $(IO_LIBS) $(CHECK_LIBS)

if HAVE_VERBS
check_PROGRAMS += tests/unit/check_verbs
TESTS += tests/unit/check_verbs
tests_unit_check_verbs_SOURCES = tests/unit/check_verbs.c tests/unit/unit.h
tests_unit_check_verbs_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS) $(IBVERBS_CFLAGS)
tests_unit_check_verbs_LDADD = $(IO_LIBS) $(CHECK_LIBS)
endif
