// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/poll.h"

#include <stdio.h>
#include <string.h>

#define TIMEOUTS_MAX 2
#define TRIES_MAX    2
#define MISSES_MAX   2

static const enum ft_mib_table table_of[FT_POLL_END] = {
    [FT_POLL_COUNTERS] = FT_MIB_COUNTERS,
    [FT_POLL_NAMES] = FT_MIB_NAMES,
    [FT_POLL_ADDRESSES] = FT_MIB_ADDRESSES,
    [FT_POLL_ADDRESSES_OLD] = FT_MIB_ADDRESSES_OLD,
    [FT_POLL_LAG] = FT_MIB_LAG,
    [FT_POLL_LLDP_REMOTE] = FT_MIB_LLDP_REMOTE,
    [FT_POLL_LLDP_REMOTE_ADDRESSES] = FT_MIB_LLDP_REMOTE_ADDRESSES,
    [FT_POLL_LLDP_LOCAL] = FT_MIB_LLDP_LOCAL,
    [FT_POLL_PAUSE] = FT_MIB_PAUSE,
    [FT_POLL_PFC] = FT_MIB_PFC,
};

static void on_reply(void *arg, const struct ft_snmp_reply *reply);

static bool is_lldp(enum ft_poll_step step)
{
    return step == FT_POLL_LLDP || step == FT_POLL_LLDP_AGAIN;
}

static bool is_walk(enum ft_poll_step step)
{
    return step != FT_POLL_SYSTEM && !is_lldp(step);
}

static const char *step_name(enum ft_poll_step step)
{
    if (step == FT_POLL_SYSTEM)
        return "SNMPv2-MIB system";
    if (is_lldp(step))
        return "LLDP-MIB lldpLocalSystemData";
    return ft_mib_table_name(table_of[step]);
}

/* NULL: every switch has it, or the poll needs to know that it has not. */
static struct ft_poll_option *option_of(struct ft_poll *p, enum ft_poll_step step)
{
    if (step == FT_POLL_PAUSE)
        return &p->pause;
    return step == FT_POLL_PFC ? &p->pfc : NULL;
}

static bool option_enabled(const struct ft_poll *p, const struct ft_poll_option *o)
{
    const struct ft_device *d = p->device;

    return d->restarted || o->misses < MISSES_MAX ||
           ft_mono_since_ns(d->begun, o->asked) >= d->limits.names_age_ns;
}

static bool is_requested(const struct ft_poll *p, enum ft_poll_step step)
{
    switch (step) {
    case FT_POLL_PAUSE:
        return option_enabled(p, &p->pause);
    case FT_POLL_PFC:
        return option_enabled(p, &p->pfc);
    case FT_POLL_NAMES:
        return p->device->names_due;
    case FT_POLL_ADDRESSES:
        return p->names;
    case FT_POLL_ADDRESSES_OLD:
        return p->names && p->device->address_new_count == 0;
    case FT_POLL_LAG:
        return p->names || p->lag;
    case FT_POLL_LLDP_AGAIN:
        return ft_device_lost_neighbors(p->device);
    case FT_POLL_LLDP_REMOTE_ADDRESSES:
    case FT_POLL_LLDP_LOCAL:
        return ft_device_has_new_neighbors(p->device);
    default:
        return true;
    }
}

static void end(struct ft_poll *p)
{
    p->running = false;
    p->step = FT_POLL_END;
    p->on_end(p->arg);
}

/* Keeps the first thing that went wrong. */
static void note(struct ft_poll *p, const char *text)
{
    if (!p->text[0])
        snprintf(p->text, sizeof(p->text), "%s: %s", step_name(p->step), text);
}

/* An option's table was read: misses 0; it is not there: as many as there may be; it failed: one
 * more. */
static void end_option(struct ft_poll *p, unsigned misses)
{
    struct ft_poll_option *o = option_of(p, p->step);

    if (!o)
        return;
    o->misses = misses;
    o->asked = p->device->begun;
}

/* Asks what the step needs. False when the step is over. */
static bool ask(struct ft_poll *p)
{
    struct ft_snmp_oid names[FT_WALK_COLUMNS_MAX];
    unsigned repetitions = 0;
    size_t count;
    int rc;

    if (p->step == FT_POLL_SYSTEM) {
        rc = ft_snmp_ask(p->session, ft_mib_system(), FT_MIB_SYSTEM_SCALARS, 0, on_reply, p);
    } else if (is_lldp(p->step)) {
        rc = ft_snmp_ask(p->session, ft_mib_lldp(), FT_MIB_LLDP_SCALARS, 0, on_reply, p);
    } else {
        count = ft_walk_next(&p->walk, names, &repetitions);
        if (count == 0) {
            end_option(p, p->walk.cells > 0 ? 0 : MISSES_MAX);
            ft_device_close(p->device, &p->walk, true);
            return false;
        }
        rc = ft_snmp_ask(p->session, names, count, repetitions, on_reply, p);
    }
    if (rc == 0)
        return true;
    note(p, strerror(-rc));
    p->partly = true;
    return false;
}

/* Goes to the next step that is requested and asks; ends the poll after the last. */
static void go_on(struct ft_poll *p)
{
    while (p->step < FT_POLL_END) {
        p->step++;
        if (p->step == FT_POLL_END)
            break;
        if (p->step == FT_POLL_NAMES)
            p->names = p->device->names_due;
        if (!is_requested(p, p->step))
            continue;
        if (is_walk(p->step))
            ft_walk_start(&p->walk, table_of[p->step], p->varbinds_max, p->rows_max);
        if (ask(p))
            return;
    }
    end(p);
}

static void on_cell(void *arg, const struct ft_walk_cell *cell)
{
    struct ft_poll *p = arg;

    if (cell->table == FT_MIB_LAG)
        p->lag = true;
    ft_device_cell(p->device, cell, ft_wall_now());
}

static void take(struct ft_poll *p, const struct ft_snmp_reply *reply)
{
    if (p->step == FT_POLL_SYSTEM) {
        p->reachable = true;
        ft_device_begin(p->device, reply->varbinds, reply->count, ft_mono_now());
    } else if (p->step == FT_POLL_LLDP) {
        ft_device_lldp(p->device, reply->varbinds, reply->count);
    } else if (p->step == FT_POLL_LLDP_AGAIN) {
        ft_device_lldp_again(p->device, reply->varbinds, reply->count);
    } else {
        ft_walk_take(&p->walk, reply->varbinds, reply->count, on_cell, p);
        if (ask(p))
            return;
    }
    go_on(p);
}

/* The first request decides whether the switch is there. */
static void fail_first(struct ft_poll *p, const struct ft_snmp_reply *reply)
{
    if (reply->fault == FT_SNMP_ENGINE && ++p->tries < TRIES_MAX && ask(p))
        return;
    p->reachable = false;
    snprintf(p->text, sizeof(p->text), "%s", reply->text);
    end(p);
}

static void on_reply(void *arg, const struct ft_snmp_reply *reply)
{
    struct ft_poll *p = arg;
    struct ft_poll_option *option;

    if (reply->fault == FT_SNMP_OK) {
        take(p, reply);
        return;
    }
    if (p->step == FT_POLL_SYSTEM) {
        fail_first(p, reply);
        return;
    }
    if (is_walk(p->step)) {
        if (reply->fault == FT_SNMP_TOO_BIG && ft_walk_shrink(&p->walk) && ask(p))
            return;
        ft_device_close(p->device, &p->walk, false);
    } else if (p->step == FT_POLL_LLDP_AGAIN) {
        ft_device_lldp_again(p->device, NULL, 0);
    }
    option = option_of(p, p->step);
    if (option)
        end_option(p, option->misses + 1);
    note(p, reply->text);
    p->partly = true;
    p->timeouts += reply->fault == FT_SNMP_TIMEOUT;
    if (p->timeouts >= TIMEOUTS_MAX)
        end(p);
    else
        go_on(p);
}

int ft_poll_start(struct ft_poll *p)
{
    int rc;

    p->step = FT_POLL_SYSTEM;
    p->names = false;
    p->partly = false;
    p->timeouts = 0;
    p->tries = 0;
    p->text[0] = 0;
    rc = ft_snmp_ask(p->session, ft_mib_system(), FT_MIB_SYSTEM_SCALARS, 0, on_reply, p);
    p->running = rc == 0;
    return rc;
}
