// SPDX-License-Identifier: Apache-2.0
/*
 * What an SNMP agent answers: steps of polls, a byte each, with what they need behind it. Tables
 * are walked as the poller does, from the answers; what is known of the switch then is within its
 * caps, in order, and text.
 */
#include "config.h"

#include "switchpoll/snmp/device.h"

#include <stdbool.h>
#include <string.h>

#include "lib/base/reader.h"
#include "switchpoll/snmp/walk.h"
#include "tests/fuzz/fuzz.h"

#define PORTS_MAX  24
#define ROOM_MAX   20
#define ROWS_MAX   64
#define ANSWER_MAX 48 /* varbinds */
#define INDEX_MAX  24
#define OCTETS_MAX 300
#define NS         INT64_C(1000000000)

enum step { ANSWER, COMPLETE, CUT, TOO_BIG, END, SYSTEM, LLDP, LLDP_AGAIN, STEPS };

struct poll {
    struct ft_reader r;
    struct ft_device *d;
    struct ft_walk walk;
    int64_t now_s;
};

static struct answer {
    uint32_t oid[FT_SNMP_OID_MAX + INDEX_MAX];
} answers[ANSWER_MAX];
static struct ft_snmp_varbind varbinds[ANSWER_MAX];

/* Small numbers are a byte, others come behind one of 255. */
static uint32_t read_number(struct ft_reader *r)
{
    uint8_t byte = ft_read_u8(r);

    return byte == 255 ? ft_read_be32(r) : byte;
}

static void read_value(struct ft_reader *r, struct ft_snmp_varbind *v)
{
    v->type = (enum ft_snmp_type)(ft_read_u8(r) % (FT_SNMP_END + 1));
    v->bytes = NULL;
    v->len = 0;
    v->number = 0;
    if (v->type == FT_SNMP_STRING || v->type == FT_SNMP_ADDRESS) {
        v->len = read_number(r) % OCTETS_MAX;
        v->bytes = ft_read_bytes(r, v->len);
    } else {
        v->number = read_number(r);
        if (v->type == FT_SNMP_COUNTER64 || v->type == FT_SNMP_INTEGER)
            v->number |= (uint64_t)read_number(r) << 32;
    }
}

/* An object of the column that was asked for, or, where the first byte is odd, of the next. */
static void read_varbind(struct poll *p, size_t k)
{
    struct ft_snmp_varbind *v = &varbinds[k];
    uint8_t shape = ft_read_u8(&p->r);
    size_t column = p->walk.asked[k % p->walk.asked_count] + shape % 2;
    const struct ft_snmp_oid *oid =
        ft_mib_column(p->walk.table, column % ft_mib_columns(p->walk.table));
    size_t index = shape / 2 % INDEX_MAX;

    memcpy(answers[k].oid, oid->ids, oid->len * sizeof(oid->ids[0]));
    for (size_t i = 0; i < index; i++)
        answers[k].oid[oid->len + i] = read_number(&p->r);
    v->oid = answers[k].oid;
    v->oid_len = oid->len + index;
    read_value(&p->r, v);
}

static void on_cell(void *arg, const struct ft_walk_cell *cell)
{
    struct poll *p = arg;

    ft_device_cell(p->d, cell, (struct ft_wall){p->now_s * 1000});
}

static void take_answer(struct poll *p)
{
    struct ft_snmp_oid names[FT_WALK_COLUMNS_MAX];
    unsigned repetitions;
    size_t count = ft_read_u8(&p->r) % (ANSWER_MAX + 1), asked;

    asked = ft_walk_next(&p->walk, names, &repetitions);
    ft_fuzz_assert(asked <= FT_WALK_COLUMNS_MAX, "names have room");
    if (!asked)
        return;
    for (size_t k = 0; k < count; k++)
        read_varbind(p, k);
    /* As net-snmp: an answer that is cut is none. */
    if (ft_reader_ok(&p->r))
        ft_walk_take(&p->walk, varbinds, count, on_cell, p);
}

static void next_table(struct poll *p)
{
    enum ft_mib_table table = (enum ft_mib_table)(ft_read_u8(&p->r) % FT_MIB_TABLES);

    ft_walk_start(&p->walk, table, ANSWER_MAX, ROWS_MAX);
}

static size_t read_scalars(struct poll *p, size_t count)
{
    for (size_t k = 0; k < count; k++)
        read_value(&p->r, &varbinds[k]);
    return ft_reader_ok(&p->r) ? count : 0;
}

/* Not as the code does it: code points, and what is written for them. */
static bool is_text(const char *text)
{
    const uint8_t *p = (const uint8_t *)text;

    while (*p) {
        size_t n = *p < 0x80 ? 1 : *p >> 5 == 6 ? 2 : *p >> 4 == 14 ? 3 : *p >> 3 == 30 ? 4 : 0;
        uint32_t code = n == 1 ? *p : *p & (0x7fu >> n);

        if (n == 0)
            return false;
        for (size_t i = 1; i < n; i++) {
            if (p[i] >> 6 != 2)
                return false;
            code = code << 6 | (p[i] & 0x3f);
        }
        if (code < 0x20 || code == 0x7f || code > 0x10ffff || (code >= 0xd800 && code <= 0xdfff) ||
            (n == 2 && code < 0x80) || (n == 3 && code < 0x800) || (n == 4 && code < 0x10000))
            return false;
        p += n;
    }
    return true;
}

static void check_text(const char *text)
{
    ft_fuzz_assert(!text || (*text && is_text(text)), "a text is one, and not empty");
}

static void check_identity(const struct ft_switch_identity *id)
{
    check_text(id->text);
    if (!id->text)
        return;
    if (id->kind == FABRICTRACE__ID_KIND__ID_KIND_MAC)
        ft_fuzz_assert(strlen(id->text) == 17, "a MAC address is one");
    if (id->kind == FABRICTRACE__ID_KIND__ID_KIND_ADDRESS) {
        struct ft_ip ip;

        ft_fuzz_assert(ft_ip_parse(id->text, &ip) == 0, "an address is one");
    }
}

static void check_ports(const struct ft_device *d)
{
    ft_fuzz_assert(d->ports.count <= PORTS_MAX && d->ports.count <= ROOM_MAX, "ports have a cap");
    ft_fuzz_assert(d->limits.room->used == d->ports.count, "the room is counted");
    for (size_t i = 0; i < d->ports.count; i++) {
        const struct ft_device_port *port = &d->ports.items[i];

        ft_fuzz_assert(i == 0 || port[-1].ifindex < port->ifindex, "ports are in order");
        check_text(port->name);
        check_text(port->alias);
        check_text(port->descr);
        check_text(port->mac);
        check_identity(&port->lldp);
        ft_fuzz_assert(port->lag_ifindex != port->ifindex, "no port is in itself");
    }
}

static bool has_port(const struct ft_device *d, uint32_t ifindex)
{
    for (size_t i = 0; i < d->ports.count; i++)
        if (d->ports.items[i].ifindex == ifindex)
            return true;
    return false;
}

static void check_neighbors(const struct ft_device *d)
{
    uint64_t unresolved = 0;

    for (size_t i = 0; i < d->neighbors.count; i++) {
        const struct ft_device_neighbor *n = &d->neighbors.items[i];

        check_identity(&n->chassis);
        check_identity(&n->port);
        check_text(n->port_descr);
        check_text(n->name);
        ft_fuzz_assert(n->ifindex == 0 || has_port(d, n->ifindex), "a neighbour is at a port");
        ft_fuzz_assert(n->has_forwards || !n->forwards, "what it does is what it said");
        unresolved += n->ifindex == 0;
    }
    ft_fuzz_assert(d->stats.unresolved == unresolved, "who is at no port is counted");
    for (size_t i = 0; i < d->locals.count; i++) {
        check_identity(&d->locals.items[i].id);
        check_text(d->locals.items[i].descr);
    }
}

static void end_poll(struct poll *p)
{
    char problem[FT_DEVICE_PROBLEM_BYTES];

    ft_device_end(p->d, (struct ft_mono){p->now_s * NS});
    check_ports(p->d);
    check_neighbors(p->d);
    check_text(p->d->name);
    check_identity(&p->d->chassis);
    ft_fuzz_assert(p->d->address_count <= FT_DEVICE_ADDRESSES_MAX, "addresses have a cap");
    memset(problem, 'x', sizeof(problem));
    ft_device_problem(p->d, problem);
    ft_fuzz_assert(memchr(problem, 0, sizeof(problem)) && is_text(problem), "a problem is a text");
}

static void take_step(struct poll *p, enum step step)
{
    switch (step) {
    case ANSWER:
        take_answer(p);
        break;
    case COMPLETE:
    case CUT:
        ft_device_close(p->d, &p->walk, step == COMPLETE);
        next_table(p);
        break;
    case TOO_BIG:
        ft_walk_shrink(&p->walk);
        break;
    case END:
    case SYSTEM:
        end_poll(p);
        p->now_s += 1 + read_number(&p->r);
        ft_device_begin(p->d, varbinds, read_scalars(p, step == END ? 0 : FT_MIB_SYSTEM_SCALARS),
                        (struct ft_mono){p->now_s * NS});
        next_table(p);
        break;
    case LLDP:
        ft_device_lldp(p->d, varbinds, read_scalars(p, FT_MIB_LLDP_SCALARS));
        break;
    case LLDP_AGAIN:
        if (ft_device_lost_neighbors(p->d))
            ft_device_lldp_again(p->d, varbinds, read_scalars(p, FT_MIB_LLDP_SCALARS));
        break;
    case STEPS:
        break;
    }
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    struct ft_device_room room = {.max = ROOM_MAX};
    const struct ft_device_limits limits = {.ports_max = PORTS_MAX,
                                            .room = &room,
                                            .frozen_after_ns = 60 * NS,
                                            .names_age_ns = 300 * NS};
    struct poll p = {.now_s = 1000};
    struct ft_ip agent;

    ft_ip_parse("192.0.2.1", &agent);
    p.d = ft_device_new(&agent, &limits);
    ft_fuzz_assert(p.d != NULL, "there is memory");
    ft_reader_init(&p.r, bytes, len);
    ft_device_begin(p.d, varbinds, 0, (struct ft_mono){p.now_s * NS});
    next_table(&p);
    while (ft_reader_ok(&p.r) && ft_reader_left(&p.r))
        take_step(&p, (enum step)(ft_read_u8(&p.r) % STEPS));
    end_poll(&p);
    ft_device_free(p.d);
    ft_fuzz_assert(room.used == 0, "the room is given back");
    return 0;
}
