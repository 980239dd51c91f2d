# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/io/libftio.a
lib_io_libftio_a_SOURCES = \
	lib/io/common_metrics.c lib/io/common_metrics.h \
	lib/io/listen_local.c lib/io/listen_local.h \
	lib/io/helper.c lib/io/helper.h \
	lib/io/loop.c lib/io/loop.h \
	lib/io/incident.c lib/io/incident.h \
	lib/io/netlink.c lib/io/netlink.h \
	lib/io/journal.c lib/io/notify.c \
	lib/io/pack.c lib/io/pack.h \
	lib/io/pcap.c lib/io/pcap.h \
	lib/io/pcap_file.c lib/io/pcap_file.h \
	lib/io/ready.c lib/io/ready.h \
	lib/io/registry.c lib/io/registry.h \
	lib/io/registry_answer.c lib/io/registry_answer.h \
	lib/io/daemon_link.c lib/io/daemon_link.h \
	lib/io/status_page.c lib/io/status_page.h \
	lib/io/connect.c lib/io/endpoint.c lib/io/endpoint.h \
	lib/io/dialog.c lib/io/dialog.h \
	lib/io/frame.c lib/io/frame.h \
	lib/io/stream.c lib/io/stream.h \
	lib/io/tls.c lib/io/tls.h \
	lib/io/tls_client.c lib/io/tls_client.h \
	lib/io/unpack.c lib/io/unpack.h \
	lib/io/sender.c lib/io/sender_queue.c lib/io/sender_impl.h lib/io/transport.h \
	lib/io/candidates.c lib/io/candidates.h \
	lib/io/receiver.c lib/io/receiver_room.c lib/io/receiver_sources.c \
	lib/io/receiver_impl.h \
	lib/io/http.c lib/io/http_answer.c lib/io/http_channel.c lib/io/http_clients.c \
	lib/io/http_files.c lib/io/http_get.c lib/io/http_gzip.c lib/io/http_routes.c lib/io/http_slices.c \
	lib/io/http_rendering.c lib/io/http_rendering.h \
	lib/io/http_response.c lib/io/http_response.h \
	lib/io/web_client.c lib/io/web_client.h \
	lib/io/http.h lib/io/http_impl.h \
	lib/io/snmp.h lib/io/snmp_impl.h \
	lib/io/verbs.h \
	lib/io/spool.c lib/io/spool.h \
	lib/io/spool_segment.c lib/io/spool_segment.h \
	lib/io/kafka.c lib/io/kafka.h \
	lib/io/kafka_client.c lib/io/kafka_client.h \
	lib/io/kafka_commit.c lib/io/kafka_impl.h \
	lib/io/kafka_kept.c \
	lib/io/kafka_entry.c lib/io/kafka_entry.h \
	lib/io/kafka_errors.c lib/io/kafka_errors.h \
	lib/io/kafka_consumer.c lib/io/kafka_consumer.h \
	lib/io/kafka_group.c lib/io/kafka_group.h \
	lib/io/kafka_properties.c lib/io/kafka_properties.h \
	lib/io/kafka_reader.c lib/io/kafka_reader.h \
	lib/io/kafka_transaction.c lib/io/kafka_transaction.h \
	lib/io/kafka_stats.c lib/io/kafka_stats.h \
	lib/io/kafka_topics.c lib/io/kafka_topics.h

if HAVE_SNMP
lib_io_libftio_a_SOURCES += lib/io/snmp.c lib/io/snmp_auth.c lib/io/snmp_values.c
else
lib_io_libftio_a_SOURCES += lib/io/snmp_none.c
endif

if HAVE_VERBS
lib_io_libftio_a_SOURCES += lib/io/verbs.c
else
lib_io_libftio_a_SOURCES += lib/io/verbs_none.c
endif

# What a program that uses lib/io links, besides its own libraries in front; --as-needed drops what
# it does not use.
IO_LIBS = lib/io/libftio.a lib/base/libftbase.a $(EVENT_SSL_LIBS) $(EVENT_LIBS) $(PCAP_LIBS) \
	$(MNL_LIBS) $(RDKAFKA_LIBS) $(CURL_LIBS) $(JANSSON_LIBS) $(NETSNMP_LIBS) $(IBVERBS_LIBS) $(SYSTEMD_LIBS) $(ZLIB_LIBS) \
	$(ZSTD_LIBS)
