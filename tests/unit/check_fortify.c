// SPDX-License-Identifier: Apache-2.0
/*
 * _FORTIFY_SOURCE as the programs are built with it, in force: a write past a buffer ends the
 * program. Level 2 knows sizes that the compiler knows; level 3 those that only the run shows.
 * Where configure found a lower level, or a sanitizer takes its place, that alone is looked at.
 */
#include "config.h"

#include <signal.h>
#include <stdint.h>
#include <string.h>
#include <sys/wait.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#if defined(_FORTIFY_SOURCE) && defined(__OPTIMIZE__)
#define LEVEL _FORTIFY_SOURCE
#else
#define LEVEL 0
#endif

#define FIXED 16

/* What the compiler cannot know. */
static size_t opaque(size_t n)
{
    volatile size_t kept = n;

    return kept;
}

static void write_fixed(size_t room, size_t len)
{
    char buffer[FIXED];

    (void)room;
    memset(buffer, 1, opaque(len));
    ck_assert_int_eq(*(volatile char *)&buffer[0], len ? 1 : 0);
}

static void write_allocated(size_t room, size_t len)
{
    char *buffer = malloc(opaque(room));

    ck_assert_ptr_nonnull(buffer);
    memset(buffer, 1, opaque(len));
    ck_assert_int_eq(*(volatile char *)buffer, 1);
    free(buffer);
}

/* The signal that ends a process which writes; 0: none does. */
static int ends_by(void (*writes)(size_t room, size_t len), size_t room, size_t len)
{
    int status;
    pid_t child = fork();

    ck_assert_int_ge(child, 0);
    if (child == 0) {
        close(STDERR_FILENO);
        writes(room, len);
        _exit(0);
    }
    ck_assert_int_eq(waitpid(child, &status, 0), child);
    return WIFSIGNALED(status) ? WTERMSIG(status) : 0;
}

START_TEST(a_write_past_a_buffer_ends_the_program)
{
    ck_assert_int_eq(ends_by(write_fixed, FIXED, FIXED), 0);
    ck_assert_int_eq(ends_by(write_allocated, 100, 100), 0);
    if (LEVEL >= 2)
        ck_assert_int_eq(ends_by(write_fixed, FIXED, FIXED + 1), SIGABRT);
    /* One byte, which malloc() itself would not notice. */
    if (LEVEL >= 3)
        ck_assert_int_eq(ends_by(write_allocated, 100, 101), SIGABRT);
}
END_TEST

START_TEST(it_is_the_level_that_configure_found)
{
    static const char found[] = FT_FORTIFY; /* "none" for 0 */
    int level = found[0] >= '0' && found[0] <= '9' ? found[0] - '0' : 0;

    ck_assert_int_ge(LEVEL, level);
}
END_TEST

FT_UNIT_MAIN("fortify", a_write_past_a_buffer_ends_the_program,
             it_is_the_level_that_configure_found)
