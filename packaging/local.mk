# SPDX-License-Identifier: Apache-2.0
EXTRA_DIST += packaging/install-deps packaging/lint.sh packaging/check_words.py packaging/cppcheck.txt packaging/list-sources packaging/static.sh .ci/run

# What packages are made of, by packaging/build-packages.
EXTRA_DIST += packaging/build-packages packaging/debian/changelog.in packaging/debian/control.in \
	packaging/debian/copyright packaging/debian/daemon.postinst.in packaging/debian/daemon.prerm.in \
	packaging/debian/not-installed packaging/debian/rules \
	packaging/debian/source/format packaging/debian/fabrictrace-agent.install \
	packaging/debian/fabrictrace-daemon.install packaging/debian/fabrictrace-daemon.postrm \
	packaging/debian/fabrictrace-agent.postrm packaging/debian/fabrictrace-switchpoll.postrm \
	packaging/debian/fabrictrace-doc.install packaging/debian/fabrictrace-nccl-plugin.install packaging/debian/fabrictrace-verbs.install \
	packaging/debian/fabrictrace-switchpoll.install packaging/debian/fabrictrace-tools.install \
	packaging/debian/fabrictrace-agent.lintian-overrides packaging/debian/fabrictrace-daemon.lintian-overrides \
	packaging/debian/fabrictrace-switchpoll.lintian-overrides \
	packaging/rpm/fabrictrace.spec.in packaging/rpm/rpmlint.toml

# Examples of a deployment, in the documentation's package.
containerdir = $(examplesdir)/container
dist_container_DATA = packaging/container/Containerfile
kubernetesdir = $(examplesdir)/kubernetes
dist_kubernetes_DATA = packaging/kubernetes/fabrictrace-agent.yaml
schedulerdir = $(examplesdir)/scheduler
dist_scheduler_SCRIPTS = packaging/scheduler/cordon-kubernetes packaging/scheduler/drain-slurm
ansible_files = packaging/ansible/fabrictrace_agent/defaults/main.yaml \
	packaging/ansible/fabrictrace_agent/handlers/main.yaml \
	packaging/ansible/fabrictrace_agent/tasks/main.yaml \
	packaging/ansible/fabrictrace_agent/templates/fabrictrace-agent.yaml.j2
EXTRA_DIST += $(ansible_files)

# An installed unit names the path where its program went.
systemd_units = packaging/systemd/fabrictraced.service \
	packaging/systemd/fabrictrace-agent.service \
	packaging/systemd/fabrictrace-switchpoll.service \
	packaging/systemd/fabrictrace-switchpoll.socket
nodist_systemdsystemunit_DATA = $(systemd_units)
dist_systemdsystemunit_DATA = packaging/systemd/fabrictrace.target
# What the messages in the journal mean: journalctl -x.
catalogdir = $(prefix)/lib/systemd/catalog
dist_catalog_DATA = packaging/systemd/fabrictrace.catalog
EXTRA_DIST += $(systemd_units:=.in) packaging/systemd/fabrictrace.sysusers packaging/systemd/fabrictrace.tmpfiles
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

# Both folders want the name *.conf.
sysusersdir = $(prefix)/lib/sysusers.d
tmpfilesdir = $(prefix)/lib/tmpfiles.d
install-data-local:
	for file in $(ansible_files:packaging/%=%); do \
		$(MKDIR_P) "$(DESTDIR)$(examplesdir)/$$(dirname $$file)" && \
		$(INSTALL_DATA) "$(srcdir)/packaging/$$file" "$(DESTDIR)$(examplesdir)/$$file" || exit 1; \
	done
	$(MKDIR_P) '$(DESTDIR)$(sysusersdir)' '$(DESTDIR)$(tmpfilesdir)'
	$(INSTALL_DATA) $(srcdir)/packaging/systemd/fabrictrace.sysusers \
		'$(DESTDIR)$(sysusersdir)/fabrictrace.conf'
	$(INSTALL_DATA) $(srcdir)/packaging/systemd/fabrictrace.tmpfiles \
		'$(DESTDIR)$(tmpfilesdir)/fabrictrace.conf'
uninstall-local:
	for file in $(ansible_files:packaging/%=%); do rm -f "$(DESTDIR)$(examplesdir)/$$file"; done
	rm -f '$(DESTDIR)$(sysusersdir)/fabrictrace.conf' '$(DESTDIR)$(tmpfilesdir)/fabrictrace.conf'

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
	packaging/examples/fabrictraced.logrotate \
	packaging/examples/fabrictraced.yaml \
	packaging/examples/fabrictrace-agent.yaml \
	packaging/examples/fabrictrace-switchpoll.yaml \
	packaging/examples/switches.yaml

# Commands, options and values come from the program's own table (fabrictrace --complete).
dist_bashcompletion_DATA = packaging/completion/bash/fabrictrace
dist_zshcompletion_DATA = packaging/completion/zsh/_fabrictrace
