// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/base/log.h"

#include <errno.h>
#include <inttypes.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <unistd.h>

#define LINE_MAX_BYTES 2048

static const struct {
    const char *name;
    enum ft_log_level level;
} levels[] = {
    {"error", FT_LOG_ERROR}, {"warning", FT_LOG_WARNING}, {"notice", FT_LOG_NOTICE},
    {"info", FT_LOG_INFO},   {"debug", FT_LOG_DEBUG},
};

static const char *const ids[] = {
    [FT_LOG_ID_RELOADED] = "8a6aefa9a7d14c58b2330b1274421820",
    [FT_LOG_ID_RELOAD_FAILED] = "cf8fd011cb35417aa7bb32f069f1c949",
    [FT_LOG_ID_DAEMON] = "d71f8f20ce58406591a0556a25622108",
    [FT_LOG_ID_PEER] = "317cdc16dbdf4148a332da26c768792c",
    [FT_LOG_ID_REFUSED] = "0f693559cf204d8194927886c188af37",
    [FT_LOG_ID_SWITCH] = "fff0213afd7540fcac5d14631bcfd716",
    [FT_LOG_ID_DATA_LOST] = "ac57eb33c3e340c883123c30f3bf9a49",
    [FT_LOG_ID_INTERFACE] = "2d72115afd584d0cbf2e8879e8a92f42",
    [FT_LOG_ID_JOB] = "cf8b37d0e2564473a6f528a167ca740f",
    [FT_LOG_ID_SINK] = "6b538f1db4c34b04ae3d7707ee1477ed",
};

static enum ft_log_level threshold = FT_LOG_INFO;
static ft_log_journal_fn *journal;

void ft_log_level_set(enum ft_log_level level)
{
    threshold = level;
}

int ft_log_level_parse(const char *name, enum ft_log_level *level)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++) {
        if (strcmp(levels[i].name, name) == 0) {
            *level = levels[i].level;
            return 0;
        }
    }
    return -EINVAL;
}

void ft_log_journal_set(ft_log_journal_fn *send)
{
    journal = send;
}

static const char *level_name(enum ft_log_level level)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (levels[i].level == level)
            return levels[i].name;
    return "log";
}

/* The line's text after its level, in `line`; its length. */
__attribute__((format(printf, 2, 0))) static size_t text_of(char *line, const char *format,
                                                            va_list args)
{
    int n = vsnprintf(line, LINE_MAX_BYTES, format, args);

    if (n < 0)
        n = 0;
    if (n > LINE_MAX_BYTES - 1)
        n = LINE_MAX_BYTES - 1;
    /* A peer's text must not forge a line of its own. */
    for (int i = 0; i < n; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    return (size_t)n;
}

static void write_line(enum ft_log_level level, const char *text, size_t len)
{
    char line[LINE_MAX_BYTES + 16];
    int at;

    /* systemd sets JOURNAL_STREAM for a process whose stderr is the journal (systemd.exec(5)). */
    if (getenv("JOURNAL_STREAM"))
        at = snprintf(line, sizeof(line), "<%d>", (int)level);
    else
        at = snprintf(line, sizeof(line), "%s: ", level_name(level));
    memcpy(line + at, text, len);
    line[(size_t)at + len] = '\n';
    if (write(STDERR_FILENO, line, (size_t)at + len + 1) < 0)
        return;
}

void ft_log(enum ft_log_level level, const char *format, ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    size_t len;

    if (level > threshold)
        return;
    va_start(args, format);
    len = text_of(text, format, args);
    va_end(args);
    write_line(level, text, len);
}

void ft_log_about(enum ft_log_level level, const struct ft_log_subject *subject, const char *format,
                  ...)
{
    char text[LINE_MAX_BYTES];
    va_list args;
    size_t len;

    if (level > threshold)
        return;
    va_start(args, format);
    len = text_of(text, format, args);
    va_end(args);
    if (!journal || !journal(level, subject, ids[subject->id], text))
        write_line(level, text, len);
}

void ft_log_complaints(const struct ft_diag *diag)
{
    size_t i = 0;

    for (; ft_diag_text(diag, i); i++)
        ft_log(FT_LOG_ERROR, "%s", ft_diag_text(diag, i));
    if (i < ft_diag_count(diag))
        ft_log(FT_LOG_ERROR, "and %zu more", ft_diag_count(diag) - i);
}

void ft_log_trouble(const char *text)
{
    ft_log(FT_LOG_WARNING, "%s", text);
}

bool ft_log_limit_pass(struct ft_log_limit *limit, struct ft_mono now, uint64_t *held)
{
    if (limit->passed == 0 || ft_mono_since_ns(now, limit->since) >= limit->interval_ns) {
        limit->since = now;
        limit->passed = 0;
    }
    if (limit->passed >= limit->burst) {
        limit->held++;
        return false;
    }
    limit->passed++;
    *held = limit->held;
    limit->held = 0;
    return true;
}

void ft_log_change(struct ft_log_state *state, bool up, const char *text, struct ft_mono now)
{
    /* Reasons may alternate. */
    bool news = !state->reported || state->up != up ||
                (!up && strncmp(state->text, text, sizeof(state->text) - 1) != 0 &&
                 ft_mono_since_ns(now, state->reported_at) >= state->limit.interval_ns);
    enum ft_log_level level = up ? FT_LOG_INFO : FT_LOG_WARNING;
    uint64_t held;

    state->known = true;
    state->up = up;
    snprintf(state->text, sizeof(state->text), "%s", text);
    if (!news)
        return;
    /* What was held back is logged with the next attempt that may be, if it is still so. */
    state->reported = ft_log_limit_pass(&state->limit, now, &held);
    if (state->reported)
        state->reported_at = now;
    if (state->reported && held)
        ft_log_about(level, &state->subject, "%s (%" PRIu64 " more held back)", text, held);
    else if (state->reported)
        ft_log_about(level, &state->subject, "%s", text);
}
