# SPDX-License-Identifier: Apache-2.0
# The web page. Where npm is there it is built from its sources (page/README.md); a release tarball
# brings it built, in page/built; --without-page leaves it out.
PAGE_FILES = page/.npmrc page/package.json page/package-lock.json page/tsconfig.json page/build.mjs \
	page/src/advice.ts page/src/all.css page/src/api.ts page/src/chance.ts page/src/chart.tsx \
	page/src/copytext.ts page/src/drawing.tsx page/src/history.ts page/src/hooks.ts page/src/icon.svg \
	page/src/index.html page/src/lock.tsx page/src/main.tsx page/src/matrix.tsx page/src/model.ts page/src/page.css \
	page/src/over.ts page/src/past.ts page/src/table.tsx page/src/theme.ts \
	page/src/records.ts page/src/route.ts page/src/save.ts page/src/scale.ts page/src/scroll.ts page/src/scrubber.tsx page/src/search.ts \
	page/src/searchfield.tsx page/src/store.ts page/src/stream.ts page/src/text.ts page/src/timeline.ts \
	page/src/token.ts page/src/ui.tsx \
	page/src/views/events.tsx page/src/views/fabric.tsx page/src/views/flows.tsx \
	page/src/views/choices.tsx page/src/views/diagnoses.tsx page/src/views/imbalance.tsx page/src/views/jobs.tsx page/src/views/links.tsx \
	page/src/views/places.tsx page/src/views/plans.tsx page/src/views/probes.tsx page/src/views/unseen.tsx \
	page/src/views/whatif.tsx page/src/wayinfo.ts page/src/whatif.ts
PAGE_TEST_FILES = page/tests/api.test.ts page/tests/chance.test.ts page/tests/copytext.test.ts \
	page/tests/model.test.ts page/tests/over.test.ts page/tests/past.test.ts page/tests/route.test.ts page/tests/save.test.ts page/tests/scale.test.ts page/tests/search.test.ts \
	page/tests/store.test.ts page/tests/stream.test.ts page/tests/text.test.ts \
	page/tests/timeline.test.ts page/tests/token.test.ts page/tests/whatif.test.ts
EXTRA_DIST += page/README.md page/fabric.png $(PAGE_FILES) $(PAGE_TEST_FILES)

if HAVE_PAGE
nodist_daemon_libftdaemon_a_SOURCES = daemon/api/page_files.c
CLEANFILES += daemon/api/page_files.c

# npm works in the build folder: the sources may be read-only.
page/sources: $(addprefix $(srcdir)/,$(PAGE_FILES) $(PAGE_TEST_FILES))
	$(AM_V_at)$(MKDIR_P) page && if test ! page -ef $(srcdir)/page; then \
		for file in $(PAGE_FILES) $(PAGE_TEST_FILES); do \
			$(MKDIR_P) "$$(dirname $$file)" && cp -f $(srcdir)/$$file $$file || exit 1; done; fi
	$(AM_V_at)touch $@
page/packages: $(srcdir)/page/package-lock.json page/sources
	$(AM_V_GEN)if cmp -s page/package-lock.json page/packages; then touch $@; exit; fi; \
	(cd page && $(NPM) ci --no-audit --no-fund --loglevel=error >npm.log 2>&1) || { cat page/npm.log >&2; \
		echo "make: the page's libraries cannot be had by npm (page/package.json);" \
			"configure --without-page leaves the page out" >&2; exit 1; }; \
	cp page/package-lock.json $@

if PAGE_BUILT
daemon/api/page_files.c: $(srcdir)/page/built/page_files.c
	$(AM_V_GEN)$(MKDIR_P) daemon/api && cp $< $@
else
daemon/api/page_files.c: page/sources page/packages
	$(AM_V_GEN)$(MKDIR_P) daemon/api && \
	(cd page && $(NODE) build.mjs --out dist --c page_files.c) && mv page/page_files.c $@
endif

# The page's types and modules; what it shows in a browser is tested by tests/page/run.py, which takes
# page/dist.
check-page: page/sources page/packages
	$(AM_V_at)cd page && $(NODE) node_modules/typescript/bin/tsc --noEmit && \
		$(NODE) build.mjs --tests && $(NODE) build.mjs --out dist

# The tarball brings the page built, with the licences of what is in it.
page-dist: daemon/api/page_files.c
	$(MKDIR_P) $(distdir)/page/built
	cp daemon/api/page_files.c $(distdir)/page/built/
	cp $$(ls page/dist/licences.txt $(srcdir)/page/built/licences.txt 2>/dev/null | head -n 1) \
		$(distdir)/page/built/
else
page-dist:
	@echo "make: a tarball brings the page built: configure where node and npm are there" >&2; exit 1
endif
.PHONY: check-page page-dist

clean-local:
	rm -rf page/dist page/sources page/packages page/npm.log page/tests/out
	test page -ef $(srcdir)/page || rm -rf page
