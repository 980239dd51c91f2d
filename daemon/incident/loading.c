// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/incident/loading.h"

#include <errno.h>
#include <inttypes.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "daemon/history/row.h"
#include "daemon/history/snapshot.h"
#include "daemon/incident/player.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/events.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/reader.h"
#include "lib/io/disk/incident.h"

#define HISTORY_MAX  ((size_t)1 << 30)
#define TOPOLOGY_MAX ((size_t)64 << 20)
#define LOG_NS       (INT64_C(5) * 1000000000)

/* A file while it is read. */
struct ft_loading {
    struct ft_loading_config config;
    struct ft_loading_target target;
    struct ft_head head;
    struct ft_settings settings;
    struct ft_player *player; /* NULL: no records yet */
    struct ft_writer topology, history, events;
    bool headed;
    bool damaged; /* what follows is not played: what was before it is missing */
    struct ft_mono logged;
};

static void complain(const struct ft_loading *l, const struct ft_diag *diag)
{
    for (size_t i = 0; ft_diag_text(diag, i); i++)
        ft_log(FT_LOG_ERROR, "%s: %s", l->config.file, ft_diag_text(diag, i));
}

/* The settings that the file has, over those of this program. */
static int take_head(struct ft_loading *l, const struct ft_incident_read *in)
{
    struct ft_diag *diag = ft_diag_new();
    int rc;

    if (!diag)
        return EX_OSERR;
    l->settings = *l->config.settings;
    rc = ft_head_read(in->bytes, in->len, &l->head, &l->settings, diag);
    complain(l, diag);
    ft_diag_free(diag);
    if (rc)
        return EX_DATAERR;
    if (strcmp(l->head.program, FT_HEAD_PROGRAM) != 0)
        ft_log(FT_LOG_WARNING,
               "%s: recorded by %s, replayed by " FT_HEAD_PROGRAM ": results may differ",
               l->config.file, l->head.program);
    l->headed = true;
    return EX_OK;
}

static struct ft_topology *take_topology(const struct ft_loading *l)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = diag ? ft_player_topology((const char *)l->topology.bytes,
                                                      l->topology.len, l->head.fabric, diag)
                                 : NULL;

    if (diag)
        complain(l, diag);
    ft_diag_free(diag);
    return t;
}

static int open_player(struct ft_loading *l)
{
    struct ft_topology *t = take_topology(l);
    int rc;

    if (!t)
        return EX_DATAERR;
    rc = l->config.open(l->config.arg, &l->head, &l->settings, t, &l->target);
    if (rc)
        return rc;
    l->player = ft_player_new(l->target.pipeline, l->head.fabric);
    if (!l->player)
        return EX_OSERR;
    ft_pipeline_on_account(l->target.pipeline, ft_player_account, l->player);
    ft_publisher_tap(l->target.publisher, ft_player_published, l->player);
    return EX_OK;
}

static void play(struct ft_loading *l, const struct ft_incident_read *in)
{
    struct ft_player_stats stats;
    size_t offset;
    int rc = ft_player_section(l->player, in->bytes, in->len, &offset);

    if (rc) {
        ft_log(FT_LOG_ERROR,
               "%s: at byte %" PRIu64
               ", %zu into its section: %s; the records up to there are used",
               l->config.file, in->offset, offset,
               rc == -EBADMSG ? "the recorded input is damaged" : strerror(-rc));
        l->damaged = true;
    }
    if (ft_mono_since_ns(ft_mono_now(), l->logged) < LOG_NS)
        return;
    l->logged = ft_mono_now();
    ft_player_stats(l->player, &stats);
    ft_log(FT_LOG_INFO, "%s: %" PRId64 " of %" PRId64 " s", l->config.file,
           (stats.to_ms - stats.from_ms) / 1000, (l->head.to_ms - stats.from_ms) / 1000);
}

static int take(struct ft_loading *l, const struct ft_incident_read *in)
{
    int rc = EX_OK;

    if (!l->headed && in->kind != FT_INCIDENT_HEAD) {
        ft_log(FT_LOG_ERROR, "%s: at byte %" PRIu64 ": the file does not begin with its head",
               l->config.file, in->offset);
        return EX_DATAERR;
    }
    switch (in->kind) {
    case FT_INCIDENT_HEAD:
        return l->headed ? EX_OK : take_head(l, in);
    case FT_INCIDENT_TOPOLOGY:
        ft_write_bytes(&l->topology, in->bytes, in->len);
        break;
    case FT_INCIDENT_RECORDS:
        if (!l->player)
            rc = open_player(l);
        if (rc == EX_OK && !l->damaged)
            play(l, in);
        break;
    case FT_INCIDENT_HISTORY:
        ft_write_bytes(&l->history, in->bytes, in->len);
        break;
    case FT_INCIDENT_EVENTS:
        ft_write_bytes(&l->events, in->bytes, in->len);
        break;
    default:
        break; /* of a later version: what is known here is used */
    }
    return rc;
}

/* Windows and events as they were published; of a file without them, what the replay made. */
static void restore_history(const struct ft_loading *l)
{
    struct ft_history_window last;

    if (l->history.len == 0 || !ft_writer_ok(&l->history))
        return;
    if (l->head.history_version != ft_row_version())
        ft_log(FT_LOG_WARNING, "%s: its windows are of another version: using those of the replay",
               l->config.file);
    else if (ft_snapshot_restore(l->target.history, l->head.history_number, l->history.bytes,
                                 l->history.len))
        ft_log(FT_LOG_ERROR, "%s: its windows are damaged and left out", l->config.file);
    else if (ft_history_last(l->target.history, &last))
        ft_window_set_last(ft_pipeline_stages(l->target.pipeline)->window, &last.span);
}

static void restore_events(const struct ft_loading *l)
{
    struct ft_events *events = ft_pipeline_stages(l->target.pipeline)->events;
    struct ft_reader r;

    ft_reader_init(&r, l->events.bytes, l->events.len);
    ft_events_forget(events);
    while (ft_reader_left(&r)) {
        uint32_t len = ft_read_be32(&r);
        const uint8_t *bytes = ft_read_bytes(&r, len);
        Fabrictrace__Event *event = bytes ? fabrictrace__event__unpack(NULL, len, bytes) : NULL;

        if (!event) {
            ft_log(FT_LOG_ERROR, "%s: an active event is damaged and left out", l->config.file);
            continue;
        }
        ft_events_restore(events, event);
        fabrictrace__event__free_unpacked(event, NULL);
    }
}

static void log_end(const struct ft_loading *l, bool complete)
{
    struct ft_player_stats s;

    ft_player_stats(l->player, &s);
    if (complete) {
        restore_history(l);
        restore_events(l);
    }
    ft_log(FT_LOG_NOTICE,
           "%s: %" PRId64 " s, %" PRIu64 " payloads came in, %" PRIu64 " records went out",
           l->config.file, (s.to_ms - s.from_ms) / 1000, s.batches, s.published);
    if (!l->head.from_start)
        ft_log(FT_LOG_NOTICE,
               "%s: the daemon was started before this recording: earlier windows and events are "
               "those published then, and counters start with the recording",
               l->config.file);
    else if (s.differ)
        ft_log(FT_LOG_WARNING,
               "%s: the replay differs from what was published in %" PRIu64 " of %" PRIu64
               " intervals",
               l->config.file, s.differ, s.compared);
    else
        ft_log(FT_LOG_NOTICE, "%s: the replay published the same, %" PRIu64 " intervals compared",
               l->config.file, s.compared);
}

/* To the end, or to where it breaks off. */
static int read_file(struct ft_loading *l, FILE *in)
{
    struct ft_incident *incident = ft_incident_open(in);
    struct ft_incident_read section;
    int rc = EX_OK, more = -ENOMEM;

    while (incident && rc == EX_OK && (more = ft_incident_next(incident, &section)) > 0)
        rc = take(l, &section);
    if (more < 0)
        ft_log(FT_LOG_ERROR, "%s: %s", l->config.file,
               incident ? ft_incident_problem(incident) : "no memory");
    ft_incident_close(incident);
    if (rc == EX_OK && l->headed && !l->player)
        rc = open_player(l);
    if (rc == EX_OK && !l->player)
        rc = EX_DATAERR;
    if (rc == EX_OK)
        log_end(l, more == 0);
    return rc;
}

struct ft_loading *ft_loading_new(const struct ft_loading_config *config)
{
    struct ft_loading *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->config = *config;
    l->logged = ft_mono_now();
    ft_writer_init(&l->topology, TOPOLOGY_MAX);
    ft_writer_init(&l->history, HISTORY_MAX);
    ft_writer_init(&l->events, HISTORY_MAX);
    return l;
}

void ft_loading_free(struct ft_loading *l)
{
    if (!l)
        return;
    ft_player_free(l->player);
    ft_head_clear(&l->head);
    ft_writer_free(&l->topology);
    ft_writer_free(&l->history);
    ft_writer_free(&l->events);
    free(l);
}

int ft_loading_run(struct ft_loading *l)
{
    FILE *in = fopen(l->config.file, "re");
    int rc;

    if (!in) {
        ft_log(FT_LOG_ERROR, "%s: %s", l->config.file, strerror(errno));
        return EX_NOINPUT;
    }
    rc = read_file(l, in);
    fclose(in);
    if (l->target.publisher)
        ft_publisher_tap(l->target.publisher, NULL, NULL);
    return rc;
}
