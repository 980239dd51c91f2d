// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/history/keeper.h"

#include <errno.h>
#include <limits.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/history/snapshot.h"
#include "lib/base/log.h"

#define NS_PER_S    INT64_C(1000000000)
#define EVERY_NS    (180 * NS_PER_S)
#define STEP_NS     (NS_PER_S / 100)
#define ERROR_BYTES (PATH_MAX + 128)

struct ft_keeper {
    struct ft_history *history;
    char path[PATH_MAX];
    struct ft_snapshot *snapshot; /* that is being written; NULL: none */
    struct ft_watch *watch;
};

static void drop(struct ft_keeper *k)
{
    ft_snapshot_free(k->snapshot);
    k->snapshot = NULL;
}

static void begin(struct ft_keeper *k)
{
    char error[ERROR_BYTES];

    k->snapshot = ft_snapshot_new(k->history, k->path, error, sizeof(error));
    if (!k->snapshot)
        ft_log(FT_LOG_ERROR, "history_file %s", error);
}

/* True while there is more. */
static bool go_on(struct ft_keeper *k)
{
    int rc = k->snapshot ? ft_snapshot_step(k->snapshot) : 0;

    if (rc > 0)
        return true;
    if (rc < 0)
        ft_log(FT_LOG_ERROR, "history_file %s: %s", k->path, strerror(-rc));
    drop(k);
    return false;
}

static void on_watch(void *arg)
{
    struct ft_keeper *k = arg;

    if (!k->snapshot)
        begin(k);
    ft_watch_once_arm(k->watch, go_on(k) ? STEP_NS : EVERY_NS);
}

static bool find_path(struct ft_keeper *k, const char *path)
{
    const char *folder = getenv("STATE_DIRECTORY");
    int n = 0;

    if (path && *path)
        n = snprintf(k->path, sizeof(k->path), "%s", path);
    else if (folder && *folder)
        n = snprintf(k->path, sizeof(k->path), "%.*s/history", (int)strcspn(folder, ":"), folder);
    return n > 0 && n < PATH_MAX;
}

/* What stood when the daemon before ended. */
static size_t inherit(const struct ft_history *history, struct ft_events *events)
{
    struct ft_history_event e = {.number = 0};
    size_t n = 0;

    for (uint64_t at = 0; ft_history_event(history, at, &e); at = e.number + 1) {
        Fabrictrace__Event *event =
            e.stands ? fabrictrace__event__unpack(NULL, e.begun_len, e.begun) : NULL;

        if (!event)
            continue;
        ft_events_inherit(events, event);
        fabrictrace__event__free_unpacked(event, NULL);
        n++;
    }
    return n;
}

struct ft_keeper *ft_keeper_new(struct ft_loop *loop, struct ft_history *history,
                                struct ft_events *events, const char *path)
{
    struct ft_keeper *k = calloc(1, sizeof(*k));
    struct ft_history_stats stats;
    char error[ERROR_BYTES];
    int rc;

    if (!k || !find_path(k, path) || !(k->watch = ft_watch_once(loop, on_watch, k))) {
        free(k);
        return NULL;
    }
    k->history = history;
    rc = ft_snapshot_load(history, k->path, error, sizeof(error));
    ft_history_stats(history, &stats);
    if (rc == 0)
        ft_log(FT_LOG_INFO, "history_file %s: %zu windows loaded, and %zu active events", k->path,
               stats.windows, inherit(history, events));
    else if (rc == -ESTALE)
        ft_log(FT_LOG_WARNING, "history_file %s; %zu active events loaded", error,
               inherit(history, events));
    else if (rc != -ENOENT)
        ft_log(FT_LOG_WARNING, "history_file %s: starting empty", error);
    ft_watch_once_arm(k->watch, EVERY_NS);
    return k;
}

void ft_keeper_finish(struct ft_keeper *k)
{
    if (!k)
        return;
    drop(k);
    ft_watch_once_disarm(k->watch);
    begin(k);
    while (go_on(k))
        ;
}

void ft_keeper_free(struct ft_keeper *k)
{
    if (!k)
        return;
    drop(k);
    ft_watch_free(k->watch);
    free(k);
}
