# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += lib/sim/libftsim.a
lib_sim_libftsim_a_SOURCES = \
	lib/sim/astra.c lib/sim/astra.h \
	lib/sim/astra_net.c lib/sim/astra_net.h \
	lib/sim/astra_phases.c lib/sim/astra_phases.h \
	lib/sim/astra_system.c lib/sim/astra_system.h \
	lib/sim/clos.c lib/sim/clos.h \
	lib/sim/colour.c lib/sim/colour.h \
	lib/sim/demand.h \
	lib/sim/fluid.c lib/sim/fluid.h \
	lib/sim/hashed.c lib/sim/hashed.h \
	lib/sim/policies.c lib/sim/policies.h \
	lib/sim/ends.c lib/sim/ends.h \
	lib/sim/loads.c lib/sim/loads.h \
	lib/sim/placement.c lib/sim/placement.h \
	lib/sim/plan.c lib/sim/plan.h \
	lib/sim/reassign.c lib/sim/reassign.h
