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

static enum ft_log_level threshold = FT_LOG_INFO;

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

static const char *level_name(enum ft_log_level level)
{
    for (size_t i = 0; i < sizeof(levels) / sizeof(levels[0]); i++)
        if (levels[i].level == level)
            return levels[i].name;
    return "log";
}

void ft_log(enum ft_log_level level, const char *format, ...)
{
    char line[LINE_MAX_BYTES];
    va_list args;
    int at;
    int n;

    if (level > threshold)
        return;
    /* systemd sets JOURNAL_STREAM for a process whose stderr is the journal (systemd.exec(5)). */
    if (getenv("JOURNAL_STREAM"))
        at = snprintf(line, sizeof(line), "<%d>", (int)level);
    else
        at = snprintf(line, sizeof(line), "%s: ", level_name(level));
    va_start(args, format);
    n = vsnprintf(line + at, sizeof(line) - (size_t)at - 1, format, args);
    va_end(args);
    if (n < 0)
        return;
    at += n;
    if ((size_t)at > sizeof(line) - 2)
        at = sizeof(line) - 2;
    /* A peer's text must not forge a line of its own. */
    for (int i = 0; i < at; i++)
        if ((unsigned char)line[i] < ' ')
            line[i] = ' ';
    line[at++] = '\n';
    if (write(STDERR_FILENO, line, (size_t)at) < 0)
        return;
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
        ft_log(level, "%s (%" PRIu64 " more held back)", text, held);
    else if (state->reported)
        ft_log(level, "%s", text);
}
