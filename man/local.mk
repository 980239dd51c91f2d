# SPDX-License-Identifier: Apache-2.0
dist_man_MANS += \
	man/fabrictrace.1 \
	man/fabrictrace-topology.5 \
	man/fabrictrace-api.7 \
	man/fabrictrace-deploy.7 \
	man/fabrictrace-incident.5 \
	man/fabrictrace-ingest.7 \
	man/fabrictrace-monitoring.7 \
	man/fabrictrace-oracle.7 \
	man/fabrictrace-records.7 \
	man/fabrictrace-security.7 \
	man/fabrictrace-switches.7 \
	man/fabrictrace-troubleshooting.7 \
	man/libibverbs-fabrictrace.7 \
	man/libnccl-profiler-fabrictrace.7 \
	man/fabrictrace-agent.8 \
	man/fabrictrace-switchpoll.8 \
	man/fabrictraced.8

# The list of fields comes from the comments of the records' definition; the page is in the tarball.
EXTRA_DIST += man/fabrictrace-records.7.in man/records.awk
MAINTAINERCLEANFILES += man/fabrictrace-records.7
man/fabrictrace-records.7: man/fabrictrace-records.7.in man/records.awk proto/fabrictrace.proto
	$(AM_V_GEN)$(MKDIR_P) man && { \
	sed '/^@RECORD_FIELDS@$$/,$$d' $(srcdir)/man/fabrictrace-records.7.in && \
	$(AWK) -f $(srcdir)/man/records.awk $(srcdir)/proto/fabrictrace.proto $(srcdir)/proto/fabrictrace.proto && \
	sed '1,/^@RECORD_FIELDS@$$/d' $(srcdir)/man/fabrictrace-records.7.in; } >$@.tmp && mv $@.tmp $@

# The option lists come from the daemons' own tables: the page cannot say what the program does not.
man_MANS += man/fabrictrace.yaml.5 man/fabrictrace-metrics.7 man/fabrictrace-topics.7
EXTRA_DIST += man/fabrictrace.yaml.5.in man/fabrictrace-metrics.7.in man/fabrictrace-topics.7.in
CLEANFILES += man/fabrictrace.yaml.5 man/fabrictrace-metrics.7 man/fabrictrace-topics.7
man/fabrictrace.yaml.5: man/fabrictrace.yaml.5.in $(sbin_PROGRAMS)
	$(AM_V_GEN)$(MKDIR_P) man && { \
	sed '/^@OPTIONS@$$/,$$d' $(srcdir)/man/fabrictrace.yaml.5.in && \
	for p in $(sbin_PROGRAMS); do \
		echo ".Sh FILE `basename $$p | tr a-z A-Z`.YAML" && ./$$p --print-mdoc || exit 1; \
	done && \
	sed '1,/^@OPTIONS@$$/d' $(srcdir)/man/fabrictrace.yaml.5.in; } >$@.tmp && mv $@.tmp $@
man/fabrictrace-metrics.7: man/fabrictrace-metrics.7.in $(sbin_PROGRAMS)
	$(AM_V_GEN)$(MKDIR_P) man && { \
	sed '/^@METRICS@$$/,$$d' $(srcdir)/man/fabrictrace-metrics.7.in && \
	for p in $(sbin_PROGRAMS); do \
		echo ".Sh METRICS OF `basename $$p | tr a-z A-Z`" && ./$$p --print-metrics || exit 1; \
	done && \
	sed -e '1,/^@METRICS@$$/d' -e 's,[@]pkgdatadir[@],$(pkgdatadir),' \
		$(srcdir)/man/fabrictrace-metrics.7.in; } >$@.tmp && mv $@.tmp $@

# The manual for a browser, in html/.
EXTRA_DIST += man/html.sh man/manual.css
mostlyclean-local:
	rm -rf html
html-local: $(dist_man_MANS) $(man_MANS)
	$(AM_V_GEN)pages=; for page in $(dist_man_MANS) $(man_MANS); do \
		test -e $$page || page=$(srcdir)/$$page; pages="$$pages $$page"; done; \
	$(srcdir)/man/html.sh html $(srcdir)/man/manual.css $$pages

# What the daemon says of its topics, with the fields of their records.
EXTRA_DIST += man/topics.awk
man/fabrictrace-topics.7: man/fabrictrace-topics.7.in man/topics.awk man/records.awk \
		proto/fabrictrace.proto daemon/fabrictraced$(EXEEXT)
	$(AM_V_GEN)$(MKDIR_P) man && \
	$(AWK) -f $(srcdir)/man/records.awk $(srcdir)/proto/fabrictrace.proto \
		$(srcdir)/proto/fabrictrace.proto >$@.fields && \
	daemon/fabrictraced$(EXEEXT) -c /dev/null --topics >$@.list && { \
	sed '/^@TOPICS@$$/,$$d' $(srcdir)/man/fabrictrace-topics.7.in && \
	$(AWK) -f $(srcdir)/man/topics.awk $@.fields $@.list && \
	sed '1,/^@TOPICS@$$/d' $(srcdir)/man/fabrictrace-topics.7.in; } >$@.tmp && \
	rm $@.fields $@.list && mv $@.tmp $@
