# SPDX-License-Identifier: Apache-2.0
fabric_tests = tests/unit/check_crossings tests/unit/check_evidence tests/unit/check_judge \
	tests/unit/check_metrics tests/unit/check_paths tests/unit/check_topology
check_PROGRAMS += $(fabric_tests)
TESTS += $(fabric_tests)

tests_unit_check_crossings_SOURCES = tests/unit/check_crossings.c tests/unit/unit.h \
	tests/unit/crossings_rig.h
tests_unit_check_crossings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_crossings_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_crossings_claims
TESTS += tests/unit/check_crossings_claims
tests_unit_check_crossings_claims_SOURCES = tests/unit/check_crossings_claims.c tests/unit/unit.h \
	tests/unit/crossings_rig.h
tests_unit_check_crossings_claims_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_crossings_claims_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a \
	$(CHECK_LIBS)

tests_unit_check_topology_SOURCES = tests/unit/check_topology.c tests/unit/unit.h
tests_unit_check_topology_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_topology_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_paths_SOURCES = tests/unit/check_paths.c tests/unit/unit.h
tests_unit_check_paths_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_paths_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_detour
TESTS += tests/unit/check_detour
tests_unit_check_detour_SOURCES = tests/unit/check_detour.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_detour_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_detour_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_evidence_SOURCES = tests/unit/check_evidence.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/evidence_rig.h
tests_unit_check_evidence_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_evidence_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_evidence_shares
TESTS += tests/unit/check_evidence_shares
tests_unit_check_evidence_shares_SOURCES = tests/unit/check_evidence_shares.c \
	tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/evidence_rig.h tests/unit/wide_pods.h
tests_unit_check_evidence_shares_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_evidence_shares_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_volume
TESTS += tests/unit/check_volume
tests_unit_check_volume_SOURCES = tests/unit/check_volume.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/judge_rig.h
tests_unit_check_volume_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_volume_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_sightings
TESTS += tests/unit/check_sightings
tests_unit_check_sightings_SOURCES = tests/unit/check_sightings.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/evidence_rig.h
tests_unit_check_sightings_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_sightings_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_judge_SOURCES = tests/unit/check_judge.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/judge_rig.h
tests_unit_check_judge_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_judge_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_judge_links
TESTS += tests/unit/check_judge_links
tests_unit_check_judge_links_SOURCES = tests/unit/check_judge_links.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/judge_rig.h
tests_unit_check_judge_links_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_judge_links_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

tests_unit_check_metrics_SOURCES = tests/unit/check_metrics.c tests/unit/unit.h
tests_unit_check_metrics_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_metrics_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_trust tests/unit/check_departure
TESTS += tests/unit/check_trust tests/unit/check_departure
tests_unit_check_trust_SOURCES = tests/unit/check_trust.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_trust_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_trust_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)
tests_unit_check_departure_SOURCES = tests/unit/check_departure.c tests/unit/leafspine.h \
	tests/unit/unit.h tests/unit/wide_pods.h
tests_unit_check_departure_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_departure_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_dispersion
TESTS += tests/unit/check_dispersion
tests_unit_check_dispersion_SOURCES = tests/unit/check_dispersion.c tests/unit/unit.h
tests_unit_check_dispersion_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_dispersion_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/check_spread
TESTS += tests/unit/check_spread
tests_unit_check_spread_SOURCES = tests/unit/check_spread.c tests/unit/unit.h
tests_unit_check_spread_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_spread_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/check_hash_behind
TESTS += tests/unit/check_hash_behind
tests_unit_check_hash_behind_SOURCES = tests/unit/check_hash_behind.c tests/unit/switch_hashes.h tests/unit/unit.h
tests_unit_check_hash_behind_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hash_behind_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)
check_PROGRAMS += tests/unit/check_hash_model
TESTS += tests/unit/check_hash_model
tests_unit_check_hash_model_SOURCES = tests/unit/check_hash_model.c tests/unit/switch_hashes.h tests/unit/unit.h
tests_unit_check_hash_model_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hash_model_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_hinted
TESTS += tests/unit/check_hinted
tests_unit_check_hinted_SOURCES = tests/unit/check_hinted.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_hinted_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_hinted_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_choice
TESTS += tests/unit/check_choice
tests_unit_check_choice_SOURCES = tests/unit/check_choice.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_choice_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_choice_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_index
TESTS += tests/unit/check_index
tests_unit_check_index_SOURCES = tests/unit/check_index.c tests/unit/unit.h
tests_unit_check_index_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_index_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(XXHASH_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_verdict
TESTS += tests/unit/check_verdict
tests_unit_check_verdict_SOURCES = tests/unit/check_verdict.c tests/unit/unit.h
tests_unit_check_verdict_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_verdict_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_narrow
TESTS += tests/unit/check_narrow
tests_unit_check_narrow_SOURCES = tests/unit/check_narrow.c tests/unit/unit.h
tests_unit_check_narrow_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_narrow_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(XXHASH_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_reach
TESTS += tests/unit/check_reach
tests_unit_check_reach_SOURCES = tests/unit/check_reach.c tests/unit/leafspine.h tests/unit/unit.h
tests_unit_check_reach_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_reach_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(XXHASH_LIBS) $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_skewed
TESTS += tests/unit/check_skewed
tests_unit_check_skewed_SOURCES = tests/unit/check_skewed.c tests/unit/unit.h
tests_unit_check_skewed_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_skewed_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_weights
TESTS += tests/unit/check_weights
tests_unit_check_weights_SOURCES = tests/unit/check_weights.c tests/unit/unit.h
tests_unit_check_weights_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_weights_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS)

check_PROGRAMS += tests/unit/check_tomography
TESTS += tests/unit/check_tomography
tests_unit_check_tomography_SOURCES = tests/unit/check_tomography.c tests/unit/unit.h
tests_unit_check_tomography_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_tomography_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS) -lm

check_PROGRAMS += tests/unit/check_singular
TESTS += tests/unit/check_singular
tests_unit_check_singular_SOURCES = tests/unit/check_singular.c tests/unit/unit.h
tests_unit_check_singular_CFLAGS = $(AM_CFLAGS) $(CHECK_CFLAGS)
tests_unit_check_singular_LDADD = lib/fabric/libftfabric.a lib/base/libftbase.a $(CHECK_LIBS) -lm
