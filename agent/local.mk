# SPDX-License-Identifier: Apache-2.0
noinst_LIBRARIES += agent/libftagent.a
agent_libftagent_a_SOURCES = \
	agent/account.c agent/account.h \
	agent/capture.c agent/capture.h \
	agent/engine.c agent/engine.h \
	agent/flows.c agent/flows.h \
	agent/interfaces.c agent/interfaces.h \
	agent/live.c agent/live.h \
	agent/metrics.c agent/metrics.h \
	agent/privilege.c agent/privilege.h \
	agent/replay.c agent/replay.h \
	agent/report.c agent/report.h \
	agent/settings.c agent/settings.h \
	agent/uplink.c agent/uplink.h
