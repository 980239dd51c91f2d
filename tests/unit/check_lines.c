// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static int put(struct ft_lines *lines, const char *text, uint64_t *written)
{
    return ft_lines_write(lines, (const uint8_t *)text, strlen(text), written);
}

/* A full disk, which then has room again, breaks one line and no other. */
START_TEST(a_full_disk_breaks_one_line)
{
    const struct rlimit full = {8, RLIM_INFINITY}, room = {1000, RLIM_INFINITY};
    char file[] = "check_lines.XXXXXX", text[64] = "";
    struct ft_lines lines = {.fd = mkstemp(file)};
    uint64_t written = 99;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &full), 0);
    ck_assert_int_eq(put(&lines, "one\ntwo\nthree\n", &written), -EFBIG);
    ck_assert_uint_eq(written, 2);
    ck_assert(!lines.broken);
    ck_assert_int_eq(put(&lines, "four\n", &written), -EFBIG);
    ck_assert_uint_eq(written, 0);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &(struct rlimit){11, RLIM_INFINITY}), 0);
    ck_assert_int_eq(put(&lines, "five\nsix\n", &written), -EFBIG);
    ck_assert_uint_eq(written, 0);
    ck_assert(lines.broken);
    ck_assert_int_eq(put(&lines, "seven\n", &written), -EFBIG);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &room), 0);
    ck_assert_int_eq(put(&lines, "eight\nnine\n", &written), 0);
    ck_assert_uint_eq(written, 2);
    ck_assert_int_gt(pread(lines.fd, text, sizeof(text) - 1, 0), 0);
    ck_assert_str_eq(text, "one\ntwo\nfiv\neight\nnine\n");
    close(lines.fd);
    unlink(file);
}
END_TEST

/* A pipe that does not block is waited for: its reader is slow, not gone. */
START_TEST(a_full_pipe_is_waited_for)
{
    static char block[64 * 1024];
    struct ft_lines lines;
    uint64_t written;
    size_t all = 0;
    int ends[2];
    pid_t child;
    ssize_t n;

    memset(block, 'x', sizeof(block));
    for (size_t i = 63; i < sizeof(block); i += 64)
        block[i] = '\n';
    ck_assert_int_eq(pipe(ends), 0);
    child = fork();
    if (child == 0) {
        fcntl(ends[1], F_SETFL, O_NONBLOCK);
        lines = (struct ft_lines){.fd = ends[1]};
        for (int i = 0; i < 8; i++)
            if (ft_lines_write(&lines, (const uint8_t *)block, sizeof(block), &written) ||
                written != sizeof(block) / 64)
                _exit(1);
        _exit(0);
    }
    close(ends[1]);
    while ((n = read(ends[0], block, sizeof(block))) > 0)
        all += (size_t)n;
    ck_assert_uint_eq(all, 8 * sizeof(block));
    close(ends[0]);
}
END_TEST

START_TEST(no_descriptor_is_an_error)
{
    struct ft_lines lines = {.fd = -1};
    uint64_t written = 99;

    ck_assert_int_eq(put(&lines, "one\n", &written), -EBADF);
    ck_assert_uint_eq(written, 0);
}
END_TEST

FT_UNIT_MAIN("lines", a_full_disk_breaks_one_line, a_full_pipe_is_waited_for,
             no_descriptor_is_an_error)
