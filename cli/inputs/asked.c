// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/inputs/asked.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/table.h"
#include "lib/config/asking.h"
#include "lib/io/helper.h"
#include "lib/io/loop.h"

#define PROCESSES  16
#define TIMEOUT_NS (INT64_C(30) * 1000000000)
#define FAIL_TEXT  (FT_HELPER_ERR_BYTES + 64)

enum state {
    NOTED,
    KNOWN,
    SILENT,
};

struct entry {
    /* The key, without padding: the port by which the flow enters names the switch. */
    uint32_t in, zero;
    struct ft_tuple tuple;
    uint32_t out; /* an end of the topology */
    enum state state;
};

struct running {
    struct ft_asked *all;
    struct ft_helper *helper; /* NULL: free */
    struct entry *entry;
    struct ft_asking question;
};

struct ft_asked {
    const struct ft_topology *t;
    struct ft_strings commands;
    struct ft_table *table;
    struct ft_loop *loop;
    uint32_t *notes; /* indices of entries, of which next..noted wait */
    uint32_t noted, next, pending;
    char **failures; /* by switch */
    bool stopped;
    struct ft_asked_stats stats;
    struct running running[PROCESSES];
};

static bool on_stop(void *arg)
{
    struct ft_asked *a = arg;

    a->stopped = true;
    return true;
}

struct ft_asked *ft_asked_new(const struct ft_args *args, const struct ft_topology *t)
{
    struct ft_asked *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->t = t;
    a->commands = (struct ft_strings){(char **)(uintptr_t)args->oracles, args->oracle_count};
    a->table = ft_table_new(sizeof(struct entry), offsetof(struct entry, out), FT_ASKED_MAX, 0);
    a->notes = calloc(FT_ASKED_MAX, sizeof(*a->notes));
    a->failures = calloc((size_t)ft_topology_switches(t) + 1, sizeof(*a->failures));
    a->loop = ft_loop_new();
    for (size_t i = 0; i < PROCESSES; i++)
        a->running[i].all = a;
    if (a->table && a->notes && a->failures && a->loop) {
        ft_loop_on_signals(a->loop, NULL, on_stop, a);
        return a;
    }
    ft_asked_free(a);
    return NULL;
}

void ft_asked_free(struct ft_asked *a)
{
    if (!a)
        return;
    for (size_t i = 0; i < PROCESSES; i++)
        ft_helper_free(a->running[i].helper);
    for (uint32_t i = 0; a->failures && i < ft_topology_switches(a->t); i++)
        free(a->failures[i]);
    free(a->failures);
    free(a->notes);
    ft_table_free(a->table);
    ft_loop_free(a->loop);
    free(a);
}

bool ft_asked_has(const struct ft_asked *a, const char *switch_name)
{
    return a && ft_asking_command(&a->commands, switch_name) != NULL;
}

uint32_t ft_asked_choose(struct ft_asked *a, const struct ft_choice *choice, uint32_t in,
                         const struct ft_tuple *tuple)
{
    struct entry key = {.in = in, .tuple = *tuple}, *e = ft_table_find(a->table, &key);
    bool fresh;

    if (!e) {
        e = ft_table_insert(a->table, &key, &fresh);
        if (e)
            a->notes[a->noted++] = ft_table_index(a->table, e);
        return FT_NONE;
    }
    for (uint32_t i = 0; e->state == KNOWN && i < choice->count; i++)
        if (ft_topology_ends_agree(a->t, choice->links[i], e->out))
            return i;
    return FT_NONE;
}

static uint32_t switch_of(const struct ft_asked *a, const struct entry *e)
{
    return ft_topology_port(a->t, e->in)->switch_id;
}

static void fail(struct ft_asked *a, uint32_t switch_id, const char *what, const char *error)
{
    char text[FAIL_TEXT];
    int len = (int)strcspn(error, "\r\n");

    snprintf(text, sizeof(text), "%s%s%.*s", what, len ? ": " : "", len, error);
    if (!a->failures[switch_id])
        a->failures[switch_id] = strdup(text);
}

/* What a command wrote that ended with status 0. */
static void take(struct ft_asked *a, struct entry *e, const char *text)
{
    uint32_t id = switch_of(a, e), out;
    char name[FT_ASKING_NAME];

    if (!ft_asking_read(text, name)) {
        fail(a, id, "it wrote something other than the name of a port", "");
        return;
    }
    out = ft_topology_find_port(a->t, id, name);
    if (out == FT_NONE)
        out = ft_topology_find_lag(a->t, id, name);
    if (out == FT_NONE)
        return;
    e->out = out;
    e->state = KNOWN;
}

static void step(struct ft_asked *a);

static void on_done(void *arg, const struct ft_helper_result *result)
{
    struct running *r = arg;
    struct ft_asked *a = r->all;
    uint32_t id = switch_of(a, r->entry);

    r->entry->state = SILENT;
    if (result->end == FT_HELPER_TIMED_OUT)
        fail(a, id, "it did not answer in time", result->err);
    else if (result->end != FT_HELPER_EXITED || result->status > 1 || result->too_long)
        fail(a, id, "it failed", result->err);
    else if (result->status == 0)
        take(a, r->entry, result->out);
    a->stats.silent += r->entry->state == SILENT;
    a->pending--;
    ft_helper_free(r->helper);
    r->helper = NULL;
    step(a);
}

static void start(struct ft_asked *a, struct running *r, struct entry *e)
{
    const struct ft_port *in = ft_topology_port(a->t, e->in);
    const char *name = ft_topology_switch(a->t, in->switch_id)->name;
    const char *command = ft_asking_command(&a->commands, name);
    int rc;

    e->state = SILENT;
    if (a->failures[in->switch_id])
        return;
    if (!command || !ft_asking_is_safe(name) || !ft_asking_is_safe(in->name) ||
        !ft_asking_write(&r->question, command, name, in->name, &e->tuple)) {
        fail(a, in->switch_id, "a name has characters that are not passed on", "");
        return;
    }
    a->stats.questions++;
    r->entry = e;
    rc = ft_helper_start(a->loop, r->question.argv, TIMEOUT_NS, on_done, r, &r->helper);
    if (rc)
        fail(a, in->switch_id, r->question.argv[0], strerror(-rc));
    else
        a->pending++;
}

/* Starts what there is room for; ends the loop when nothing runs any more. */
static void step(struct ft_asked *a)
{
    for (size_t i = 0; i < PROCESSES; i++)
        while (!a->running[i].helper && a->next < a->noted && !a->stopped)
            start(a, &a->running[i], ft_table_at(a->table, a->notes[a->next++]));
    if (a->pending == 0)
        ft_loop_exit(a->loop, 0);
}

bool ft_asked_run(struct ft_asked *a, bool *stopped)
{
    bool any = a->next < a->noted;

    step(a);
    if (a->pending)
        ft_loop_run(a->loop);
    *stopped = a->stopped;
    return any;
}

bool ft_asked_failure(const struct ft_asked *a, uint32_t i, const char **switch_name,
                      const char **text)
{
    if (i >= ft_topology_switches(a->t))
        return false;
    *switch_name = ft_topology_switch(a->t, i)->name;
    *text = a->failures[i];
    return true;
}

struct ft_asked_stats ft_asked_stats(const struct ft_asked *a)
{
    return a->stats;
}
