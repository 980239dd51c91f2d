# SPDX-License-Identifier: Apache-2.0
# The wrap of libibverbs over a library that says what it is asked to do; real queue pairs are in
# tests/rxe.
EXTRA_DIST += tests/shim/README.md tests/shim/check_answers.py tests/shim/check_shim.py tests/shim/check_followed.py tests/shim/fake_verbs.c tests/shim/fake_verbs.map \
	tests/shim/fake_mlx5.c tests/shim/fake_mlx5.map tests/shim/job.c
if HAVE_VERBS
TESTS += tests/shim/check_answers.py tests/shim/check_shim.py tests/shim/check_followed.py
shim_parts = tests/shim/fake/libibverbs.so.1 tests/shim/fake/libmlx5.so.1 tests/shim/job \
	tests/shim/asan/libibverbs.so tests/shim/asan/job
check_DATA += $(shim) $(shim_parts)
CLEANFILES += $(shim_parts)
shim_compile = $(CC) $(AM_CPPFLAGS) $(places) $(CPPFLAGS) $(IBVERBS_CFLAGS) -std=gnu11 $(WARN_FLAGS) $(CFLAGS)
shim_asan = -fsanitize=address,undefined -fno-sanitize-recover=all -g

tests/shim/fake/libibverbs.so.1: tests/shim/fake_verbs.c tests/shim/fake_verbs.map config.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(shim_compile) -fPIC -shared $(LDFLAGS) \
		-Wl,-soname,$(@F),--version-script=$(srcdir)/tests/shim/fake_verbs.map -o $@ \
		$(srcdir)/tests/shim/fake_verbs.c
tests/shim/fake/libmlx5.so.1: tests/shim/fake_mlx5.c tests/shim/fake_mlx5.map config.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(shim_compile) -fPIC -shared $(LDFLAGS) \
		-Wl,-soname,$(@F),--version-script=$(srcdir)/tests/shim/fake_mlx5.map -o $@ \
		$(srcdir)/tests/shim/fake_mlx5.c
# Linked against the real library, as jobs are.
tests/shim/job: tests/shim/job.c config.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(shim_compile) $(LDFLAGS) -o $@ \
		$(srcdir)/tests/shim/job.c $(IBVERBS_LIBS) -ldl
# With sanitizers of their own, whatever the build has.
tests/shim/asan/job: tests/shim/job.c config.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(shim_compile) $(shim_asan) $(LDFLAGS) -o $@ \
		$(srcdir)/tests/shim/job.c $(IBVERBS_LIBS) -ldl
tests/shim/asan/libibverbs.so: $(shim_sources) $(shim_headers) agent/shim/exports.map config.h
	$(AM_V_CCLD)$(MKDIR_P) $(@D) && $(shim_compile) $(shim_asan) -fPIC -fvisibility=hidden -shared \
		-Wl,-soname,$(@F) $(LDFLAGS) -Wl,--version-script=$(srcdir)/agent/shim/exports.map \
		-o $@ $(shim_sources:%=$(srcdir)/%) -Wl,--no-as-needed $(IBVERBS_LIBS) -ldl
endif
