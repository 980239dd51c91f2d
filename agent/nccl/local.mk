# SPDX-License-Identifier: Apache-2.0
# The plugin that NCCL loads. One shared object with three symbols: no libtool for that. It links
# nothing but the C library, and stays mapped, since NCCL's threads may call after a dlclose(3).
nccl_sources = agent/nccl/chain.c agent/nccl/comms.c agent/nccl/core.c agent/nccl/gpu.c agent/nccl/link.c \
	agent/nccl/plugin.c agent/nccl/trace.c
nccl_headers = agent/nccl/abi.h agent/nccl/chain.h agent/nccl/core.h agent/nccl/gpu.h \
	agent/nccl/link.h agent/nccl/segment.h agent/nccl/trace.h \
	agent/nccl/trace_entry.h agent/nccl/trace_ring.h
nccl_plugin = agent/nccl/libnccl-profiler-fabrictrace.so
nccl_cflags = -std=gnu11 $(WARN_FLAGS) -fstack-protector-strong -fPIC -fvisibility=hidden
nccl_ldflags = -shared -pthread -Wl,-z,defs,-z,relro,-z,now,-z,nodelete

plugindir = $(libdir)/fabrictrace
plugin_DATA = $(nccl_plugin)
EXTRA_DIST += $(nccl_sources) $(nccl_headers) agent/nccl/exports.map
CLEANFILES += $(nccl_plugin)

# An undefined sanitizer run-time is the loading program's to bring, so no sanitizer here; the
# harness compiles the same sources into itself for that.
$(nccl_plugin): $(nccl_sources) $(nccl_headers) agent/nccl/exports.map config.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && \
	$(CC) $(AM_CPPFLAGS) $(places) $(CPPFLAGS) $(nccl_cflags) $(CFLAGS) $(nccl_ldflags) $(LDFLAGS) \
		-Wl,--version-script=$(srcdir)/agent/nccl/exports.map -o $@ \
		$(nccl_sources:%=$(srcdir)/%) -ldl
