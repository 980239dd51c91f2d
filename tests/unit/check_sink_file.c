// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <fcntl.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <sys/wait.h>
#include <unistd.h>

#include "daemon/publish/publish.h"
#include "tests/unit/unit.h"

#define LINE_BYTES 1000

static char folder[] = "/tmp/check_sink_file.XXXXXX", path[64];
static struct ft_sink *sink;

static void make_pipe(void)
{
    char error[200];

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pipe", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    sink = ft_sink_file_new(path, error, sizeof(error));
    ck_assert_msg(sink != NULL, "%s", error);
}

static void drop_pipe(void)
{
    sink->free(sink->self);
    free(sink);
    unlink(path);
    rmdir(folder);
}

static void put(uint32_t number)
{
    char line[LINE_BYTES];
    struct ft_published out = {.json = line, .json_len = sizeof(line)};

    memset(line, 'x', sizeof(line));
    snprintf(line, 12, "%010u", number);
    line[10] = ' ';
    sink->write(sink->self, &out);
}

static struct ft_sink_stats stats(void)
{
    struct ft_sink_stats s;

    sink->stats(sink->self, &s);
    ck_assert_uint_eq(s.received, s.processed + s.pending + s.failed + s.refused);
    return s;
}

/* Nobody reads: the writer goes on, keeps what it can and counts the rest. Then all that was kept
 * comes, in order and without half a line. */
START_TEST(a_stalled_reader_holds_nobody_up)
{
    static char bytes[8 << 20];
    struct ft_sink_stats s;
    size_t len = 0;
    uint32_t lines = 0;
    int reader;

    alarm(120);
    make_pipe(); /* whose reader has not come yet */
    for (uint32_t i = 0; i < 10000; i++)
        put(i);
    s = stats();
    ck_assert_uint_gt(s.failed, 0);
    ck_assert_uint_gt(s.pending, 2000);
    ck_assert_uint_lt(s.processed, 1000);
    ck_assert_int_eq(sink->flush(sink->self, 0), -ETIMEDOUT);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    ck_assert_int_ge(reader, 0);
    do {
        ssize_t n = read(reader, bytes + len, sizeof(bytes) - len);

        len += n > 0 ? (size_t)n : 0;
    } while (sink->flush(sink->self, 0) != 0);
    for (ssize_t n = 1; n > 0; len += n > 0 ? (size_t)n : 0)
        n = read(reader, bytes + len, sizeof(bytes) - len);
    for (size_t at = 0; at < len; at += LINE_BYTES + 1, lines++) {
        ck_assert_uint_eq((uint32_t)strtoul(bytes + at, NULL, 10), lines);
        ck_assert_int_eq(bytes[at + LINE_BYTES], '\n');
    }
    s = stats();
    ck_assert_uint_eq(s.processed, lines);
    ck_assert_uint_eq(s.pending, 0);
    put(lines);
    ck_assert_int_eq(sink->flush(sink->self, 0), 0);
    ck_assert_int_eq(read(reader, bytes, sizeof(bytes)), LINE_BYTES + 1);
    close(reader);
    drop_pipe();
}
END_TEST

/* A reader that leaves is an error, and no signal's work. */
START_TEST(a_reader_that_leaves_is_reported)
{
    int reader;

    alarm(120);
    signal(SIGPIPE, SIG_IGN);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/pipe", folder);
    ck_assert_int_eq(mkfifo(path, 0600), 0);
    reader = open(path, O_RDONLY | O_NONBLOCK);
    sink = ft_sink_file_new(path, (char[64]){0}, 64);
    ck_assert_ptr_nonnull(sink);
    put(1);
    close(reader);
    ck_assert_int_eq(sink->flush(sink->self, 0), -EPIPE);
    ck_assert_uint_eq(stats().failed, 1);
    drop_pipe();
}
END_TEST

/* In a replay nothing is lost to a slow reader. */
START_TEST(a_replay_waits_for_its_reader)
{
    static char bytes[LINE_BYTES + 1];
    FILE *reader;
    uint32_t lines = 0;
    pid_t child;

    alarm(120);
    make_pipe();
    child = fork();
    if (child == 0) {
        ft_sink_file_wait(sink);
        for (uint32_t i = 0; i < 10000; i++)
            put(i);
        _exit(sink->flush(sink->self, INT64_C(60000000000)) || stats().processed != 10000);
    }
    reader = fopen(path, "r");
    for (; lines < 10000 && fread(bytes, sizeof(bytes), 1, reader) == 1; lines++)
        ck_assert_uint_eq((uint32_t)strtoul(bytes, NULL, 10), lines);
    ck_assert_uint_eq(lines, 10000);
    ck_assert_int_eq(waitpid(child, &(int){0}, 0), child);
    fclose(reader);
    drop_pipe();
}
END_TEST

/* How many lines a file has, which follow each other in numbers, and the first one's. */
static uint32_t lines_of(const char *name, uint32_t *first)
{
    static char bytes[LINE_BYTES + 1];
    FILE *file = fopen(name, "r");
    uint32_t lines = 0;

    ck_assert_ptr_nonnull(file);
    for (; fread(bytes, sizeof(bytes), 1, file) == 1; lines++) {
        ck_assert_int_eq(bytes[LINE_BYTES], '\n');
        if (lines == 0)
            *first = (uint32_t)strtoul(bytes, NULL, 10);
        ck_assert_uint_eq((uint32_t)strtoul(bytes, NULL, 10), *first + lines);
    }
    fclose(file);
    return lines;
}

/* As logrotate does it: moved away, written to until a reload opens it anew. Each line is in one of
 * the two, whole, and what was gathered before is in the old one. */
START_TEST(a_file_that_was_moved_is_opened_anew)
{
    char moved[80];
    uint32_t old = 0, now = 0;

    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/records", folder);
    snprintf(moved, sizeof(moved), "%s.1", path);
    sink = ft_sink_file_new(path, (char[64]){0}, 64);
    ck_assert_ptr_nonnull(sink);
    for (uint32_t i = 0; i < 500; i++)
        put(i);
    ck_assert_int_eq(rename(path, moved), 0);
    for (uint32_t i = 500; i < 777; i++)
        put(i);
    sink->reopen(sink->self);
    for (uint32_t i = 777; i < 1000; i++)
        put(i);
    sink->reopen(sink->self); /* a reload without a move */
    put(1000);
    ck_assert_int_eq(sink->flush(sink->self, 0), 0);
    ck_assert_uint_eq(stats().processed, 1001);
    ck_assert_uint_eq(lines_of(moved, &old), 777);
    ck_assert_uint_eq(old, 0);
    ck_assert_uint_eq(lines_of(path, &now), 224);
    ck_assert_uint_eq(now, 777);
    unlink(moved);
    drop_pipe();
}
END_TEST

/* A disk that was full left half a line. Neither a reload nor the next daemon writes behind it. */
START_TEST(half_a_line_breaks_no_other)
{
    const struct rlimit full = {LINE_BYTES / 2, RLIM_INFINITY},
                        room = {RLIM_INFINITY, RLIM_INFINITY};
    char line[2 * LINE_BYTES];
    FILE *in;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_ptr_nonnull(mkdtemp(folder));
    snprintf(path, sizeof(path), "%s/records", folder);
    for (int anew = 0; anew < 2; anew++) {
        sink = ft_sink_file_new(path, (char[64]){0}, 64);
        ck_assert_ptr_nonnull(sink);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &full), 0);
        put(1);
        ck_assert_int_eq(sink->flush(sink->self, 0), -EFBIG);
        ck_assert_uint_eq(stats().failed, 1);
        ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &room), 0);
        if (anew) {
            sink->free(sink->self);
            free(sink);
            sink = ft_sink_file_new(path, (char[64]){0}, 64);
            ck_assert_ptr_nonnull(sink);
        } else {
            sink->reopen(sink->self);
        }
        put(2);
        ck_assert_int_eq(sink->flush(sink->self, 0), 0);
        in = fopen(path, "r");
        ck_assert_ptr_nonnull(in);
        ck_assert_ptr_nonnull(fgets(line, sizeof(line), in));
        ck_assert_uint_eq(strlen(line), LINE_BYTES / 2 + 1);
        ck_assert_ptr_nonnull(fgets(line, sizeof(line), in));
        ck_assert_uint_eq(strlen(line), LINE_BYTES + 1);
        ck_assert_int_eq(strncmp(line, "0000000002", 10), 0);
        fclose(in);
        unlink(path);
        sink->free(sink->self);
        free(sink);
    }
    rmdir(folder);
}
END_TEST

FT_UNIT_MAIN("sink_file", half_a_line_breaks_no_other, a_replay_waits_for_its_reader,
             a_stalled_reader_holds_nobody_up, a_reader_that_leaves_is_reported,
             a_file_that_was_moved_is_opened_anew)
