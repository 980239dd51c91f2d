// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/lines.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

static int put(struct ft_lines *lines, const char *text, uint64_t *written)
{
    return ft_lines_write(lines, (const uint8_t *)text, strlen(text), written);
}

static int try(struct ft_lines *lines, const char *bytes, size_t len, size_t *done,
               uint64_t *written)
{
    return ft_lines_try(lines, (const uint8_t *)bytes, len, 0, done, written);
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

/* A reader stops within a line and is started anew: the rest of that line is lost, and no other. */
START_TEST(a_reader_that_left_within_a_line_breaks_no_other)
{
    static char block[4 * 4096], text[4 * 4096];
    char name[] = "check_lines.XXXXXX";
    struct ft_lines lines;
    uint64_t written;
    size_t done;
    int reader;

    signal(SIGPIPE, SIG_IGN);
    memset(block, 'x', sizeof(block));
    block[sizeof(block) - 1] = '\n';
    ck_assert_ptr_nonnull(mkdtemp(name));
    ck_assert_int_eq(chdir(name), 0);
    ck_assert_int_eq(mkfifo("fifo", 0600), 0);
    reader = open("fifo", O_RDONLY | O_NONBLOCK);
    lines = (struct ft_lines){.fd = open("fifo", O_WRONLY | O_NONBLOCK)};
    ck_assert_int_eq(fcntl(lines.fd, F_SETPIPE_SZ, 8192), 8192);
    ck_assert_int_eq(try(&lines, block, sizeof(block), &done, &written), -EAGAIN);
    ck_assert_uint_eq(done, 8192);
    close(reader);
    ck_assert_int_eq(try(&lines, block + done, sizeof(block) - done, &done, &written), -EPIPE);
    reader = open("fifo", O_RDONLY | O_NONBLOCK);
    ck_assert_int_eq(read(reader, text, sizeof(text)), 8192);
    ck_assert_int_eq(try(&lines, "one\ntwo\n", 8, &done, &written), 0);
    ck_assert_uint_eq(written, 2);
    memset(text, 0, sizeof(text));
    ck_assert_int_gt(read(reader, text, sizeof(text)), 0);
    ck_assert_str_eq(text, "\none\ntwo\n");
    close(reader);
    close(lines.fd);
    unlink("fifo");
    ck_assert_int_eq(chdir(".."), 0);
    rmdir(name);
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
             a_reader_that_left_within_a_line_breaks_no_other, no_descriptor_is_an_error)
