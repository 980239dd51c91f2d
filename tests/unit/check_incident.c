// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/incident/entry.h"
#include "daemon/incident/head.h"
#include "daemon/incident/recorder.h"
#include "daemon/settings.h"
#include "lib/base/sum.h"
#include "lib/io/disk/incident.h"
#include "lib/io/disk/pack.h"
#include "tests/unit/unit.h"

static struct ft_writer w;

/* Reads a file that lies in memory; returns how its last section was read. */
static int read_all(const uint8_t *bytes, size_t len, unsigned *sections, char problem[256])
{
    FILE *in = fmemopen((void *)(uintptr_t)bytes, len ? len : 1, "r");
    struct ft_incident *incident = ft_incident_open(in);
    struct ft_incident_read read;
    int rc;

    ck_assert_ptr_nonnull(incident);
    if (len == 0)
        fgetc(in);
    *sections = 0;
    while ((rc = ft_incident_next(incident, &read)) > 0)
        ++*sections;
    snprintf(problem, 256, "%s", ft_incident_problem(incident));
    ft_incident_close(incident);
    fclose(in);
    return rc;
}

static void write_file(void)
{
    char text[3000];

    memset(text, 'x', sizeof(text));
    ft_writer_init(&w, 1 << 20);
    ft_incident_begin(&w);
    ck_assert_int_eq(ft_incident_section(&w, FT_INCIDENT_HEAD, "head", 4), 0);
    ck_assert_int_eq(ft_incident_section(&w, FT_INCIDENT_RECORDS, text, sizeof(text)), 0);
    ck_assert_int_eq(ft_incident_section(&w, FT_INCIDENT_END, NULL, 0), 0);
}

START_TEST(what_is_packed_opens_again)
{
    uint8_t text[5000], plain[5000];
    enum ft_packing packing;

    ft_writer_init(&w, 1 << 20);
    for (size_t i = 0; i < sizeof(text); i++)
        text[i] = (uint8_t)(i * i >> 7);
    packing = ft_pack(text, sizeof(text), &w);
    ck_assert_int_eq(ft_pack_open(packing, w.bytes, w.len, plain, sizeof(plain)), 0);
    ck_assert_mem_eq(text, plain, sizeof(text));
    ck_assert_int_eq(ft_pack_open(packing, w.bytes, w.len, plain, sizeof(plain) - 1), -EBADMSG);
    ck_assert_int_eq(ft_pack_open((enum ft_packing)9, w.bytes, w.len, plain, 10), -ENOTSUP);
    ft_writer_reset(&w);
    ck_assert_int_eq(ft_pack("ab", 2, &w), FT_PACKING_NONE); /* smaller as it is */
    ck_assert_uint_eq(w.len, 2);
    ft_writer_free(&w);
}
END_TEST

START_TEST(a_file_reads_back)
{
    unsigned sections;
    char problem[256];

    write_file();
    ck_assert_int_eq(read_all(w.bytes, w.len, &sections, problem), 0);
    ck_assert_uint_eq(sections, 3);
    ck_assert_int_eq(
        ft_incident_section(&w, FT_INCIDENT_HEAD, w.bytes, FT_INCIDENT_SECTION_BYTES_MAX + 1),
        -EMSGSIZE);
    ft_writer_free(&w);
}
END_TEST

START_TEST(a_file_cut_anywhere_says_where)
{
    unsigned sections, most = 0;
    char problem[256], want[32];

    write_file();
    for (size_t len = 0; len < w.len; len++) {
        ck_assert_int_eq(read_all(w.bytes, len, &sections, problem), -EBADMSG);
        snprintf(want, sizeof(want), "at byte %zu: ", len);
        ck_assert_msg(strncmp(problem, want, strlen(want)) == 0, "%s, not %s", problem, want);
        ck_assert_uint_ge(sections, most); /* what is whole is there */
        most = sections;
    }
    ck_assert_uint_eq(most, 2);
    ft_writer_free(&w);
}
END_TEST

START_TEST(any_flipped_bit_is_found)
{
    unsigned sections;
    char problem[256];

    write_file();
    for (size_t bit = 0; bit < 8 * w.len; bit++) {
        int rc;

        w.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
        rc = read_all(w.bytes, w.len, &sections, problem);
        ck_assert_msg(rc == -EBADMSG || rc == -ENOTSUP, "bit %zu: %d", bit, rc);
        w.bytes[bit / 8] ^= (uint8_t)(1 << bit % 8);
    }
    ft_writer_free(&w);
}
END_TEST

static const char *keep(void *arg, const char *text, size_t len)
{
    static char names[8][16];
    unsigned *n = arg;

    snprintf(names[*n], sizeof(names[0]), "%.*s", (int)len, text);
    return names[(*n)++];
}

START_TEST(entries_read_back)
{
    const uint64_t refused[] = {3, 4, 200};
    struct ft_account_stage stage = {.name = "sink",
                                     .unit = "records",
                                     .received = 300,
                                     .processed = 298,
                                     .drop_count = 1,
                                     .drops = {{"failed", 2}}};
    int64_t written = 1000000, read = 1000000;
    struct ft_account account;
    struct ft_entry e;
    struct ft_reader r;
    uint64_t number = 0;
    unsigned names = 0;

    ft_writer_init(&w, 1 << 20);
    ft_entry_batch(&w, "abc", 3);
    ft_entry_slice(&w, &written, 1000007, 2, refused, 3);
    ft_entry_advance(&w, &written, 999000, 2000); /* the clock was set back */
    ft_entry_stages(&w, &stage, 1);
    ft_entry_topology(&w, "fabric: x", 9);
    ft_entry_published(&w, 70000, UINT64_MAX);
    ft_entry_gap(&w);
    ft_reader_init(&r, w.bytes, w.len);
    ck_assert(ft_entry_read(&r, &read, &e) && e.kind == FT_ENTRY_BATCH);
    ck_assert(e.len == 3 && memcmp(e.bytes, "abc", 3) == 0);
    ck_assert(ft_entry_read(&r, &read, &e) && e.kind == FT_ENTRY_SLICE && e.steps == 2);
    ck_assert_int_eq(e.now_ms, 1000007);
    for (size_t i = 0; i < 3; i++) {
        ck_assert(ft_entry_refused(&e, &number));
        ck_assert_uint_eq(number, refused[i]);
    }
    ck_assert(!ft_entry_refused(&e, &number));
    ck_assert(ft_entry_read(&r, &read, &e) && e.kind == FT_ENTRY_ADVANCE && e.items == 2000);
    ck_assert_int_eq(e.now_ms, 999000);
    ck_assert(ft_entry_read(&r, &read, &e) && e.kind == FT_ENTRY_STAGES);
    ck_assert(ft_entry_read_stages(&e, &account, keep, &names));
    ck_assert(account.stage_count == 1 && strcmp(account.stages[0].name, "sink") == 0);
    ck_assert(account.stages[0].received == 300 && account.stages[0].processed == 298);
    ck_assert(account.stages[0].drop_count == 1 && account.stages[0].drops[0].count == 2);
    ck_assert(ft_entry_read(&r, &read, &e) && e.kind == FT_ENTRY_TOPOLOGY && e.len == 9);
    ck_assert(ft_entry_read(&r, &read, &e) && e.records == 70000 && e.digest == UINT64_MAX);
    ck_assert(ft_entry_read(&r, &read, &e) && e.kind == FT_ENTRY_GAP);
    ck_assert_uint_eq(ft_reader_left(&r), 0);
    for (size_t len = 0; len < w.len; len++) {
        ft_reader_init(&r, w.bytes, len);
        read = 1000000;
        while (ft_reader_left(&r) && ft_entry_read(&r, &read, &e))
            ;
        ck_assert_uint_eq(ft_reader_left(&r),
                          0); /* cut within one: it fails, and reads no further */
    }
    ft_writer_free(&w);
}
END_TEST

START_TEST(a_head_reads_back_and_refuses_what_cannot_be)
{
    struct ft_settings s = {.window_ns = 10000000000,
                            .grace_ns = 3000000000,
                            .path_refresh_ns = 60000000000,
                            .flow_idle_ns = 60000000000,
                            .evidence_ns = 30000000000,
                            .floor = 0.001,
                            .elephant = 0.1,
                            .flows_max = 1000,
                            .victims_max = 32,
                            .crossing_ports_max = 7,
                            .events_max = 9,
                            .sources_max = 16,
                            .verify_topology = true},
                       got = {0};
    const struct ft_head head = {.source_id = (char *)(uintptr_t) "a \"b\": c",
                                 .fabric = (char *)(uintptr_t) "lab",
                                 .program = (char *)(uintptr_t) "fabrictraced 1",
                                 .from_ms = 5,
                                 .to_ms = 6,
                                 .from_start = true,
                                 .seed = UINT64_MAX};
    struct ft_diag *diag = ft_diag_new();
    struct ft_head back;
    char *bad;

    ft_writer_init(&w, 1 << 20);
    ft_head_write(&w, &head, &s);
    ck_assert_int_eq(ft_head_read(w.bytes, w.len, &back, &got, diag), 0);
    ck_assert_str_eq(back.source_id, head.source_id);
    ck_assert(back.from_start && back.seed == UINT64_MAX && back.to_ms == 6);
    ck_assert_mem_eq(&s, &got, sizeof(s));
    ft_head_clear(&back);
    ft_write_u8(&w, 0);
    bad = strstr((char *)w.bytes, "window_ns: 10000000000");
    memcpy(bad, "window_ns: 00000000000", 22);
    ck_assert_int_eq(ft_head_read(w.bytes, w.len - 1, &back, &got, diag), -EBADMSG);
    ck_assert_ptr_nonnull(strstr(ft_diag_text(diag, 0), "window_ns is not a number from"));
    ft_diag_free(diag);
    ft_writer_free(&w);
}
END_TEST

/* Each setting at its least or most. */
static void stretch(struct ft_settings *s, bool most)
{
    for (const struct ft_option *o = ft_settings_table.options; o->key; o++) {
        double value = most ? o->max : o->min;
        void *at = (char *)s + o->offset;

        if (o->min == 0 && o->max == 0)
            continue;
        if (o->type == FT_OPTION_UINT || o->type == FT_OPTION_SIZE)
            *(uint64_t *)at = (uint64_t)value;
        else if (o->type == FT_OPTION_DURATION)
            *(int64_t *)at = (int64_t)(value * 1e9);
        else if (o->type == FT_OPTION_DOUBLE)
            *(double *)at = value;
    }
}

/* What a daemon may be set to, the head of its incidents may say. */
START_TEST(the_head_of_any_settings_is_read)
{
    const struct ft_head head = {.source_id = (char *)(uintptr_t) "a",
                                 .fabric = (char *)(uintptr_t) "lab",
                                 .program = (char *)(uintptr_t) "fabrictraced 1"};
    struct ft_diag *diag = ft_diag_new();
    struct ft_head back;

    for (int most = 0; most < 2; most++) {
        struct ft_settings s = {.window_ns = 0}, got = {.window_ns = 0};

        stretch(&s, most);
        ft_writer_init(&w, 1 << 20);
        ft_head_write(&w, &head, &s);
        ck_assert_msg(ft_head_read(w.bytes, w.len, &back, &got, diag) == 0, "%s",
                      ft_diag_text(diag, 0));
        ck_assert_uint_eq(got.history_memory_max, s.history_memory_max);
        ft_head_clear(&back);
        ft_writer_free(&w);
    }
    ft_diag_free(diag);
}
END_TEST

static void cut_line(char *text, const char *name)
{
    char *line = strstr(text, name), *end = line ? strchr(line, '\n') : NULL;

    ck_assert_ptr_nonnull(end);
    memmove(line, end + 1, strlen(end + 1) + 1);
}

/* Settings that came later mean what the daemon did before there were any. */
START_TEST(the_head_of_an_older_daemon_is_read)
{
    struct ft_settings s = {.window_ns = 10000000000,
                            .path_refresh_ns = 60000000000,
                            .flow_idle_ns = 60000000000,
                            .evidence_ns = 30000000000,
                            .hang_after_ns = 5000000000,
                            .flows_max = 1000,
                            .victims_max = 32,
                            .crossing_ports_max = 7,
                            .events_max = 9,
                            .sources_max = 16,
                            .infer_paths = true},
                       got = {.infer_paths = true};
    const struct ft_head head = {.source_id = (char *)(uintptr_t) "a",
                                 .fabric = (char *)(uintptr_t) "lab",
                                 .program = (char *)(uintptr_t) "fabrictraced 1"};
    struct ft_diag *diag = ft_diag_new();
    struct ft_head back;
    char *text;

    ft_writer_init(&w, 1 << 20);
    ft_head_write(&w, &head, &s);
    ft_write_u8(&w, 0);
    text = (char *)w.bytes;
    cut_line(text, "  hang_after_ns:");
    cut_line(text, "  infer_paths:");
    ck_assert_int_eq(ft_head_read(w.bytes, strlen(text), &back, &got, diag), 0);
    ck_assert_int_eq(got.hang_after_ns, 10000000000);
    ck_assert(!got.infer_paths);
    ft_head_clear(&back);
    cut_line(text, "  flows_max:");
    ck_assert_int_eq(ft_head_read(w.bytes, strlen(text), &back, &got, diag), -EBADMSG);
    ft_diag_free(diag);
    ft_writer_free(&w);
}
END_TEST

/* How many segments a copy gets, and how it ends. */
static int copy_all(struct ft_recorder *r, struct ft_recording *recording, unsigned *count)
{
    const uint8_t *bytes;
    size_t len;
    int rc;

    for (*count = 0; (rc = ft_recorder_copy(r, recording, &bytes, &len)) > 0; ++*count)
        ck_assert_uint_gt(len, 0);
    return rc;
}

static void fill(struct ft_recorder *r, int64_t from_ms, int64_t to_ms, size_t bytes)
{
    uint8_t *noise = malloc(bytes);
    static uint64_t seed = 1;

    for (int64_t ms = from_ms; ms < to_ms; ms += 1000) {
        for (size_t i = 0; i < bytes; i++) /* nothing that packs */
            noise[i] = (uint8_t)((seed = seed * 6364136223846793005U + 1442695040888963407U) >> 56);
        ft_recorder_advance(r, ms, 1);
        ft_recorder_batch(r, noise, bytes);
        ft_recorder_slice(r, ms, 1, true);
    }
    free(noise);
}

START_TEST(what_is_kept_ages_and_is_bounded)
{
    const struct ft_recorder_config config = {60000, (size_t)16 << 20};
    const struct ft_account account = {0};
    struct ft_recorder *r = ft_recorder_new(&config);
    struct ft_recorder_stats s;
    struct ft_recording recording;
    unsigned count;

    ft_writer_init(&w, (size_t)64 << 20);
    ft_recorder_begin(r, NULL, 1000);
    ck_assert(ft_recorder_hold(r, 0, &account, &recording, &w));
    ck_assert(recording.from_start && recording.topology_len == 0);
    ck_assert_int_eq(copy_all(r, &recording, &count), 0);
    ck_assert_uint_eq(count, 0);
    ft_recorder_release(r);
    fill(r, 2000, 50000, 100);
    ck_assert(ft_recorder_hold(r, 0, &account, &recording, &w));
    ck_assert(recording.from_start);
    ck_assert_int_eq(copy_all(r, &recording, &count), 0);
    ck_assert_uint_ge(count, 4);
    ft_recorder_release(r);
    ck_assert(ft_recorder_hold(r, 45000, &account, &recording, &w));
    ck_assert(!recording.from_start && recording.from_ms > 30000 && recording.from_ms <= 45000);
    ft_recorder_release(r);
    fill(r, 50000, 200000, 100);
    ft_recorder_stats(r, &s);
    ck_assert_uint_eq(s.dropped, 0);
    ck_assert_int_ge(s.from_ms, 200000 - 60000 - 2 * 7500 - 1000);
    ck_assert_int_le(s.from_ms, 200000 - 60000);
    /* What becomes too old stays for a copy that is under way, and goes after it. */
    ck_assert(ft_recorder_hold(r, 0, &account, &recording, &w));
    fill(r, 200000, 300000, 100);
    ck_assert_int_eq(copy_all(r, &recording, &count), 0);
    ck_assert_uint_ge(count, 8);
    ft_recorder_release(r);
    fill(r, 300000, 320000, 100);
    ft_recorder_stats(r, &s);
    ck_assert_uint_eq(s.dropped, 0);
    ck_assert_int_ge(s.from_ms, 320000 - 60000 - 2 * 7500 - 1000);
    /* More than fits: the oldest goes, also from under it. */
    ck_assert(ft_recorder_hold(r, 0, &account, &recording, &w));
    fill(r, 320000, 350000, (size_t)1 << 20);
    ft_recorder_stats(r, &s);
    ck_assert_uint_gt(s.dropped, 0);
    ck_assert_uint_le(s.bytes, (size_t)21 << 20);
    ck_assert_int_eq(copy_all(r, &recording, &count), -ESTALE);
    ft_recorder_release(r);
    ft_recorder_free(r);
    ft_writer_free(&w);
}
END_TEST

FT_UNIT_MAIN("incident", the_head_of_any_settings_is_read, what_is_packed_opens_again,
             a_file_reads_back, a_file_cut_anywhere_says_where, any_flipped_bit_is_found,
             entries_read_back, a_head_reads_back_and_refuses_what_cannot_be,
             the_head_of_an_older_daemon_is_read, what_is_kept_ages_and_is_bounded)
