// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/disk/spool.h"

#include <errno.h>
#include <fcntl.h>
#include <ftw.h>
#include <signal.h>
#include <string.h>
#include <sys/resource.h>
#include <sys/stat.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define ENTRY_MAX 2048

static char root[] = "/dev/shm/fabrictrace-spool.XXXXXX";
static char folder[64];
static struct ft_spool_stats st;

static uint32_t weigh(const uint8_t *bytes, size_t len)
{
    (void)bytes;
    return (uint32_t)len;
}

static struct ft_spool *open_spool(uint64_t bytes_max, bool keep_oldest)
{
    const struct ft_spool_config config = {.folder = folder,
                                           .bytes_max = bytes_max,
                                           .entry_bytes_max = ENTRY_MAX,
                                           .keep_oldest = keep_oldest,
                                           .weigh = weigh};
    char error[256] = "";
    struct ft_spool *s;

    if (!*folder) {
        ck_assert_ptr_nonnull(mkdtemp(root));
        snprintf(folder, sizeof(folder), "%s/spool", root);
    }
    s = ft_spool_open(&config, error, sizeof(error));
    ck_assert_msg(s, "%s", error);
    return s;
}

static int remove_one(const char *path, const struct stat *sb, int flag, struct FTW *ftw)
{
    (void)sb;
    (void)flag;
    (void)ftw;
    return remove(path);
}

static void end(struct ft_spool *s)
{
    ft_spool_close(s);
    nftw(root, remove_one, 8, FTW_DEPTH | FTW_PHYS);
}

static size_t text_of(unsigned i, char text[ENTRY_MAX])
{
    int n = snprintf(text, ENTRY_MAX, "entry %u %0*u", i, (int)(i * 7 % 300), i);

    return (size_t)n;
}

static int put(struct ft_spool *s, unsigned i)
{
    char text[ENTRY_MAX];
    uint64_t number;

    return ft_spool_append(s, text, text_of(i, text), &number);
}

/* The next entry is the i-th. */
static uint64_t get(struct ft_spool *s, unsigned i)
{
    char text[ENTRY_MAX];
    const uint8_t *bytes = NULL;
    uint64_t number = 0;
    size_t len = 0;

    ck_assert_int_eq(ft_spool_next(s, &bytes, &len, &number), 0);
    ck_assert_msg(len == text_of(i, text) && memcmp(bytes, text, len) == 0,
                  "'%.*s' instead of entry %u", (int)len, (const char *)bytes, i);
    return number;
}

static unsigned index_of(const uint8_t *bytes, size_t len)
{
    char text[ENTRY_MAX + 1];
    unsigned i = 0;

    memcpy(text, bytes, len);
    text[len] = '\0';
    ck_assert_int_eq(sscanf(text, "entry %u", &i), 1);
    return i;
}

static void balance(struct ft_spool *s)
{
    ft_spool_stats(s, &st);
    ck_assert_uint_eq(st.found + st.appended,
                      st.released + st.dropped_oldest + st.damaged + st.kept);
    ck_assert_uint_le(st.unread, st.kept);
}

static void nothing_left(struct ft_spool *s)
{
    const uint8_t *bytes;
    uint64_t number;
    size_t len;

    ck_assert_int_eq(ft_spool_next(s, &bytes, &len, &number), -ENOENT);
}

/* The path of the i-th segment by its number, from the oldest. */
static void segment_path(uint64_t first, char path[128])
{
    snprintf(path, 128, "%s/%016llx.spool", folder, (unsigned long long)first);
}

START_TEST(what_goes_in_comes_out_in_order)
{
    struct ft_spool *s = open_spool(1 << 20, false);

    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(put(s, i), 0);
    for (unsigned i = 0; i < 700; i++)
        ft_spool_release(s, get(s, i) + 1);
    for (unsigned i = 1000; i < 1200; i++)
        ck_assert_int_eq(put(s, i), 0);
    for (unsigned i = 700; i < 1200; i++)
        get(s, i);
    nothing_left(s);
    balance(s);
    ck_assert_uint_eq(st.released, 700);
    ft_spool_release(s, UINT64_MAX);
    balance(s);
    ck_assert_uint_eq(st.kept, 0);
    ck_assert_uint_eq(st.bytes, 0);
    end(s);
}
END_TEST

START_TEST(what_is_not_released_is_there_after_a_kill)
{
    struct ft_spool *s = open_spool(1 << 20, false);

    for (unsigned i = 0; i < 900; i++)
        ck_assert_int_eq(put(s, i), 0);
    for (unsigned i = 0; i < 800; i++)
        get(s, i);
    ft_spool_release(s, 501);
    ft_spool_close(s);
    s = open_spool(1 << 20, false);
    balance(s);
    ck_assert_uint_eq(st.found, 400);
    ck_assert_int_eq(put(s, 900), 0);
    for (unsigned i = 500; i <= 900; i++)
        get(s, i);
    nothing_left(s);
    ft_spool_release(s, UINT64_MAX);
    ft_spool_close(s);
    s = open_spool(1 << 20, false);
    balance(s);
    ck_assert_uint_eq(st.found, 0);
    nothing_left(s);
    end(s);
}
END_TEST

START_TEST(what_was_skipped_is_there_after_a_kill)
{
    struct ft_spool *s = open_spool(1 << 20, false);

    put(s, 0);
    put(s, 1);
    ft_spool_skip(s);
    put(s, 2);
    get(s, 2);
    nothing_left(s);
    balance(s);
    ck_assert_uint_eq(st.kept, 3);
    ft_spool_close(s);
    s = open_spool(1 << 20, false);
    for (unsigned i = 0; i < 3; i++)
        get(s, i);
    end(s);
}
END_TEST

/* As a kill leaves it: at every byte of the last entry. */
START_TEST(a_cut_end_is_left_out)
{
    struct ft_spool *s = open_spool(1 << 20, false);
    struct stat before, after;
    char path[128];

    segment_path(1, path);
    for (unsigned i = 0; i < 10; i++)
        put(s, i);
    ck_assert_int_eq(stat(path, &before), 0);
    put(s, 10);
    ck_assert_int_eq(stat(path, &after), 0);
    ft_spool_close(s);
    for (off_t cut = after.st_size - 1; cut >= before.st_size; cut--) {
        ck_assert_int_eq(truncate(path, cut), 0);
        s = open_spool(1 << 20, false);
        balance(s);
        ck_assert_uint_eq(st.found, 10);
        ck_assert_uint_eq(st.torn, cut > before.st_size);
        put(s, 77);
        for (unsigned i = 0; i < 10; i++)
            get(s, i);
        get(s, 77);
        nothing_left(s);
        ft_spool_close(s);
        segment_path(11, path);
        ck_assert_int_eq(unlink(path), 0);
        segment_path(1, path);
        /* What was cut off is cut off for good. */
        ck_assert_int_eq(stat(path, &after), 0);
        ck_assert_int_eq(after.st_size, before.st_size);
        ck_assert_int_eq(truncate(path, cut), 0);
    }
    end(NULL);
}
END_TEST

/* Every fifth byte of a file in turn: what is behind it in the file is lost and counted, nothing
 * else, and no entry comes out that did not go in. */
START_TEST(damage_is_counted)
{
    struct ft_spool *s = open_spool(FT_SPOOL_BYTES_MIN, true);
    char path[128];
    unsigned n = 0;
    struct stat size;
    int fd;

    while (put(s, n) == 0)
        n++;
    ft_spool_close(s);
    segment_path(1, path);
    fd = open(path, O_RDWR);
    ck_assert_int_eq(fstat(fd, &size), 0);
    for (off_t at = 0; at < size.st_size; at += 5) {
        const uint8_t *bytes;
        uint8_t was, now;
        uint64_t number;
        size_t len;
        unsigned read = 0;

        ck_assert_int_eq(pread(fd, &was, 1, at), 1);
        now = was ^ 0x10;
        ck_assert_int_eq(pwrite(fd, &now, 1, at), 1);
        /* Opening removes a file without a head: that is tried once, as the last. */
        if (at < 24) {
            ck_assert_int_eq(pwrite(fd, &was, 1, at), 1);
            continue;
        }
        s = open_spool(FT_SPOOL_BYTES_MIN, true);
        while (ft_spool_next(s, &bytes, &len, &number) == 0) {
            ck_assert_uint_eq(index_of(bytes, len) + 1, number);
            read++;
        }
        balance(s);
        ck_assert_uint_eq(read + st.damaged, n);
        ck_assert_uint_ge(st.damaged, 1);
        ck_assert_uint_gt(read, n / 2);
        ft_spool_close(s);
        ck_assert_int_eq(pwrite(fd, &was, 1, at), 1);
    }
    ck_assert_int_eq(pwrite(fd, "?", 1, 3), 1);
    close(fd);
    s = open_spool(FT_SPOOL_BYTES_MIN, true);
    balance(s);
    ck_assert_uint_eq(st.torn, 1);
    ck_assert_uint_lt(st.found, n);
    get(s, n - (unsigned)st.found);
    end(s);
}
END_TEST

START_TEST(at_the_cap_the_oldest_go)
{
    struct ft_spool *s = open_spool(FT_SPOOL_BYTES_MIN, false);
    unsigned first;

    for (unsigned i = 0; i < 2000; i++) {
        ck_assert_int_eq(put(s, i), 0);
        ft_spool_stats(s, &st);
        ck_assert_uint_le(st.bytes, FT_SPOOL_BYTES_MIN);
    }
    balance(s);
    ck_assert_uint_gt(st.dropped_oldest, 0);
    ck_assert_uint_eq(st.kept, st.unread);
    first = (unsigned)st.dropped_oldest;
    for (unsigned i = first; i < 2000; i++)
        get(s, i);
    /* What was read is with whom reads it: it is not lost. */
    for (unsigned i = 0; i < 500; i++)
        ck_assert_int_eq(put(s, i), 0);
    ft_spool_stats(s, &st);
    ck_assert_uint_lt(st.dropped_oldest, first + 500);
    balance(s);
    end(s);
}
END_TEST

START_TEST(at_the_cap_the_newest_are_refused)
{
    struct ft_spool *s = open_spool(FT_SPOOL_BYTES_MIN, true);
    unsigned n = 0;

    while (put(s, n) == 0)
        n++;
    for (int i = 0; i < 9; i++)
        ck_assert_int_eq(put(s, 299 * 300), -ENOSPC);
    balance(s);
    ck_assert_uint_eq(st.appended, n);
    ck_assert_uint_eq(st.refused_newest, 10);
    ck_assert_uint_gt(st.bytes, FT_SPOOL_BYTES_MIN * 8 / 10);
    for (unsigned i = 0; i < n; i++)
        ft_spool_release(s, get(s, i) + 1);
    ck_assert_int_eq(put(s, 5), 0);
    get(s, 5);
    end(s);
}
END_TEST

/* A disk that takes a part of an entry and no more. */
START_TEST(a_disk_that_refuses_is_counted)
{
    struct ft_spool *s = open_spool(1 << 20, true);
    struct rlimit limit = {1000, RLIM_INFINITY};
    unsigned n = 0;

    signal(SIGXFSZ, SIG_IGN);
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    while (put(s, n) == 0)
        n++;
    ck_assert_uint_gt(n, 2);
    balance(s);
    ck_assert_uint_eq(st.refused_disk, 1);
    ck_assert_uint_eq(st.appended, n);
    limit.rlim_cur = RLIM_INFINITY;
    ck_assert_int_eq(setrlimit(RLIMIT_FSIZE, &limit), 0);
    put(s, n);
    ft_spool_close(s);
    s = open_spool(1 << 20, true);
    balance(s);
    ck_assert_uint_eq(st.torn, 0);
    for (unsigned i = 0; i <= n; i++)
        get(s, i);
    nothing_left(s);
    end(s);
}
END_TEST

START_TEST(one_process_at_a_time)
{
    struct ft_spool *s = open_spool(1 << 20, false);
    const struct ft_spool_config config = {.folder = folder, .bytes_max = 1 << 20};
    char error[256];

    ck_assert_ptr_null(ft_spool_open(&config, error, sizeof(error)));
    ck_assert_ptr_nonnull(strstr(error, "another process uses it"));
    ck_assert_ptr_nonnull(strstr(error, folder));
    end(s);
}
END_TEST

/* Against a list that is no file: 20,000 steps of all kinds. */
START_TEST(any_order_of_steps)
{
    enum { MOST = 20000 };
    static unsigned numbers[MOST]; /* what was appended as entry i + 1 */
    unsigned seed = 11, next = 0, released = 0, read = 0;
    struct ft_spool *s = open_spool(4 << 20, true);

    for (unsigned step = 0; step < MOST; step++) {
        unsigned what = (unsigned)rand_r(&seed) % 100;

        if (what < 50) {
            numbers[next] = (unsigned)rand_r(&seed) % 1000;
            next += put(s, numbers[next]) == 0;
        } else if (what < 90 && read < next) {
            ck_assert_uint_eq(get(s, numbers[read]), read + 1);
            read++;
        } else if (what < 99) {
            released += (read - released) / 2;
            ft_spool_release(s, released + 1);
        } else {
            ft_spool_close(s);
            s = open_spool(4 << 20, true);
            read = released;
        }
        balance(s);
        ck_assert_uint_eq(st.kept, next - released);
        ck_assert_uint_eq(st.unread, next - read);
    }
    ck_assert_uint_gt(released, 1000);
    end(s);
}
END_TEST

START_TEST(what_waits_is_weighed)
{
    struct ft_spool *s = open_spool(FT_SPOOL_BYTES_MIN, false);
    char text[ENTRY_MAX];
    const uint8_t *bytes;
    uint64_t number, sum = 0;
    size_t len;

    /* Far over the cap: what went with the oldest files weighs nothing any more. */
    for (unsigned i = 0; i < 1000; i++)
        ck_assert_int_eq(ft_spool_append(s, text, text_of(i, text), &number), 0);
    ft_spool_stats(s, &st);
    ck_assert_uint_gt(st.dropped_oldest, 0);
    for (uint64_t left = st.weight_unread; ft_spool_next(s, &bytes, &len, &number) == 0;) {
        sum += len;
        ft_spool_stats(s, &st);
        ck_assert_uint_eq(st.weight_unread, left - sum);
    }
    ck_assert_uint_eq(st.weight_unread, 0);
    ft_spool_release(s, number + 1);
    ck_assert_int_eq(ft_spool_append(s, "four", 4, &number), 0);
    ft_spool_skip(s);
    ft_spool_stats(s, &st);
    ck_assert_uint_eq(st.weight_unread, 0);
    ft_spool_close(s);
    /* What is found is weighed when it is read. */
    s = open_spool(FT_SPOOL_BYTES_MIN, false);
    ck_assert_int_eq(ft_spool_append(s, "seven..", 7, &number), 0);
    ft_spool_stats(s, &st);
    ck_assert_uint_eq(st.weight_found, 0);
    ck_assert_uint_eq(st.weight_unread, 7);
    ck_assert_int_eq(ft_spool_next(s, &bytes, &len, &number), 0);
    ft_spool_stats(s, &st);
    ck_assert_uint_eq(st.weight_found, 4);
    ck_assert_uint_eq(st.weight_unread, 7);
    end(s);
}
END_TEST

FT_UNIT_MAIN("spool", what_goes_in_comes_out_in_order, what_is_not_released_is_there_after_a_kill,
             what_was_skipped_is_there_after_a_kill, a_cut_end_is_left_out, damage_is_counted,
             at_the_cap_the_oldest_go, at_the_cap_the_newest_are_refused,
             a_disk_that_refuses_is_counted, one_process_at_a_time, any_order_of_steps,
             what_waits_is_weighed)
