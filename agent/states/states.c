// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/states/states.h"

#include <errno.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "agent/states/dumps.h"
#include "agent/states/states_record.h"
#include "lib/base/clock.h"
#include "lib/base/log.h"
#include "lib/base/task.h"
#include "lib/base/tuple.h"
#include "lib/diagnosis/flight.h"
#include "lib/diagnosis/ras.h"
#include "lib/io/transport/dialog.h"

#define NS_PER_MS   INT64_C(1000000)
#define NS_PER_S    INT64_C(1000000000)
#define ANSWER_MAX  ((size_t)4 << 20)
#define NODES_MAX   400000
#define STEP_WORK   2000 /* nodes: less than a millisecond */
#define STEP_NS     NS_PER_MS
#define DIALOG_NS   (20 * NS_PER_S)
#define WARN_NS     (600 * NS_PER_S)
#define RARE        10 /* rounds */
#define DUMPS_ROUND 64
#define GROUPS_MAX  32

/* The commands of NCCL's RAS (its user guide, "RAS"); the protocol that it names is 2. */
static const struct ft_dialog_line ras_lines[] = {{"CLIENT PROTOCOL 2", "SERVER PROTOCOL "},
                                                  {"TIMEOUT 5", "OK"},
                                                  {"SET FORMAT json", "OK"},
                                                  {"VERBOSE STATUS", NULL}};

struct address {
    char *endpoint;
    unsigned rounds_left; /* until it is asked again */
};

struct ft_states {
    struct ft_states_config config; /* without what is copied */
    char *folder;
    struct ft_loop *loop;
    struct ft_uplink *uplink;
    struct ft_watch *timer, *step;
    struct ft_dialog *dialog;
    struct ft_dumps *dumps;
    struct ft_task *task;
    struct address addresses[FT_STATES_ADDRESSES];
    size_t at;         /* address that is asked */
    size_t dumps_left; /* of this round */
    bool busy;
    struct ft_dump text; /* that is read; its rank: of a dump */
    bool is_dump;
    struct ft_states_record record;
    struct ft_flight_group groups[GROUPS_MAX];
    struct ft_states_stats stats;
    struct ft_log_limit limit;
};

static void advance(struct ft_states *s);

static void warn(struct ft_states *s, const char *what, const char *why)
{
    uint64_t held;

    if (ft_log_limit_pass(&s->limit, ft_mono_now(), &held))
        ft_log(FT_LOG_WARNING, "%s: %s", what, why);
}

static bool is_own(const struct ft_states *s, const char *address)
{
    struct ft_ip ip;

    return ft_ip_parse(address, &ip) == 0 && ft_interfaces_is_local(s->config.interfaces, &ip);
}

/* Of the lowest rank that answered: -1 another host's, 0 nobody's that is known, 1 our own. */
static int whose(const struct ft_states *s, const struct ft_ras *ras,
                 const struct ft_ras_comm *comm)
{
    bool any = false;

    for (size_t i = 0; i < comm->count; i++)
        any = any || is_own(s, ras->ranks[comm->first + i].address);
    if (!any)
        return 0;
    for (size_t i = 0; i < comm->count; i++)
        if (!ras->ranks[comm->first + i].missing)
            return is_own(s, ras->ranks[comm->first + i].address) ? 1 : -1;
    return 1;
}

static void report_ras(struct ft_states *s, const struct ft_ras *ras)
{
    size_t elsewhere = 0;

    for (size_t c = 0; c < ras->comm_count; c++) {
        const struct ft_ras_comm *comm = &ras->comms[c];

        ft_task_spend(s->task, 1 + comm->count / 4);
        if (whose(s, ras, comm) < 0) {
            elsewhere++;
            continue;
        }
        ft_states_record_ras(&s->record, ras, comm, s->config.host, s->text.written_ms);
        ft_uplink_record(s->uplink, &s->record.record);
    }
    s->stats.elsewhere += elsewhere;
    s->stats.left_out += ras->left_out;
    if (elsewhere > 0 && elsewhere == ras->comm_count)
        s->addresses[s->at].rounds_left = RARE - 1;
}

static void read_ras(struct ft_states *s)
{
    char error[FT_RAS_ERROR_BYTES];
    struct ft_ras ras;

    if (ft_ras_read(&ras, s->text.bytes, s->text.len, NODES_MAX, s->task, error)) {
        s->stats.invalid++;
        warn(s, s->addresses[s->at].endpoint, error[0] ? error : "its status is too long");
        return;
    }
    s->stats.answered++;
    report_ras(s, &ras);
    ft_ras_free(&ras);
}

static void read_dump(struct ft_states *s)
{
    struct ft_flight *flight = ft_flight_new();
    char error[FT_FLIGHT_ERROR_BYTES] = "no memory";
    int rc = flight ? 0 : -ENOMEM;
    size_t count;

    if (rc == 0) {
        ft_flight_pace(flight, NODES_MAX, s->task);
        rc = ft_flight_add(flight, s->text.rank, s->text.bytes, s->text.len, error);
    }
    if (rc) {
        s->stats.dumps_invalid++;
        warn(s, s->folder, error[0] ? error : "a dump is too long");
        ft_flight_free(flight);
        return;
    }
    s->stats.dumps++;
    count = ft_flight_groups(flight, s->groups, GROUPS_MAX, &s->stats.left_out);
    for (size_t i = 0; i < count; i++) {
        ft_states_record_flight(&s->record, &s->groups[i], s->text.rank, s->config.host,
                                s->text.written_ms);
        ft_uplink_record(s->uplink, &s->record.record);
    }
    ft_flight_free(flight);
}

static void run(void *arg)
{
    struct ft_states *s = arg;

    if (s->is_dump)
        read_dump(s);
    else
        read_ras(s);
}

static void end_text(struct ft_states *s)
{
    ft_task_free(s->task);
    s->task = NULL;
    free(s->text.bytes);
    s->text.bytes = NULL;
}

static void on_step(void *arg)
{
    struct ft_states *s = arg;

    if (ft_task_step(s->task, STEP_WORK)) {
        ft_watch_once_arm(s->step, STEP_NS);
        return;
    }
    end_text(s);
    if (!s->is_dump)
        s->at++;
    advance(s);
}

/* Its text is here. */
static void begin_text(struct ft_states *s, bool is_dump)
{
    s->is_dump = is_dump;
    s->task = ft_task_new(run, s);
    if (s->task) {
        ft_watch_once_arm(s->step, 0);
        return;
    }
    end_text(s);
    s->busy = false;
}

static void on_answer(void *arg, struct ft_dialog_result *result)
{
    struct ft_states *s = arg;

    ft_dialog_free(s->dialog);
    s->dialog = NULL;
    if (result->rc == 0) {
        s->text = (struct ft_dump){
            .bytes = result->answer, .len = result->len, .written_ms = ft_wall_now().ms};
        begin_text(s, false);
        return;
    }
    if (result->rc == -EPROTO)
        s->stats.refused++;
    else if (result->rc == -EMSGSIZE)
        s->stats.invalid++;
    else
        s->stats.unreachable++;
    /* Where no job runs nobody listens. */
    if (result->rc == -EPROTO || result->rc == -EMSGSIZE)
        warn(s, s->addresses[s->at].endpoint, result->text);
    s->at++;
    advance(s);
}

/* False: it continues by itself. */
static bool ask(struct ft_states *s)
{
    const struct ft_dialog_config dialog = {.endpoint = s->addresses[s->at].endpoint,
                                            .lines = ras_lines,
                                            .line_count = sizeof(ras_lines) / sizeof(ras_lines[0]),
                                            .answer_max = ANSWER_MAX,
                                            .timeout_ns = DIALOG_NS};

    if (s->addresses[s->at].rounds_left) {
        s->addresses[s->at].rounds_left--;
        return true;
    }
    return ft_dialog_start(s->loop, &dialog, on_answer, s, &s->dialog) != 0;
}

/* Asks the next address, reads the next dump, or ends the round. */
static void advance(struct ft_states *s)
{
    int rc;

    for (; s->at < s->config.address_count; s->at++)
        if (!ask(s))
            return;
    while (s->dumps && s->dumps_left > 0) {
        s->dumps_left--;
        rc = ft_dumps_next(s->dumps, ft_wall_now().ms, &s->text);
        if (rc == 0) {
            begin_text(s, true);
            return;
        }
        if (rc != -EFBIG && rc != -ESTALE)
            break;
        s->stats.dumps_invalid++;
    }
    s->busy = false;
}

static void on_round(void *arg)
{
    struct ft_states *s = arg;

    if (s->busy)
        return;
    s->busy = true;
    s->at = 0;
    s->dumps_left = DUMPS_ROUND;
    advance(s);
}

/* Settings may be read anew. -ENOMEM. */
static int copy_texts(struct ft_states *s, const struct ft_states_config *config)
{
    s->config = *config;
    s->config.addresses = NULL;
    s->config.folder = NULL;
    for (size_t i = 0; i < config->address_count; i++)
        if (!(s->addresses[i].endpoint = strdup(config->addresses[i])))
            return -ENOMEM;
    if (!config->folder)
        return 0;
    s->folder = strdup(config->folder);
    s->dumps = s->folder ? ft_dumps_new(s->folder) : NULL;
    return s->dumps ? 0 : -ENOMEM;
}

struct ft_states *ft_states_new(struct ft_loop *loop, struct ft_uplink *uplink,
                                const struct ft_states_config *config)
{
    struct ft_states *s = calloc(1, sizeof(*s));

    if (!s)
        return NULL;
    s->loop = loop;
    s->uplink = uplink;
    s->limit = (struct ft_log_limit){.interval_ns = WARN_NS, .burst = 5};
    s->timer =
        ft_watch_stage(ft_watch_timer(loop, config->interval_ns, on_round, s), "second sources");
    s->step = ft_watch_stage(ft_watch_once(loop, on_step, s), "second sources");
    if (copy_texts(s, config) || !s->timer || !s->step) {
        ft_states_free(s);
        return NULL;
    }
    return s;
}

void ft_states_free(struct ft_states *s)
{
    if (!s)
        return;
    ft_dialog_free(s->dialog);
    ft_watch_free(s->timer);
    ft_watch_free(s->step);
    while (s->task && ft_task_step(s->task, UINT64_MAX))
        ;
    end_text(s);
    ft_dumps_free(s->dumps);
    for (size_t i = 0; i < FT_STATES_ADDRESSES; i++)
        free(s->addresses[i].endpoint);
    free(s->folder);
    free(s);
}

struct ft_states_stats ft_states_stats(const struct ft_states *s)
{
    struct ft_states_stats stats = s->stats;

    if (s->dumps)
        stats.dumps_invalid += ft_dumps_refused(s->dumps);
    return stats;
}
