// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/discovery/attach.h"

#include <stdlib.h>

#include "daemon/join/names.h"
#include "lib/base/table.h"

#define BELIEVE_SEEN 3
#define BELIEVE_MS   1000
/* On one switch an address moves at once; between two it may be dual ToR, so the older attachment
 * is given up later. */
#define MOVE_HERE_MS      2000
#define MOVE_ELSEWHERE_MS 60000
#define DOUBT_MS          30000
#define NAMES_MAX         65536
/* What was not seen for this time is replaced to new attachments when there is no room. */
#define KEEP_MS      3600000
#define KEEP_NAME_MS 600000
/* So many are looked at for each that is new. */
#define LOOKS 32

/* Which host says that it has an address; often reported before the first sample of it. */
struct reported {
    struct ft_ip address;
    const char *host; /* held */
    int64_t reported_ms;
};

struct ft_attach {
    struct ft_table *table;
    struct ft_table *reported;
    struct ft_names *names;
    uint32_t hand, reported_hand;
    const struct ft_topology *file;
    bool news, withheld;
};

struct ft_attach *ft_attach_new(size_t cap)
{
    struct ft_attach *a = calloc(1, sizeof(*a));

    if (!a)
        return NULL;
    a->table = ft_table_new(sizeof(struct ft_attached), sizeof(struct ft_ip), cap, 0);
    a->reported = ft_table_new(sizeof(struct reported), sizeof(struct ft_ip), cap, 0);
    a->names = ft_names_new(NAMES_MAX);
    if (!a->table || !a->reported || !a->names) {
        ft_attach_free(a);
        return NULL;
    }
    return a;
}

void ft_attach_free(struct ft_attach *a)
{
    if (!a)
        return;
    ft_table_free(a->table);
    ft_table_free(a->reported);
    ft_names_free(a->names);
    free(a);
}

/* Only addresses that name one host: no unspecified, loopback, link-local or multicast ones. */
static bool is_host_address(const struct ft_ip *ip)
{
    static const struct ft_ip none;
    const uint8_t *v4 = ip->b + 12;

    if (ft_ip_is4(ip))
        return v4[0] != 0 && v4[0] != 127 && v4[0] < 224 && !(v4[0] == 169 && v4[1] == 254);
    return ip->b[0] != 0xff && !(ip->b[0] == 0xfe && (ip->b[1] & 0xc0) == 0x80) &&
           memcmp(ip->b, none.b, 15) != 0;
}

static void drop_attachment(struct ft_attach *a, struct ft_attached *at, uint32_t i)
{
    a->news |= at->attachments[i].believed;
    at->attachment_count--;
    memmove(&at->attachments[i], &at->attachments[i + 1],
            (at->attachment_count - i) * sizeof(at->attachments[0]));
}

/* Gives up attachments where the address was not seen any more after it was seen at `here`. */
static void give_up_old(struct ft_attach *a, struct ft_attached *at,
                        const struct ft_attachment *here)
{
    struct ft_attachment now = *here;

    for (uint32_t i = at->attachment_count; i-- > 0;) {
        const struct ft_attachment *p = &at->attachments[i];
        bool same_switch = ft_ip_equal(&p->agent, &now.agent);

        if (same_switch && p->ifindex == now.ifindex)
            continue;
        if (now.last_ms - p->last_ms >= (same_switch ? MOVE_HERE_MS : MOVE_ELSEWHERE_MS))
            drop_attachment(a, at, i);
    }
}

static struct ft_attachment *attachment_of(struct ft_attached *at, const struct ft_ip *agent,
                                           uint32_t ifindex, int64_t ms)
{
    struct ft_attachment *p;

    for (uint32_t i = 0; i < at->attachment_count; i++) {
        p = &at->attachments[i];
        if (p->ifindex == ifindex && ft_ip_equal(&p->agent, agent))
            return p;
    }
    if (at->attachment_count == FT_ATTACHMENTS_MAX)
        return NULL;
    p = &at->attachments[at->attachment_count++];
    *p = (struct ft_attachment){.agent = *agent, .ifindex = ifindex, .first_ms = ms, .last_ms = ms};
    return p;
}

bool ft_attachment_is_steady(const struct ft_attachment *p)
{
    return p->seen >= BELIEVE_SEEN && p->last_ms - p->first_ms >= BELIEVE_MS;
}

/* Another port of the same switch is as steady: no dual ToR, and which one it is shows when the
 * other falls silent. */
static bool has_rival(const struct ft_attached *at, const struct ft_attachment *p)
{
    for (uint32_t i = 0; i < at->attachment_count; i++) {
        const struct ft_attachment *other = &at->attachments[i];

        if (other != p && ft_attachment_is_steady(other) && ft_ip_equal(&other->agent, &p->agent))
            return true;
    }
    return false;
}

/* Whether the file says that an address is there. */
static bool is_stated(const struct ft_topology *file, const struct ft_ip *address,
                      const struct ft_attachment *p)
{
    uint32_t id = ft_topology_nic_at(file, address);
    uint32_t switch_id = ft_topology_switch_at(file, &p->agent);
    const struct ft_nic *nic;
    uint32_t port;

    if (id == FT_NONE || switch_id == FT_NONE)
        return false;
    nic = ft_topology_nic(file, id);
    port = ft_topology_port_at(file, switch_id, p->ifindex);
    for (uint32_t i = 0; port != FT_NONE && i < nic->attach_count; i++)
        if (nic->attach[i] == port)
            return true;
    return false;
}

/* A fabric of thousands of hosts would be looked at anew every second for the first minutes. */
static void note(struct ft_attach *a, const struct ft_attached *at, const struct ft_attachment *p)
{
    if (a->file && is_stated(a->file, &at->address, p))
        a->withheld = true;
    else
        a->news = true;
}

/* Accepts what is steady. Where the address is uncertain nothing new is accepted, and of what was,
 * a single attachment. */
static void believe(struct ft_attach *a, struct ft_attached *at, int64_t ms)
{
    uint32_t steady = 0, believed = 0;
    bool uncertain;

    for (uint32_t i = 0; i < at->attachment_count; i++) {
        steady +=
            ft_attachment_is_steady(&at->attachments[i]) && !has_rival(at, &at->attachments[i]);
        believed += at->attachments[i].believed;
    }
    if (steady > 2)
        at->uncertain_ms = ms;
    uncertain = at->uncertain_ms && ms - at->uncertain_ms < DOUBT_MS;
    for (uint32_t i = 0; i < at->attachment_count; i++) {
        struct ft_attachment *p = &at->attachments[i];
        bool now = ft_attachment_is_steady(p);

        if (uncertain)
            now = p->believed && believed == 1;
        else if (has_rival(at, p))
            now = p->believed;
        if (now != p->believed || p->steady != ft_attachment_is_steady(p))
            note(a, at, p);
        p->steady = ft_attachment_is_steady(p);
        p->believed = now;
    }
}

static int64_t last_seen_ms(const struct ft_attached *at)
{
    int64_t ms = INT64_MIN;

    for (uint32_t i = 0; i < at->attachment_count; i++)
        if (at->attachments[i].last_ms > ms)
            ms = at->attachments[i].last_ms;
    return ms;
}

struct aging {
    struct ft_attach *a;
    int64_t now_ms;
};

/* Addresses of the world outside come in by a border port, without end. */
static bool is_unseen(void *arg, void *entry)
{
    const struct aging *aging = arg;
    struct ft_attached *at = entry;

    if (last_seen_ms(at) >= aging->now_ms - KEEP_MS)
        return false;
    for (uint32_t i = 0; i < at->attachment_count; i++)
        aging->a->news |= at->attachments[i].believed;
    ft_names_drop(aging->a->names, at->host);
    return true;
}

static bool is_unreported(void *arg, void *entry)
{
    const struct aging *aging = arg;
    struct reported *reported = entry;

    /* This host's clock was set back. */
    if (reported->reported_ms > aging->now_ms)
        reported->reported_ms = aging->now_ms;
    if (aging->now_ms - reported->reported_ms < KEEP_NAME_MS)
        return false;
    ft_names_drop(aging->a->names, reported->host);
    return true;
}

void ft_attach_entered(struct ft_attach *a, const struct ft_ip *address, const struct ft_ip *agent,
                       uint32_t ifindex, int64_t ms, bool twice)
{
    struct aging aging = {a, ms};
    struct ft_attached *at;
    struct ft_attachment *p;
    bool fresh;

    if (!is_host_address(address))
        return;
    at = ft_table_insert(a->table, address, &fresh);
    if (!at && ft_table_make_room(a->table, &a->hand, LOOKS, is_unseen, &aging))
        at = ft_table_insert(a->table, address, &fresh);
    if (!at)
        return;
    if (fresh) {
        const struct reported *reported = ft_table_find(a->reported, address);

        at->host = reported ? ft_names_hold(a->names, reported->host) : NULL;
    }
    if (twice)
        at->uncertain_ms = ms;
    p = attachment_of(at, agent, ifindex, ms);
    if (!p) {
        at->uncertain_ms = ms;
        return;
    }
    p->seen += p->seen < UINT32_MAX;
    if (ms > p->last_ms)
        p->last_ms = ms;
    give_up_old(a, at, p);
    believe(a, at, ms);
}

static struct reported *reported_for(struct ft_attach *a, const struct ft_ip *address,
                                     int64_t now_ms)
{
    struct aging aging = {a, now_ms};
    bool fresh;
    struct reported *reported = ft_table_insert(a->reported, address, &fresh);

    if (!reported &&
        ft_table_make_room(a->reported, &a->reported_hand, LOOKS, is_unreported, &aging))
        reported = ft_table_insert(a->reported, address, &fresh);
    return reported;
}

/* What is held for the one is held for the other before it is dropped. */
static void rename_to(struct ft_attach *a, const char **attachment, const char *name)
{
    const char *before = *attachment;

    *attachment = ft_names_hold(a->names, name);
    ft_names_drop(a->names, before);
}

void ft_attach_named(struct ft_attach *a, const struct ft_ip *address, const char *host,
                     int64_t now_ms)
{
    struct ft_attached *at = ft_table_find(a->table, address);
    const char *name;
    struct reported *reported;

    if (!is_host_address(address))
        return;
    /* First the room: names that go with old entries make room for this one. */
    reported = reported_for(a, address, now_ms);
    if (reported)
        reported->reported_ms = now_ms;
    name = ft_names_hold(a->names, ft_names_intern(a->names, host));
    if (!name) {
        if (reported && !reported->host)
            ft_table_remove(a->reported, reported);
        return;
    }
    if (reported)
        rename_to(a, &reported->host, name);
    if (at && at->host != name) {
        rename_to(a, &at->host, name);
        a->news = true;
    }
    ft_names_drop(a->names, name);
}

bool ft_attach_take_news(struct ft_attach *a)
{
    bool news = a->news;

    a->news = false;
    return news;
}

void ft_attach_see(struct ft_attach *a, const struct ft_topology *file)
{
    if (a)
        a->file = file;
}

bool ft_attach_withheld(const struct ft_attach *a)
{
    return a && a->withheld;
}

const struct ft_attached *ft_attach_next(const struct ft_attach *a, uint32_t *index)
{
    return ft_table_next(a->table, index);
}

const char *ft_attach_next_name(const struct ft_attach *a, uint32_t *index)
{
    const struct reported *reported = ft_table_next(a->reported, index);

    return reported ? reported->host : NULL;
}

bool ft_attach_set_back(struct ft_attach *a, int64_t now_ms, uint32_t *index, uint32_t addresses)
{
    struct ft_attached *at;

    for (; addresses > 0 && (at = ft_table_next(a->table, index)); addresses--) {
        if (at->uncertain_ms > now_ms)
            at->uncertain_ms = now_ms;
        for (uint32_t i = 0; i < at->attachment_count; i++) {
            struct ft_attachment *p = &at->attachments[i];
            int64_t ahead_ms = p->last_ms > now_ms ? p->last_ms - now_ms : 0;

            /* How long it was seen stays. */
            p->first_ms -= ahead_ms;
            p->last_ms -= ahead_ms;
        }
    }
    return addresses == 0;
}

void ft_attach_forget(struct ft_attach *a,
                      bool (*drop)(void *arg, const struct ft_ip *agent, uint32_t ifindex),
                      void *arg)
{
    struct ft_attached *at;
    uint32_t index = 0;

    while ((at = ft_table_next(a->table, &index))) {
        uint32_t count = at->attachment_count;

        for (uint32_t i = count; i-- > 0;)
            if (drop(arg, &at->attachments[i].agent, at->attachments[i].ifindex))
                drop_attachment(a, at, i);
        if (at->attachment_count == count)
            continue;
        if (at->attachment_count < 2)
            at->uncertain_ms = 0;
        believe(a, at, last_seen_ms(at));
    }
}
