# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/fabric/libftfabric.a
lib_fabric_libftfabric_a_SOURCES = \
	lib/fabric/attested.c \
	lib/fabric/bound.c lib/fabric/chance.c lib/fabric/chance.h \
	lib/fabric/crossings.c lib/fabric/crossings.h lib/fabric/crossings_impl.h \
	lib/fabric/crossings_changes.c lib/fabric/crossings_judge.c \
	lib/fabric/departure.c \
	lib/fabric/detour.c lib/fabric/detour.h \
	lib/fabric/evenness.c lib/fabric/evenness.h \
	lib/fabric/evidence.c lib/fabric/evidence.h lib/fabric/evidence_impl.h \
	lib/fabric/choice.c lib/fabric/choice.h \
	lib/fabric/hash_basis.c lib/fabric/hash_impl.h \
	lib/fabric/hash_model.c lib/fabric/hash_model.h lib/fabric/hash_proof.c lib/fabric/hash_qp.c lib/fabric/effective.c lib/fabric/effective.h \
	lib/fabric/hinted.c lib/fabric/hinted.h \
	lib/fabric/index.c lib/fabric/index.h \
	lib/fabric/judge.c \
	lib/fabric/lossy.c lib/fabric/lossy.h \
	lib/fabric/metrics.c lib/fabric/metrics.h \
	lib/fabric/holds.c lib/fabric/holds.h \
	lib/fabric/narrow.c lib/fabric/narrow.h \
	lib/fabric/numbers.c lib/fabric/numbers.h \
	lib/fabric/paths.c lib/fabric/paths.h \
	lib/fabric/reach.c lib/fabric/reach.h \
	lib/fabric/shares.c \
	lib/fabric/singular.c lib/fabric/singular.h \
	lib/fabric/skewed.c lib/fabric/skewed.h \
	lib/fabric/spraying.c lib/fabric/spraying.h \
	lib/fabric/dispersion.c lib/fabric/dispersion.h lib/fabric/spread.c lib/fabric/spread.h \
	lib/fabric/topology.c lib/fabric/topology.h \
	lib/fabric/topology_build.c \
	lib/fabric/topology_builder.c \
	lib/fabric/topology_distance.c \
	lib/fabric/topology_impl.h \
	lib/fabric/tomography.c lib/fabric/tomography.h \
	lib/fabric/trial.c lib/fabric/trial.h \
	lib/fabric/trust.c lib/fabric/trust.h \
	lib/fabric/underuse.c lib/fabric/underuse.h \
	lib/fabric/union.c \
	lib/fabric/verdict.c lib/fabric/verdict.h \
	lib/fabric/volume.c lib/fabric/volume.h \
	lib/fabric/weights.c lib/fabric/weights.h
