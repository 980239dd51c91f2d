// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/clocks.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"

#define NAME_BYTES  128
#define IN_A_ROW    3
#define AHEAD_MS    2000
#define BEHIND_MS   5000
#define ALIKE_MS    2000
#define SILENT_MS   180000
#define LOOKS       32 /* at a full table, for each that is new */
#define MOST_LEAST  3  /* programs that make a majority worth the name */
#define MOST_MAX    4096
#define ADVICE      "synchronise all hosts with one NTP or PTP server"
#define DAEMON_NAME "fabrictraced"

struct clock_key {
    char program[NAME_BYTES];
    char source[NAME_BYTES];
};

struct program {
    struct clock_key key;
    bool own;                    /* this daemon: its offsets are those of most others */
    int64_t offset_ms[IN_A_ROW]; /* its clock less ours, delay included; the newest first */
    uint32_t count;
    int64_t seen_ms;
    bool off;
    int64_t since_ms;
    int64_t reported_ms; /* the offset, against what most say */
};

struct ft_clocks {
    struct ft_table *programs;
    int64_t now_ms;
    uint32_t hand;       /* where a full table is looked at next */
    struct program self; /* this daemon, against what most say */
    int64_t offsets_ms[MOST_MAX];
};

struct ft_clocks *ft_clocks_new(size_t programs_max, const char *own)
{
    struct ft_clocks *c = calloc(1, sizeof(*c));

    if (!c)
        return NULL;
    c->self.own = true;
    snprintf(c->self.key.program, sizeof(c->self.key.program), DAEMON_NAME);
    snprintf(c->self.key.source, sizeof(c->self.key.source), "%s", own ? own : "");
    c->programs = ft_table_new(sizeof(struct program), sizeof(struct clock_key), programs_max, 0);
    if (!c->programs) {
        free(c);
        return NULL;
    }
    return c;
}

void ft_clocks_free(struct ft_clocks *c)
{
    if (!c)
        return;
    ft_table_free(c->programs);
    free(c);
}

static void note(struct program *p, int64_t offset_ms, int64_t now_ms)
{
    memmove(p->offset_ms + 1, p->offset_ms, sizeof(p->offset_ms) - sizeof(p->offset_ms[0]));
    p->offset_ms[0] = offset_ms;
    p->count += p->count < IN_A_ROW;
    p->seen_ms = now_ms;
}

static bool is_silent(void *arg, void *entry)
{
    const struct ft_clocks *c = arg;
    struct program *p = entry;

    /* This host's clock was set back. */
    if (p->seen_ms > c->now_ms)
        p->seen_ms = c->now_ms;
    return c->now_ms - p->seen_ms > SILENT_MS;
}

static struct program *program_of(struct ft_clocks *c, const struct clock_key *key, int64_t now_ms)
{
    bool fresh;
    struct program *p = ft_table_insert(c->programs, key, &fresh);

    c->now_ms = now_ms;
    if (!p && ft_table_make_room(c->programs, &c->hand, LOOKS, is_silent, c))
        p = ft_table_insert(c->programs, key, &fresh);
    return p;
}

void ft_clocks_take(struct ft_clocks *c, const char *program, const char *source, int64_t time_ms,
                    int64_t now_ms, bool replay)
{
    struct clock_key key = {{0}, {0}};
    int64_t offset_ms = time_ms - now_ms;
    struct program *p;

    snprintf(key.program, sizeof(key.program), "%s", program);
    snprintf(key.source, sizeof(key.source), "%s", source);
    p = program_of(c, &key, now_ms);
    if (p)
        note(p, replay && offset_ms > 0 ? 0 : offset_ms, now_ms);
}

/* Smallest and largest of the last offsets, against a reference. */
static void range(const struct program *p, int64_t reference_ms, int64_t *low, int64_t *high)
{
    *low = INT64_MAX;
    *high = INT64_MIN;
    for (uint32_t i = 0; i < p->count; i++) {
        int64_t offset_ms = p->offset_ms[i] - reference_ms;

        *low = offset_ms < *low ? offset_ms : *low;
        *high = offset_ms > *high ? offset_ms : *high;
    }
}

/* Either way: this host's clock may have been set back since. */
static bool is_mute(const struct program *p, int64_t now_ms)
{
    return llabs(now_ms - p->seen_ms) > SILENT_MS;
}

static void judge(struct program *p, int64_t reference_ms, int64_t now_ms)
{
    int64_t low, high;

    if (p->count < IN_A_ROW || is_mute(p, now_ms)) {
        p->off = false;
        return;
    }
    range(p, reference_ms, &low, &high);
    if (low > AHEAD_MS || (high < -BEHIND_MS && high - low <= ALIKE_MS)) {
        if (!p->off)
            p->since_ms = now_ms;
        p->off = true;
        /* The one that was delayed least. */
        p->reported_ms = p->own ? -high : high;
    } else if (high <= AHEAD_MS / 2 && low >= -BEHIND_MS / 2) {
        p->off = false;
    }
}

static int compare(const void *a, const void *b)
{
    int64_t x = *(const int64_t *)a, y = *(const int64_t *)b;

    return (x > y) - (x < y);
}

/* What most programs' newest offsets are alike in; 0 where too few report or they differ. */
static int64_t most_say(struct ft_clocks *c, int64_t now_ms)
{
    int64_t *offsets = c->offsets_ms;
    const struct program *p;
    uint32_t index = 0, count = 0, alike = 0;
    int64_t median;

    while (count < MOST_MAX && (p = ft_table_next(c->programs, &index)))
        if (p->count == IN_A_ROW && !is_mute(p, now_ms))
            offsets[count++] = p->offset_ms[0];
    if (count < MOST_LEAST)
        return 0;
    qsort(offsets, count, sizeof(*offsets), compare);
    median = offsets[count / 2];
    for (uint32_t i = 0; i < count; i++)
        alike += llabs(offsets[i] - median) <= ALIKE_MS / 2;
    return alike > count / 2 ? median : 0;
}

static void describe(const struct program *p, char *text, size_t size)
{
    if (p->reported_ms > 0)
        snprintf(text, size, "the clock of %.60s '%.100s' is %.1f s ahead", p->key.program,
                 p->key.source, (double)p->reported_ms / 1000);
    else
        snprintf(
            text, size,
            "the clock of %.60s '%.100s' is %.1f s behind, or its records are delayed by that time",
            p->key.program, p->key.source, -(double)p->reported_ms / 1000);
}

static void raise_program(const struct program *p, struct ft_events *events, uint32_t window,
                          int64_t now_ms, const char *fabric)
{
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    char subject[2 * NAME_BYTES + 2], message[400], text[300];

    describe(p, text, sizeof(text));
    snprintf(subject, sizeof(subject), "%s/%s", p->key.program, p->key.source);
    snprintf(message, sizeof(message), "%s: %s", text, ADVICE);
    evidence.program = (char *)(uintptr_t)p->key.program;
    evidence.source = (char *)(uintptr_t)p->key.source;
    evidence.has_offset_ms = true;
    evidence.offset_ms = p->reported_ms;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_CLOCK_SKEW,
                  FABRICTRACE__SEVERITY__SEVERITY_WARNING, fabric, p->since_ms, now_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise(events, window, &event);
}

void ft_clocks_raise(struct ft_clocks *c, struct ft_events *events, uint32_t window, int64_t now_ms,
                     const char *fabric)
{
    int64_t reference_ms = most_say(c, now_ms);
    struct program *p;
    uint32_t index = 0;

    /* Busy hosts delay most of them by about the same. Then our clock is not off, and those that
     * are on time are not ahead. */
    if (reference_ms <= AHEAD_MS && reference_ms >= -BEHIND_MS)
        reference_ms = 0;
    /* Theirs against ours, which is behind by what they are ahead. */
    note(&c->self, reference_ms, now_ms);
    judge(&c->self, 0, now_ms);
    if (c->self.off)
        raise_program(&c->self, events, window, now_ms, fabric);
    while ((p = ft_table_next(c->programs, &index))) {
        judge(p, reference_ms, now_ms);
        if (p->off)
            raise_program(p, events, window, now_ms, fabric);
    }
}

void ft_clocks_find(const struct ft_clocks *c, struct ft_findings *findings)
{
    const struct program *p = &c->self;
    uint32_t index = 0;
    char text[300];

    do {
        if (!p->off)
            continue;
        describe(p, text, sizeof(text));
        ft_findings_add(findings, FT_FINDING_NOTE, NULL, NULL, ADVICE, "%s", text);
    } while ((p = ft_table_next(c->programs, &index)));
}
