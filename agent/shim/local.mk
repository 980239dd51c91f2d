# SPDX-License-Identifier: Apache-2.0
# The wrap of libibverbs, for LD_PRELOAD in jobs whose owner has a plan. One shared object with one
# symbol; its SONAME is what dlopen(3) asks for.
shim_sources = agent/shim/ask.c agent/shim/shim.c
shim_headers = agent/shim/ask.h agent/shim/protocol.h
shim = agent/shim/libibverbs.so
shim_cflags = -std=gnu11 $(WARN_FLAGS) -fstack-protector-strong -fPIC -fvisibility=hidden
shim_ldflags = -shared -Wl,-soname,libibverbs.so,-z,defs,-z,relro,-z,now,-z,nodelete

EXTRA_DIST += $(shim_sources) $(shim_headers) agent/shim/exports.map
CLEANFILES += $(shim)
if HAVE_VERBS
shimdir = $(libdir)/fabrictrace/plan
shim_DATA = $(shim)
endif

# Sanitizers are the loading program's to bring, as for agent/nccl/.
$(shim): $(shim_sources) $(shim_headers) agent/shim/exports.map config.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && \
	$(CC) $(AM_CPPFLAGS) $(places) $(CPPFLAGS) $(IBVERBS_CFLAGS) $(shim_cflags) $(CFLAGS) $(shim_ldflags) \
		$(LDFLAGS) -Wl,--version-script=$(srcdir)/agent/shim/exports.map -o $@ \
		$(shim_sources:%=$(srcdir)/%) -Wl,--no-as-needed $(IBVERBS_LIBS) -ldl
