// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "daemon/pairing/state.h"

/* A member that was not announced for this time is not known to be one. */
#define MEMBER_MS 120000

static struct ft_pairing_process *process_for(struct ft_pairing *p,
                                              const struct ft_pairing_process_key *key)
{
    bool fresh;
    struct ft_pairing_process *process = ft_table_insert(p->processes, key, &fresh);

    if (process && fresh) {
        process->first = process->surplus = FT_NONE;
        ((struct ft_pairing_host *)ft_table_at(p->hosts, key->host))->users++;
    }
    return process;
}

static void prepend(struct ft_pairing *p, uint32_t *first, struct ft_pairing_qp *e)
{
    e->previous = FT_NONE;
    e->next = *first;
    if (e->next != FT_NONE)
        ft_pairing_at(p, e->next)->previous = ft_table_index(p->ends, e);
    *first = ft_table_index(p->ends, e);
}

static void take_out(struct ft_pairing *p, uint32_t *first, struct ft_pairing_qp *e)
{
    if (e->previous != FT_NONE)
        ft_pairing_at(p, e->previous)->next = e->next;
    else
        *first = e->next;
    if (e->next != FT_NONE)
        ft_pairing_at(p, e->next)->previous = e->previous;
    e->next = e->previous = FT_NONE;
}

void ft_pairing_process_add(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    const struct ft_pairing_process_key key = {ft_pairing_host_of(p, e), e->pid};
    struct ft_pairing_process *process;

    e->process = e->next = e->previous = FT_NONE;
    if (e->pid == 0)
        return;
    process = process_for(p, &key);
    if (!process) {
        p->uncounted++;
        return;
    }
    e->process = ft_table_index(p->processes, process);
    e->surplus = process->count == FT_PAIRING_PROCESS_ENDS;
    process->count += !e->surplus;
    prepend(p, e->surplus ? &process->surplus : &process->first, e);
}

static void forget_process(struct ft_pairing *p, struct ft_pairing_process *process)
{
    if (process->first != FT_NONE || process->surplus != FT_NONE || process->members > 0)
        return;
    ((struct ft_pairing_host *)ft_table_at(p->hosts, process->key.host))->users--;
    ft_table_remove(p->processes, process);
}

/* One that counts is gone: another one does. */
static void replace(struct ft_pairing *p, struct ft_pairing_process *process)
{
    struct ft_pairing_qp *e = ft_pairing_at(p, process->surplus);

    take_out(p, &process->surplus, e);
    e->surplus = false;
    prepend(p, &process->first, e);
    process->count++;
    for (uint32_t i = 0; e->counted && !e->reported && i < process->comm_count; i++)
        ft_pairing_group_enter(p, process->comms[i] + 1, e);
}

void ft_pairing_process_remove(struct ft_pairing *p, struct ft_pairing_qp *e)
{
    struct ft_pairing_process *process =
        e->process == FT_NONE ? NULL : ft_table_at(p->processes, e->process);

    if (!process)
        return;
    take_out(p, e->surplus ? &process->surplus : &process->first, e);
    e->process = FT_NONE;
    process->count -= !e->surplus;
    if (!e->surplus && process->surplus != FT_NONE)
        replace(p, process);
    forget_process(p, process);
}

/* Each end of a process that is in a communicator more. Jobs make communicators as they go: what
 * was paired stays so, being older than this one, unless somebody in it could be the peer as well.
 */
static void enter_all(struct ft_pairing *p, const struct ft_pairing_process *process,
                      uint32_t group)
{
    struct ft_pairing_qp *e;

    for (uint32_t i = process->first; i != FT_NONE; i = e->next) {
        e = ft_pairing_at(p, i);
        if (e->counted && !e->reported)
            ft_pairing_group_enter(p, group, e);
    }
}

/* Each end of a process that is in a communicator less. A job that ends closes its communicators a
 * moment before its queue pairs are gone: pairs stand until then, since no queue pair changes its
 * peer. Ends that have none will not get one by what is left. */
static void leave_all(struct ft_pairing *p, const struct ft_pairing_process *process,
                      uint32_t group)
{
    struct ft_pairing_qp *e;

    for (uint32_t i = process->first; i != FT_NONE; i = e->next) {
        e = ft_pairing_at(p, i);
        if (e->by > FT_PAIRED_BY_BOTH_HOSTS)
            ft_pairing_group_release(p, group, e);
    }
    for (uint32_t i = process->first; i != FT_NONE; i = e->next) {
        e = ft_pairing_at(p, i);
        if (e->counted && !e->reported)
            ft_pairing_group_leave(p, group, e);
    }
}

static void process_joins(struct ft_pairing *p, struct ft_pairing_process *process, uint32_t comm)
{
    process->members++;
    for (uint32_t i = 0; i < process->comm_count; i++) {
        if (process->comms[i] == comm) {
            process->ranks[i]++;
            return;
        }
    }
    if (process->comm_count == FT_PAIRING_COMMS) {
        process->more_comms = true;
        return;
    }
    process->comms[process->comm_count] = comm;
    process->ranks[process->comm_count++] = 1;
    enter_all(p, process, comm + 1);
}

/* Whether it is in communicators that found no room. */
static bool has_more(const struct ft_pairing_process *process)
{
    uint32_t known = 0;

    for (uint32_t i = 0; i < process->comm_count; i++)
        known += process->ranks[i];
    return process->members > known;
}

static void process_leaves(struct ft_pairing *p, struct ft_pairing_process *process, uint32_t comm)
{
    process->members--;
    for (uint32_t i = 0; i < process->comm_count; i++) {
        if (process->comms[i] != comm)
            continue;
        if (--process->ranks[i] > 0)
            break;
        leave_all(p, process, comm + 1);
        process->comm_count--;
        process->comms[i] = process->comms[process->comm_count];
        process->ranks[i] = process->ranks[process->comm_count];
        break;
    }
    process->more_comms = has_more(process);
    forget_process(p, process);
}

static void forget_comm(struct ft_pairing *p, struct ft_pairing_comm *comm)
{
    if (comm->open == 0 && comm->paired == 0)
        ft_table_remove(p->comms, comm);
}

void ft_pairing_members_rest(struct ft_pairing *p, struct ft_pairing_qp *e, uint32_t comm_index)
{
    struct ft_pairing_comm *before =
        e->comm_index == FT_NONE ? NULL : ft_table_at(p->comms, e->comm_index);

    if (e->comm_index == comm_index)
        return;
    e->comm_index = comm_index;
    if (comm_index != FT_NONE)
        ((struct ft_pairing_comm *)ft_table_at(p->comms, comm_index))->paired++;
    if (!before)
        return;
    before->paired--;
    forget_comm(p, before);
}

static void member_leaves(struct ft_pairing *p, struct ft_pairing_member *m)
{
    struct ft_pairing_comm *comm = ft_table_at(p->comms, m->key.comm);

    process_leaves(p, ft_table_at(p->processes, m->process), m->key.comm);
    ft_table_remove(p->members, m);
    comm->open--;
    forget_comm(p, comm);
}

static void member_joins(struct ft_pairing *p, const Fabrictrace__Communicator *c, uint32_t host)
{
    const struct ft_pairing_process_key process_key = {host, c->pid};
    struct ft_pairing_process *process;
    char id[FT_PAIRING_COMM] = {0};
    struct ft_pairing_comm *comm;
    struct ft_pairing_member *m;
    struct ft_pairing_member_key key;
    bool fresh;

    snprintf(id, sizeof(id), "%s", c->comm_id);
    comm = ft_table_insert(p->comms, id, &fresh);
    if (!comm)
        return;
    comm->ranks = c->ranks;
    key = (struct ft_pairing_member_key){ft_table_index(p->comms, comm), c->rank};
    process = process_for(p, &process_key);
    m = process ? ft_table_find(p->members, &key) : NULL;
    if (m && m->process != ft_table_index(p->processes, process)) {
        /* The rank is another process's by now; the communicator stays. */
        comm->open++;
        member_leaves(p, m);
        comm->open--;
        m = NULL;
    }
    if (process && !m) {
        m = ft_table_insert(p->members, &key, &fresh);
        if (m) {
            m->process = ft_table_index(p->processes, process);
            comm->open++;
            process_joins(p, process, key.comm);
        }
    }
    if (m)
        m->heard_ms = p->now_ms;
    if (process)
        forget_process(p, process);
    forget_comm(p, comm);
}

void ft_pairing_members_take(struct ft_pairing *p, const Fabrictrace__Communicator *c)
{
    char host[FT_PAIRING_NAME] = {0}, id[FT_PAIRING_COMM] = {0};
    struct ft_pairing_process *process;
    struct ft_pairing_member *m = NULL;
    struct ft_pairing_host *h;
    struct ft_pairing_comm *comm;
    bool fresh;

    if (!c->comm_id || strlen(c->comm_id) >= FT_PAIRING_COMM || !c->has_rank || !c->host ||
        strlen(c->host) >= FT_PAIRING_NAME || !c->has_pid || c->pid == 0)
        return;
    snprintf(host, sizeof(host), "%s", c->host);
    snprintf(id, sizeof(id), "%s", c->comm_id);
    h = c->closed ? ft_table_find(p->hosts, host) : ft_table_insert(p->hosts, host, &fresh);
    if (!h)
        return;
    if (!c->closed) {
        h->heard_ms = p->now_ms;
        member_joins(p, c, ft_table_index(p->hosts, h));
        return;
    }
    comm = ft_table_find(p->comms, id);
    if (comm) {
        const struct ft_pairing_member_key key = {ft_table_index(p->comms, comm), c->rank};

        m = ft_table_find(p->members, &key);
    }
    process = m ? ft_table_at(p->processes, m->process) : NULL;
    if (process && process->key.host == ft_table_index(p->hosts, h) && process->key.pid == c->pid)
        member_leaves(p, m);
}

bool ft_pairing_member_age(struct ft_pairing *p, struct ft_pairing_member *m)
{
    if (p->now_ms - m->heard_ms <= MEMBER_MS)
        return false;
    member_leaves(p, m);
    return true;
}
