// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/pipeline/replay.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pipeline/intake.h"
#include "proto/record.h"

#define REASON_BYTES 256

static bool is_blank(const char *line, ssize_t len)
{
    return (size_t)len == strspn(line, " \t\r\n");
}

static void apply_line(struct ft_pipeline *p, const char *file, uint64_t number, const char *line,
                       size_t len, int64_t *now_ms, void (*complain)(void *arg, const char *text),
                       void *arg, struct ft_replay_stats *stats)
{
    Fabrictrace__Record *record;
    char reason[REASON_BYTES];
    char text[REASON_BYTES + 256];
    int64_t ms;

    if (ft_record_from_json(line, len, &record, reason, sizeof(reason))) {
        stats->broken++;
        snprintf(text, sizeof(text), "%s:%llu: %s", file, (unsigned long long)number, reason);
        complain(arg, text);
        return;
    }
    stats->records++;
    ms = ft_record_time_ms(record);
    if (ms > *now_ms) {
        *now_ms = ms;
        while (ft_pipeline_advance(p, ms, UINT32_MAX))
            ;
    }
    ft_pipeline_record(p, record, *now_ms);
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
