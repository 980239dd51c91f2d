// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "agent/probe/course.h"

#include <string.h>

#define QP_MAX   0xffffff
#define DSCP_MAX 63

const char *ft_course_complaint(const struct ft_tuple *tuple, uint32_t dst_qp, uint32_t dscp,
                                uint32_t switches)
{
    if (tuple->proto != FT_PROTO_UDP || tuple->dport != FT_ROCE_PORT)
        return "it is not a flow of RoCEv2";
    if (ft_ip_is4(&tuple->src) != ft_ip_is4(&tuple->dst))
        return "one of its addresses is IPv4, the other IPv6";
    if (switches == 0)
        return "the number of switches on its paths is not known, and no probe may reach the "
               "other host";
    if (switches == 1)
        return "there is one switch between its hosts, so that nothing is to be learnt";
    if (switches > FT_COURSE_SWITCHES)
        return "there are too many switches on its paths";
    if (dst_qp > QP_MAX || dscp > DSCP_MAX)
        return "no queue pair or DSCP has this number";
    return NULL;
}

bool ft_course_is_due(const struct ft_course *c, struct ft_mono now)
{
    return c->rounds < FT_COURSE_ROUNDS &&
           (c->rounds == 0 || ft_mono_since_ns(now, c->begun) >= FT_COURSE_ROUND_NS);
}

void ft_course_begin_round(struct ft_course *c, struct ft_mono now)
{
    c->rounds++;
    c->begun = now;
}

bool ft_course_wants(const struct ft_course *c, uint32_t ttl)
{
    return ttl >= 1 && ttl < c->switches && !c->hops[ttl - 1].answered &&
           c->hops[ttl - 1].sent < c->rounds;
}

size_t ft_course_shoot(struct ft_course *c, uint32_t ttl, struct ft_mono now, uint64_t random[2],
                       uint8_t bytes[FT_PROBE_BYTES])
{
    struct ft_course_hop *hop = &c->hops[ttl - 1];
    struct ft_course_sent *sent = &hop->probes[hop->sent++];
    const struct ft_probe_shot shot = {
        .tuple = c->tuple,
        .dst_qp = c->dst_qp,
        .dscp = c->dscp,
        .ttl = (uint8_t)ttl,
        .id = (uint16_t)(random[1] % 0xffff + 1),
        .nonce = random[0],
    };

    sent->at = now;
    sent->id = shot.id;
    sent->nonce = shot.nonce;
    return ft_probe_packet(&shot, bytes, &sent->udp_checksum);
}

static bool is_of(const struct ft_course *c, const struct ft_course_sent *sent,
                  const struct ft_ttl_answer *answer)
{
    bool v4 = ft_ip_is4(&c->tuple.src);

    return answer->udp_checksum == sent->udp_checksum && (!v4 || answer->id == sent->id) &&
           (answer->has_nonce ? answer->nonce == sent->nonce : v4);
}

bool ft_course_take(struct ft_course *c, const struct ft_ip *from,
                    const struct ft_ttl_answer *answer, struct ft_mono now)
{
    if (memcmp(&answer->tuple, &c->tuple, sizeof(c->tuple)) != 0)
        return false;
    for (uint32_t i = 0; i + 1 < c->switches; i++) {
        struct ft_course_hop *hop = &c->hops[i];

        for (uint32_t n = 0; n < hop->sent && !hop->answered; n++) {
            if (!is_of(c, &hop->probes[n], answer))
                continue;
            hop->answered = true;
            hop->address = *from;
            hop->rtt_ns = ft_mono_since_ns(now, hop->probes[n].at);
            return true;
        }
    }
    return false;
}

bool ft_course_is_over(const struct ft_course *c, struct ft_mono now)
{
    bool all = c->rounds > 0;

    for (uint32_t i = 0; i + 1 < c->switches; i++)
        all = all && c->hops[i].answered;
    return all ||
           (c->rounds == FT_COURSE_ROUNDS && ft_mono_since_ns(now, c->begun) >= FT_COURSE_ROUND_NS);
}
