# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += packaging/install-deps packaging/lint.sh packaging/check_words.py packaging/list-sources .ci/run

# An installed unit names the path where its program went.
systemd_units = packaging/systemd/fabrictraced.service \
	packaging/systemd/fabrictrace-agent.service \
	packaging/systemd/fabrictrace-switchpoll.service \
	packaging/systemd/fabrictrace-switchpoll.socket
nodist_systemdsystemunit_DATA = $(systemd_units)
EXTRA_DIST += $(systemd_units:=.in) packaging/systemd/fabrictrace.sysusers
CLEANFILES += $(systemd_units)
$(systemd_units): Makefile
	$(AM_V_GEN)$(MKDIR_P) packaging/systemd && \
	sed 's,@sbindir[@],$(sbindir),g' $(srcdir)/$@.in >$@.tmp && mv $@.tmp $@
packaging/systemd/fabrictraced.service: packaging/systemd/fabrictraced.service.in
packaging/systemd/fabrictrace-agent.service: packaging/systemd/fabrictrace-agent.service.in
packaging/systemd/fabrictrace-switchpoll.service: \
	packaging/systemd/fabrictrace-switchpoll.service.in
packaging/systemd/fabrictrace-switchpoll.socket: \
	packaging/systemd/fabrictrace-switchpoll.socket.in

# sysusers.d wants the name *.conf.
sysusersdir = $(prefix)/lib/sysusers.d
install-data-local:
	$(MKDIR_P) '$(DESTDIR)$(sysusersdir)'
	$(INSTALL_DATA) $(srcdir)/packaging/systemd/fabrictrace.sysusers \
		'$(DESTDIR)$(sysusersdir)/fabrictrace.conf'
uninstall-local:
	rm -f '$(DESTDIR)$(sysusersdir)/fabrictrace.conf'

prometheusdir = $(pkgdatadir)/prometheus
dist_prometheus_DATA = packaging/prometheus/fabrictrace.rules.yaml \
	packaging/prometheus/prometheus.yaml
grafanadir = $(pkgdatadir)/grafana
dist_grafana_DATA = \
	packaging/grafana/fabrictrace-fabric.json \
	packaging/grafana/fabrictrace-group.json \
	packaging/grafana/fabrictrace-health.json \
	packaging/grafana/fabrictrace-job.json \
	packaging/grafana/fabrictrace-link.json

dist_doc_DATA = README.md NEWS LICENSE
examplesdir = $(docdir)/examples
dist_examples_DATA = \
	packaging/examples/topology.yaml \
	packaging/examples/fabrictraced.yaml \
	packaging/examples/fabrictrace-agent.yaml \
	packaging/examples/fabrictrace-switchpoll.yaml \
	packaging/examples/switches.yaml

# Commands, options and values come from the program's own table (fabrictrace --complete).
dist_bashcompletion_DATA = packaging/completion/bash/fabrictrace
dist_zshcompletion_DATA = packaging/completion/zsh/_fabrictrace
