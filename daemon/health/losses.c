// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/health/losses.h"

#include <inttypes.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/account.h"
#include "lib/base/table.h"

#define NAME_BYTES         128
#define WORD_BYTES         24 /* of stages, units and reasons; longer ones are cut */
#define LEAST              10
#define SHARE              0.01
#define CALM_SHARE         (SHARE / 2)
#define CALM_INTERVALS     3
#define REPORTED_INTERVALS 3
#define INTERVALS_MISSING  3
#define INTERVAL_MS        60000 /* until two accounts say how long one is */
/* Where the table is full, who was not heard for this time is replaced; so often that is looked at.
 */
#define GONE_MS 120000
#define LOOKS   32
/* Of pollers: what is thinned out leaves this one. */
#define THINNED_STAGE "samples"

static const struct {
    const char *reason;
    const char *advice;
    const char *stage; /* the only one where it means this; NULL: everywhere */
} reasons[] = {
    /* Datagrams that the kernel dropped are missing by sequence too: the cause comes first. */
    {"kernel_buffer", "raise receive_buffer of the poller, and net.core.rmem_max of its host",
     NULL},
    {"sequence_gap", "datagrams are lost between switch and poller: look at the network's drops",
     NULL},
    {"agent_drops", "switches have no resources for so many samples: sample fewer packets", NULL},
    {"queue_full", "the daemon or the network path to it is too slow: check its load and the link",
     NULL},
    {"table_full",
     "raise the setting of the table that is full: --check of that program prints them", NULL},
    {"thinned",
     "fabrictraced cannot take all: give it more processor time, or sample fewer packets at the "
     "switches",
     NULL},
    {"malformed", "check the exporter: its datagrams are malformed", NULL},
    {"truncated", "look at the path MTU between switch and poller", NULL},
    {"unlisted",
     "add the switch to the poller's exporters, or find the host that sends sFlow in its name",
     NULL},
    {"not_sflow_v5", "let the exporter send sFlow version 5", NULL},
    {"kernel", "raise capture_buffer of the agent, or give it more processor time", NULL},
    {"late", "synchronise clocks with one server; if they are, increase 'grace'", NULL},
    {"late_after_pause", "the daemon was stopped for a while: check the load of its host", NULL},
    {"invalid", "install the same version of all programs", NULL},
    {"unauthorized",
     "the sender's certificate does not cover what it reports: the log of fabrictraced names both",
     NULL},
    {"lost_with_sender", "an agent or a poller was killed while it sent: check why it ended", NULL},
    /* Of sinks. */
    {"failed", "look at the disk that records go to: lost records are not recovered", "file"},
    {"failed", "look at the brokers that records go to: lost records are not recovered", "kafka"},
    {"refused", "the brokers that records go to are too slow or not reachable: set kafka.spool",
     "kafka"},
    {"no_topic", "create the topics, or let the brokers create them", "kafka"},
    {"forbidden", "let the daemon's user write to the topics (ACL)", "kafka"},
    {"too_large", "raise message.max.bytes in kafka.properties, and of the topics", "kafka"},
    {"other_format",
     "records of the other kafka.format were in the spool: change it when the spool is empty",
     "kafka"},
    {"spool_oldest", "the brokers were not reachable for long: raise kafka.spool_bytes", "kafka"},
    {"spool_newest", "the brokers were not reachable for long: raise kafka.spool_bytes", "kafka"},
    {"spool_disk", "the disk of kafka.spool is full: free space on it", "kafka"},
    {"spool_damaged", "look at the disk of kafka.spool", "kafka"},
    {"fenced", "give each daemon a source_id of its own: kafka.transactions", "kafka"},
    /* Of the search for links. */
    {"ports_full", "give it more memory (memory_max, discovery.ports_max)", "wiring"},
    {"exporter_full", "look at the exporter: it names more ports than a switch has", "wiring"},
    {"unlisted_full",
     "add the switches to a poller's snmp.switches, or find the host that sends samples in their "
     "name",
     "wiring"},
};

#define REASONS (sizeof(reasons) / sizeof(reasons[0]))

struct stage {
    char name[WORD_BYTES];
    uint64_t received;
    uint64_t drops[REASONS];
};

struct program_key {
    char program[NAME_BYTES];
    char source[NAME_BYTES];
};

struct program {
    struct program_key key;
    struct stage stages[FT_ACCOUNT_STAGES];
    size_t stage_count;
    int64_t time_ms, interval_ms;
    bool standing;
    uint32_t calm;                     /* intervals in a row */
    uint32_t intervals_since_reported; /* bad intervals since the one that was reported */
    int64_t since_ms;
    /* The worst of the bad interval that is reported. */
    char unit[WORD_BYTES];
    size_t reason;
    uint64_t lost, received;
    int64_t lost_in_ms;
};

struct ft_losses {
    struct ft_table *programs;
    int64_t now_ms;
    uint32_t hand; /* where a full table is looked at next */
    uint64_t came, thinned;
};

struct ft_losses *ft_losses_new(size_t programs_max)
{
    struct ft_losses *l = calloc(1, sizeof(*l));

    if (!l)
        return NULL;
    l->programs = ft_table_new(sizeof(struct program), sizeof(struct program_key), programs_max, 0);
    if (!l->programs) {
        free(l);
        return NULL;
    }
    return l;
}

void ft_losses_free(struct ft_losses *l)
{
    if (!l)
        return;
    ft_table_free(l->programs);
    free(l);
}

static size_t reason_of(const char *stage, const char *name)
{
    size_t i = 0;

    while (i < REASONS && !(name && strcmp(name, reasons[i].reason) == 0 &&
                            (!reasons[i].stage || (stage && strcmp(stage, reasons[i].stage) == 0))))
        i++;
    return i;
}

const char *ft_losses_advice(const char *stage, const char *reason)
{
    size_t i = reason_of(stage, reason);

    return i < REASONS ? reasons[i].advice : NULL;
}

static void read_stage(const Fabrictrace__Stage *in, struct stage *out)
{
    memset(out, 0, sizeof(*out));
    snprintf(out->name, sizeof(out->name), "%s", in->name ? in->name : "");
    out->received = in->received;
    for (size_t i = 0; i < in->n_drops; i++) {
        size_t reason = reason_of(in->name, in->drops[i]->reason);

        if (reason < REASONS)
            out->drops[reason] += in->drops[i]->count;
    }
}

/* The worst loss of an interval so far: of the reason that comes first, the largest share. */
struct worst {
    bool calm; /* none comes near the threshold */
    double share;
    size_t reason; /* REASONS: none is over it */
    uint64_t lost, received;
    const char *unit;
};

/* A gap may also shrink, by what came late. */
static void compare(const struct stage *before, const struct stage *now, const char *unit,
                    struct worst *worst)
{
    uint64_t received = now->received - before->received;

    if (now->received < before->received)
        return;
    for (size_t i = 0; i < REASONS; i++) {
        uint64_t lost =
            now->drops[i] > before->drops[i] ? now->drops[i] - before->drops[i] : UINT64_C(0);
        double share = received ? (double)lost / (double)received : 1;

        if (lost < LEAST || share < CALM_SHARE)
            continue;
        worst->calm = false;
        if (share >= SHARE && (i < worst->reason || (i == worst->reason && share > worst->share)))
            *worst = (struct worst){false, share, i, lost, received, unit};
    }
}

/* Counts that go back are another start, of which all is new. */
static void count_thinned(struct ft_losses *l, const struct stage *before, const struct stage *now)
{
    size_t reason = reason_of(THINNED_STAGE, "thinned");
    uint64_t thinned = now->drops[reason];

    if (now->received < before->received || thinned < before->drops[reason]) {
        l->came += now->received;
        l->thinned += thinned;
        return;
    }
    l->came += now->received - before->received;
    l->thinned += thinned - before->drops[reason];
}

static void judge(struct program *p, const struct worst *worst, int64_t before_ms)
{
    if (worst->reason < REASONS) {
        if (!p->standing)
            p->since_ms = before_ms;
        /* Sequence numbers show a loss an interval after its cause does: the cause stays. */
        p->intervals_since_reported++;
        if (p->standing && worst->reason > p->reason &&
            p->intervals_since_reported < REPORTED_INTERVALS) {
            p->calm = 0;
            return;
        }
        p->standing = true;
        p->calm = p->intervals_since_reported = 0;
        p->reason = worst->reason;
        p->lost = worst->lost;
        p->received = worst->received;
        p->lost_in_ms = p->time_ms - before_ms;
        snprintf(p->unit, sizeof(p->unit), "%s", worst->unit ? worst->unit : "");
        return;
    }
    p->calm = worst->calm ? p->calm + 1 : 0;
    p->standing &= p->calm < CALM_INTERVALS;
}

static bool is_gone(void *arg, void *entry)
{
    const struct ft_losses *l = arg;
    struct program *p = entry;

    /* This host's clock was set back. */
    if (p->time_ms > l->now_ms)
        p->time_ms = l->now_ms;
    return l->now_ms - p->time_ms >= GONE_MS;
}

static struct program *program_of(struct ft_losses *l, const struct program_key *key,
                                  int64_t now_ms, bool *fresh)
{
    struct program *p = ft_table_insert(l->programs, key, fresh);

    l->now_ms = now_ms;
    if (!p && ft_table_make_room(l->programs, &l->hand, LOOKS, is_gone, l))
        p = ft_table_insert(l->programs, key, fresh);
    return p;
}

void ft_losses_take(struct ft_losses *l, const Fabrictrace__Loss *loss, int64_t now_ms)
{
    struct stage now[FT_ACCOUNT_STAGES];
    struct worst worst = {.calm = true, .reason = REASONS};
    struct program_key key = {{0}, {0}};
    struct program *p;
    int64_t before_ms;
    size_t count = 0;
    bool fresh;

    if (!loss->program || !loss->source)
        return;
    snprintf(key.program, sizeof(key.program), "%s", loss->program);
    snprintf(key.source, sizeof(key.source), "%s", loss->source);
    p = program_of(l, &key, now_ms, &fresh);
    if (!p)
        return;
    for (size_t i = 0; i < loss->n_stages && count < FT_ACCOUNT_STAGES; i++) {
        struct stage *s = &now[count++];

        read_stage(loss->stages[i], s);
        for (size_t k = 0; k < p->stage_count; k++)
            if (strcmp(p->stages[k].name, s->name) == 0)
                compare(&p->stages[k], s, loss->stages[i]->unit, &worst);
        for (size_t k = 0; k < p->stage_count && strcmp(s->name, THINNED_STAGE) == 0; k++)
            if (strcmp(p->stages[k].name, s->name) == 0)
                count_thinned(l, &p->stages[k], s);
    }
    memcpy(p->stages, now, count * sizeof(*now));
    p->stage_count = count;
    before_ms = p->time_ms;
    p->time_ms = now_ms;
    if (p->since_ms > now_ms)
        p->since_ms = now_ms;
    /* After this host's clock was set back nobody knows how long it was. */
    if (fresh || now_ms < before_ms)
        return;
    p->interval_ms = now_ms - before_ms;
    judge(p, &worst, before_ms);
}

void ft_losses_thinned(const struct ft_losses *l, uint64_t *came, uint64_t *kept)
{
    *came = l->came;
    *kept = l->came - l->thinned;
}

static void raise_program(const struct program *p, struct ft_events *events, uint32_t window,
                          const char *fabric)
{
    Fabrictrace__Event event;
    Fabrictrace__Evidence evidence = FABRICTRACE__EVIDENCE__INIT;
    char subject[2 * NAME_BYTES + 2], message[2 * NAME_BYTES + 300];

    snprintf(subject, sizeof(subject), "%s/%s", p->key.program, p->key.source);
    snprintf(message, sizeof(message),
             "%s '%s' lost %" PRIu64 " of %" PRIu64 " %s in %.0f s (%s): %s", p->key.program,
             p->key.source, p->lost, p->received, p->unit, (double)p->lost_in_ms / 1000,
             reasons[p->reason].reason, reasons[p->reason].advice);
    evidence.has_count = true;
    evidence.count = p->lost;
    evidence.program = (char *)(uintptr_t)p->key.program;
    evidence.source = (char *)(uintptr_t)p->key.source;
    evidence.reason = (char *)(uintptr_t)reasons[p->reason].reason;
    ft_emit_event(&event, FABRICTRACE__KIND__KIND_LOSS, FABRICTRACE__SEVERITY__SEVERITY_WARNING,
                  fabric, p->since_ms, p->time_ms);
    event.subject = subject;
    event.message = message;
    event.evidence = &evidence;
    ft_events_raise(events, window, &event);
}

void ft_losses_raise(const struct ft_losses *l, struct ft_events *events, uint32_t window,
                     int64_t now_ms, const char *fabric)
{
    const struct program *p;
    uint32_t index = 0;

    while ((p = ft_table_next(l->programs, &index))) {
        int64_t interval_ms = p->interval_ms > 0 ? p->interval_ms : INTERVAL_MS;

        if (p->standing && llabs(now_ms - p->time_ms) <= INTERVALS_MISSING * interval_ms)
            raise_program(p, events, window, fabric);
    }
}
