// SPDX-License-Identifier: Apache-2.0
/* What the programs log: lines, levels, limits and changes of state, in virtual time. */
#include "config.h"

#include "lib/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <string.h>
#include <unistd.h>

#include "tests/unit/unit.h"

#define S INT64_C(1000000000)

static FILE *log_file;
static char text[65536];

/* Standard error becomes a file. */
static void begin(void)
{
    log_file = tmpfile();
    ck_assert_ptr_nonnull(log_file);
    ck_assert_int_eq(dup2(fileno(log_file), STDERR_FILENO), STDERR_FILENO);
    ck_assert_int_eq(unsetenv("JOURNAL_STREAM"), 0);
    ft_log_level_set(FT_LOG_INFO);
}

/* What was logged since the last look. */
static const char *logged(void)
{
    size_t n;

    rewind(log_file);
    n = fread(text, 1, sizeof(text) - 1, log_file);
    text[n] = '\0';
    ck_assert_int_eq(ftruncate(fileno(log_file), 0), 0);
    rewind(log_file);
    return text;
}

START_TEST(levels_and_lines)
{
    enum ft_log_level level = FT_LOG_DEBUG;

    begin();
    ft_log(FT_LOG_ERROR, "switch '%s': %d", "leaf3", 7);
    ft_log(FT_LOG_DEBUG, "not seen");
    ft_log(FT_LOG_INFO, "last");
    ck_assert_str_eq(logged(), "error: switch 'leaf3': 7\ninfo: last\n");
    ck_assert_int_eq(ft_log_level_parse("warning", &level), 0);
    ck_assert_int_eq(level, FT_LOG_WARNING);
    ck_assert_int_eq(ft_log_level_parse("warn", &level), -EINVAL);
    ck_assert_int_eq(ft_log_level_parse("", &level), -EINVAL);
    ck_assert_int_eq(ft_log_level_parse("Warning", &level), -EINVAL);
    ck_assert_int_eq(level, FT_LOG_WARNING);
    ft_log_level_set(level);
    ft_log(FT_LOG_NOTICE, "not seen");
    ft_log_trouble("seen");
    ck_assert_str_eq(logged(), "warning: seen\n");
    ck_assert_int_eq(setenv("JOURNAL_STREAM", "8:1", 1), 0);
    ft_log(FT_LOG_WARNING, "for the journal");
    ck_assert_str_eq(logged(), "<4>for the journal\n");
}
END_TEST

/* Text from a peer is one line, cut where it is long. */
START_TEST(a_peer_forges_no_line)
{
    char *big = malloc(10000);

    begin();
    ft_log(FT_LOG_WARNING, "peer '%s'", "a\nerror: forged\r\n\033[31mred\tx");
    ck_assert_str_eq(logged(), "warning: peer 'a error: forged   [31mred x'\n");
    ck_assert_ptr_nonnull(big);
    memset(big, 'x', 9999);
    big[9999] = '\0';
    ft_log(FT_LOG_INFO, "%s", big);
    ck_assert_uint_eq(strlen(logged()), strlen("info: ") + 2047 + 1);
    ck_assert_ptr_eq(strchr(text, '\n'), text + strlen(text) - 1);
    free(big);
}
END_TEST

static struct {
    unsigned calls;
    enum ft_log_level level;
    char id[64], subject[64], text[64];
    bool works;
} sent;

static bool send_entry(enum ft_log_level level, const struct ft_log_subject *subject,
                       const char *message_id, const char *line)
{
    sent.calls++;
    sent.level = level;
    snprintf(sent.id, sizeof(sent.id), "%s", message_id);
    snprintf(sent.subject, sizeof(sent.subject), "%s=%s", subject->field, subject->name);
    snprintf(sent.text, sizeof(sent.text), "%s", line);
    return sent.works;
}

START_TEST(entries_that_can_be_looked_for)
{
    const struct ft_log_subject leaf = {FT_LOG_ID_SWITCH, FT_LOG_SWITCH_FIELD, "leaf3"};

    begin();
    ft_log_about(FT_LOG_WARNING, &leaf, "switch '%s': silent", "leaf3");
    ck_assert_str_eq(logged(), "warning: switch 'leaf3': silent\n");
    ft_log_journal_set(send_entry);
    sent.works = true;
    ft_log_about(FT_LOG_WARNING, &leaf, "switch '%s':\nsilent", "leaf3");
    ck_assert_str_eq(logged(), "");
    ck_assert_uint_eq(sent.calls, 1);
    ck_assert_int_eq(sent.level, FT_LOG_WARNING);
    ck_assert_str_eq(sent.subject, "FABRICTRACE_SWITCH=leaf3");
    ck_assert_str_eq(sent.text, "switch 'leaf3': silent");
    /* Its identifier is published, and never changes. */
    ck_assert_str_eq(sent.id, "fff0213afd7540fcac5d14631bcfd716");
    ft_log_about(FT_LOG_DEBUG, &leaf, "below the level");
    ck_assert_uint_eq(sent.calls, 1);
    sent.works = false; /* the journal is away: a line, then */
    ft_log_about(FT_LOG_INFO, &leaf, "again");
    ck_assert_str_eq(logged(), "info: again\n");
    ft_log_journal_set(NULL);
}
END_TEST

START_TEST(peers_are_limited)
{
    struct ft_log_limit limit = {.interval_ns = 10 * S, .burst = 3};
    uint64_t held = 77;

    for (int64_t i = 0; i < 3; i++) {
        ck_assert(ft_log_limit_pass(&limit, (struct ft_mono){5 * S + i}, &held));
        ck_assert_uint_eq(held, 0);
    }
    for (int64_t i = 0; i < 40; i++)
        ck_assert(!ft_log_limit_pass(&limit, (struct ft_mono){5 * S + 3 + i}, &held));
    ck_assert(!ft_log_limit_pass(&limit, (struct ft_mono){15 * S - 1}, &held));
    /* An interval after the first that passed, with what was held back. */
    ck_assert(ft_log_limit_pass(&limit, (struct ft_mono){15 * S}, &held));
    ck_assert_uint_eq(held, 41);
    ck_assert(ft_log_limit_pass(&limit, (struct ft_mono){15 * S + 1}, &held));
    ck_assert_uint_eq(held, 0);
    ck_assert(ft_log_limit_pass(&limit, (struct ft_mono){15 * S + 2}, &held));
    ck_assert(!ft_log_limit_pass(&limit, (struct ft_mono){25 * S - 1}, &held));
    ck_assert(ft_log_limit_pass(&limit, (struct ft_mono){40 * S}, &held));
    ck_assert_uint_eq(held, 1);
}
END_TEST

START_TEST(a_state_is_said_when_it_changes)
{
    struct ft_log_state state = {.subject = {FT_LOG_ID_DAEMON, NULL, NULL},
                                 .limit = {.interval_ns = 10 * S, .burst = 2}};

    begin();
    ft_log_change(&state, true, "connected", (struct ft_mono){S});
    ft_log_change(&state, true, "connected", (struct ft_mono){2 * S});
    ck_assert_str_eq(logged(), "info: connected\n");
    ft_log_change(&state, false, "refused", (struct ft_mono){3 * S});
    ck_assert_str_eq(logged(), "warning: refused\n");
    /* Reasons alternate: not said within the interval. */
    ft_log_change(&state, false, "timeout", (struct ft_mono){4 * S});
    ft_log_change(&state, false, "refused", (struct ft_mono){5 * S});
    ft_log_change(&state, false, "timeout", (struct ft_mono){12 * S});
    ck_assert_str_eq(logged(), "");
    ft_log_change(&state, false, "refused", (struct ft_mono){13 * S});
    ck_assert_str_eq(logged(), "warning: refused\n");
    ft_log_change(&state, false, "refused", (struct ft_mono){30 * S}); /* no news */
    ck_assert_str_eq(logged(), "");
    ck_assert(state.known && !state.up);
    /* It flaps: two in ten seconds, and the rest with the next. */
    for (int64_t i = 0; i < 10; i++)
        ft_log_change(&state, i % 2 == 0, i % 2 ? "refused" : "connected",
                      (struct ft_mono){40 * S + i});
    ck_assert_str_eq(logged(), "info: connected\nwarning: refused\n");
    ft_log_change(&state, true, "connected", (struct ft_mono){50 * S});
    ck_assert_str_eq(logged(), "info: connected (8 more held back)\n");
}
END_TEST

START_TEST(complaints_are_errors)
{
    struct ft_diag *diag = ft_diag_new();
    const char *line;
    size_t lines = 0;

    begin();
    ck_assert_ptr_nonnull(diag);
    ft_diag_add(diag, "a.yaml", 3, "unknown key '%s'", "x");
    ft_diag_add(diag, NULL, 0, "twice");
    ft_log_complaints(diag);
    ck_assert_str_eq(logged(), "error: a.yaml:3: unknown key 'x'\nerror: twice\n");
    for (int i = 0; i < 998; i++)
        ft_diag_add(diag, NULL, 0, "more");
    ft_log_complaints(diag);
    logged();
    for (line = text; (line = strchr(line, '\n')); line++)
        lines++;
    /* Those that are kept, and how many are not. */
    line = strstr(text, "error: and ");
    ck_assert_ptr_nonnull(line);
    ck_assert_uint_eq(lines - 1 + strtoul(line + strlen("error: and "), NULL, 10), 1000);
    ft_diag_free(diag);
}
END_TEST

/* A value of any length is in it: of such a one, too, it is said where it is. */
START_TEST(a_long_complaint_is_cut)
{
    struct ft_diag *diag = ft_diag_new();
    char value[3000], file[1100];
    const char *kept;

    memset(value, 'x', sizeof(value) - 1);
    value[sizeof(value) - 1] = '\0';
    ft_diag_add(diag, "a.yaml", 3, "key 'exporters': '%s' is no prefix", value);
    kept = ft_diag_text(diag, 0);
    ck_assert_ptr_nonnull(kept);
    ck_assert_ptr_eq(strstr(kept, "a.yaml:3: key 'exporters': 'xxx"), kept);
    ck_assert_uint_eq(strlen(kept), 1023);
    ck_assert_str_eq(kept + 1023 - 4, "x...");
    memset(file, 'y', sizeof(file) - 1);
    file[sizeof(file) - 1] = '\0';
    ft_diag_add(diag, file, 3, "wrong");
    ft_diag_add(diag, file + sizeof(file) - 1015, 3, "wrong");
    ft_diag_add(diag, file + sizeof(file) - 1016, 3, "wrong");
    ck_assert_uint_eq(ft_diag_count(diag), 4);
    ck_assert_str_eq(ft_diag_text(diag, 1) + 1023 - 4, "y...");
    ck_assert_str_eq(ft_diag_text(diag, 2) + 1014, ":3: wrong");
    ck_assert_str_eq(ft_diag_text(diag, 3) + 1015, ":3: w...");
    ft_diag_free(diag);
}
END_TEST

FT_UNIT_MAIN("log", levels_and_lines, a_peer_forges_no_line, entries_that_can_be_looked_for,
             peers_are_limited, a_state_is_said_when_it_changes, complaints_are_errors,
             a_long_complaint_is_cut)
