// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/intake.h"
#include "proto/columns.h"
#include "proto/record.h"

#define REASON_BYTES 256

static bool is_blank(const char *line, ssize_t len)
{
    return (size_t)len == strspn(line, " \t\r\n");
}

static void go_to(struct ft_pipeline *p, int64_t ms, int64_t *now_ms)
{
    if (ms <= *now_ms)
        return;
    *now_ms = ms;
    while (ft_pipeline_advance(p, ms, UINT32_MAX))
        ;
}

/* Observations in columns have times of their own. */
static void apply_record(struct ft_pipeline *p, const Fabrictrace__Record *record, int64_t *now_ms)
{
    struct ft_columns_reader rows;
    struct ft_observed one = {.packets = 0};

    if (record->kind_case != FABRICTRACE__RECORD__KIND_OBSERVATIONS ||
        ft_columns_open(&rows, record->observations)) {
        go_to(p, ft_record_time_ms(record), now_ms);
        ft_pipeline_record(p, record, *now_ms);
        return;
    }
    while (ft_columns_next(&rows, &one)) {
        go_to(p, ft_moment_ms(one.last_ms), now_ms);
        ft_pipeline_observed(p, &one, *now_ms);
    }
}

static void apply_line(struct ft_pipeline *p, const char *file, uint64_t number, const char *line,
                       size_t len, int64_t *now_ms, void (*complain)(void *arg, const char *text),
                       void *arg, struct ft_replay_stats *stats)
{
    Fabrictrace__Record *record;
    char reason[REASON_BYTES];
    char text[REASON_BYTES + 256];

    if (ft_record_from_json(line, len, &record, reason, sizeof(reason))) {
        stats->broken++;
        snprintf(text, sizeof(text), "%s:%llu: %s", file, (unsigned long long)number, reason);
        complain(arg, text);
        return;
    }
    stats->records++;
    apply_record(p, record, now_ms);
    ft_record_free(record);
}

int ft_replay(struct ft_pipeline *p, const char *file,
              void (*complain)(void *arg, const char *text), void *arg,
              struct ft_replay_stats *stats)
{
    bool standard = strcmp(file, "-") == 0;
    FILE *in = standard ? stdin : fopen(file, "re");
    char *line = NULL;
    size_t size = 0;
    uint64_t number = 0;
    int64_t now_ms = 0;
    ssize_t len;
    int rc = 0;

    memset(stats, 0, sizeof(*stats));
    if (!in)
        return -errno;
    while ((len = getline(&line, &size, in)) > 0) {
        number++;
        if (is_blank(line, len))
            continue;
        stats->lines++;
        apply_line(p, standard ? "stdin" : file, number, line, (size_t)len, &now_ms, complain, arg,
                   stats);
    }
    if (ferror(in))
        rc = errno ? -errno : -EIO;
    ft_pipeline_finish(p);
    free(line);
    if (!standard)
        fclose(in);
    return rc;
}
