// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "daemon/pairing/pairing.h"
#include "daemon/pairing/state.h"
#include "lib/base/table.h"

/* Host by host at most; the rest is summed up. */
#define HOSTS_SHOWN 100
#define LOOKS       10000 /* of a step */

#define ASK                                                                                        \
    "allow its agent to query (CAP_SYS_PTRACE and rdma.query), or sample its packets on the "      \
    "switches"

static const struct {
    const char *text;
    const char *advice;
} reasons[FT_PAIR_STATES] = {
    [FT_PAIR_NO_PEER] = {"no host lists the remote queue pairs",
                         "run an agent on every host they may be connected to; or " ASK},
    [FT_PAIR_SEVERAL_PEERS] = {"several queue pairs may be the remote one",
                               "load the NCCL profiler plugin in the jobs; or " ASK},
    [FT_PAIR_SEVERAL_ADDRESSES] = {"both hosts have more than one address type in common",
                                   "set pairing.link_local to false where no link-local ones are "
                                   "used; or " ASK},
    [FT_PAIR_NO_ADDRESS] = {"the hosts have no address type in common",
                            "look at the RoCEv2 addresses of both hosts"},
    [FT_PAIR_NO_PORT] = {"their driver's source port follows no known formula",
                         "let the switches sample, or capture on both hosts"},
    [FT_PAIR_SAME_HOST] = {"the only candidate is on the same host", ASK},
    [FT_PAIR_PEER_GONE] = {"the remote queue pairs, or candidates for them, are gone",
                           "end the remaining processes of the job; or " ASK},
    [FT_PAIR_INCOMPLETE] =
        {"hosts without an agent, or with an incomplete list, may have the remote queue pairs",
         "run an agent on every host they may be connected to; or " ASK},
    [FT_PAIR_UNTIMED] = {"the only candidates were not created at the same time", ASK},
    [FT_PAIR_ITSELF] = {"they name their own numbers, and may be connected to themselves", ASK},
};

/* One host's or, without a name, everybody's. */
struct tally {
    char host[FT_PAIRING_NAME];
    uint64_t counts[FT_PAIR_STATES];
};

struct ft_pairing_unpaired {
    struct ft_table *tallies;
    uint32_t index;
};

static int by_host(const void *a, const void *b)
{
    return strcmp((*(const struct tally *const *)a)->host, (*(const struct tally *const *)b)->host);
}

static void find_of(const struct tally *tally, uint32_t hosts, struct ft_findings *findings)
{
    for (int s = 0; s < FT_PAIR_STATES; s++) {
        const char *state = ft_pair_state_name((enum ft_pair_state)s);
        unsigned long long n = tally->counts[s];
        struct ft_finding *f;

        if (n == 0 || !reasons[s].text)
            continue;
        if (tally->host[0])
            f = ft_findings_add(findings, FT_FINDING_NOTE, tally->host, NULL, reasons[s].advice,
                                "the destination of %llu queue pair%s is not known (%s): %s", n,
                                n == 1 ? "" : "s", state, reasons[s].text);
        else
            f = ft_findings_add(
                findings, FT_FINDING_NOTE, NULL, NULL, reasons[s].advice,
                "the destination of %llu queue pairs of %u more hosts is not known (%s): %s", n,
                hosts, state, reasons[s].text);
        if (f)
            f->of_host = tally->host[0] != 0;
    }
}

struct ft_pairing_unpaired *ft_pairing_unpaired_new(const struct ft_pairing *p, uint64_t seed)
{
    struct ft_pairing_unpaired *u = calloc(1, sizeof(*u));

    if (!u)
        return NULL;
    u->tallies =
        ft_table_new(sizeof(struct tally), FT_PAIRING_NAME, ft_pairing_ends(p) + LOOKS, seed);
    if (u->tallies)
        return u;
    free(u);
    return NULL;
}

void ft_pairing_unpaired_free(struct ft_pairing_unpaired *u)
{
    if (u)
        ft_table_free(u->tallies);
    free(u);
}

/* The first hosts by name, and the sum of the others. */
static void find_hosts(const struct ft_pairing_unpaired *u, struct ft_findings *findings)
{
    size_t count = ft_table_count(u->tallies), n = 0;
    const struct tally **list = calloc(count ? count : 1, sizeof(*list)), *tally;
    struct tally rest = {.host = ""};

    if (!list)
        return;
    for (uint32_t index = 0; (tally = ft_table_next(u->tallies, &index));)
        list[n++] = tally;
    qsort(list, n, sizeof(*list), by_host);
    for (size_t i = 0; i < n && i < HOSTS_SHOWN; i++)
        find_of(list[i], 1, findings);
    for (size_t i = HOSTS_SHOWN; i < n; i++)
        for (int s = 0; s < FT_PAIR_STATES; s++)
            rest.counts[s] += list[i]->counts[s];
    if (n > HOSTS_SHOWN)
        find_of(&rest, (uint32_t)(n - HOSTS_SHOWN), findings);
    free(list);
}

bool ft_pairing_unpaired_step(struct ft_pairing_unpaired *u, const struct ft_pairing *p,
                              struct ft_findings *findings)
{
    struct ft_pairing_end end;

    for (int i = 0; i < LOOKS; i++) {
        char host[FT_PAIRING_NAME] = "";
        struct tally *tally;
        bool fresh;

        if (!ft_pairing_next(p, &u->index, &end)) {
            find_hosts(u, findings);
            return false;
        }
        if (end.state == FT_PAIR_PAIRED || end.state == FT_PAIR_REPORTED ||
            end.state == FT_PAIR_WAITING)
            continue;
        snprintf(host, sizeof(host), "%s", end.host);
        tally = ft_table_insert(u->tallies, host, &fresh);
        if (tally)
            tally->counts[end.state]++;
    }
    return true;
}
