# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += tests/kafka/README.md tests/kafka/admin.py tests/kafka/broker.py tests/kafka/check_brokers.py tests/kafka/check_group.py \
	tests/kafka/check_refusals.py tests/kafka/check_senders.py tests/kafka/check_ingest.py tests/kafka/check_late.py tests/kafka/check_pipeline.py tests/kafka/check_spool.py \
	tests/kafka/check_topics.py tests/kafka/check_readers.py tests/kafka/check_rebalance.py tests/kafka/check_registry.py \
	tests/kafka/check_transactions.py tests/kafka/cluster.py tests/kafka/pom.xml tests/kafka/registry.py \
	tests/kafka/registry_front.py tests/kafka/sharing.py tests/kafka/sizes.py tests/kafka/spooling.py

# Needs no broker: librdkafka plays one.
dist_check_SCRIPTS += tests/kafka/check_tasks.py
if HAVE_KAFKA
TESTS += tests/kafka/check_tasks.py
endif

check_PROGRAMS += tests/kafka/check_kafka tests/kafka/feeder tests/kafka/producer
tests_kafka_check_kafka_SOURCES = tests/kafka/check_kafka.c
tests_kafka_check_kafka_LDADD = $(IO_LIBS)
tests_kafka_feeder_SOURCES = tests/kafka/feeder.c
tests_kafka_feeder_LDADD = $(TOPICS_LIBS)
tests_kafka_producer_SOURCES = tests/kafka/producer.c
tests_kafka_producer_LDADD = $(IO_LIBS)

# Starts a real broker, so it is no part of "make check".
check-kafka: tests/kafka/check_kafka
	tests/kafka/check_kafka $(srcdir)/tests/kafka/broker.py
.PHONY: check-kafka
