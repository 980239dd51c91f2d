// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "daemon/pairing/pairing.h"

/* Host by host at most; the rest is summed up. */
#define HOSTS_SHOWN 100

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

/* One host's or, over many, everybody's. */
struct tally {
    const char *host;
    uint64_t counts[FT_PAIR_STATES];
};

static int by_host(const void *a, const void *b)
{
    return strcmp(((const struct tally *)a)->host, ((const struct tally *)b)->host);
}

static void find_of(const struct tally *tally, uint32_t hosts, struct ft_findings *findings)
{
    for (int s = 0; s < FT_PAIR_STATES; s++) {
        unsigned long long n = tally->counts[s];
        struct ft_finding *f;

        if (n == 0 || !reasons[s].text)
            continue;
        if (tally->host)
            f = ft_findings_add(findings, FT_FINDING_NOTE, tally->host, NULL, reasons[s].advice,
                                "the destination of %llu queue pair%s is not known (%s): %s", n,
                                n == 1 ? "" : "s", ft_pair_state_name(s), reasons[s].text);
        else
            f = ft_findings_add(
                findings, FT_FINDING_NOTE, NULL, NULL, reasons[s].advice,
                "the destination of %llu queue pairs of %u more hosts is not known (%s): %s", n,
                hosts, ft_pair_state_name(s), reasons[s].text);
        if (f)
            f->of_host = tally->host != NULL;
    }
}

/* Ends of one host follow each other, mostly; what does not is brought together by sorting. */
static size_t tally_hosts(const struct ft_pairing *p, struct tally *tallies)
{
    struct ft_pairing_end end;
    uint32_t index = 0;
    size_t n = 0, kept = 0;

    while (ft_pairing_next(p, &index, &end)) {
        if (end.state == FT_PAIR_PAIRED || end.state == FT_PAIR_REPORTED ||
            end.state == FT_PAIR_WAITING)
            continue;
        if (n == 0 || strcmp(tallies[n - 1].host, end.host) != 0)
            tallies[n++] = (struct tally){.host = end.host};
        tallies[n - 1].counts[end.state]++;
    }
    qsort(tallies, n, sizeof(*tallies), by_host);
    for (size_t i = 0; i < n; i++) {
        if (kept && strcmp(tallies[kept - 1].host, tallies[i].host) == 0)
            for (int s = 0; s < FT_PAIR_STATES; s++)
                tallies[kept - 1].counts[s] += tallies[i].counts[s];
        else
            tallies[kept++] = tallies[i];
    }
    return kept;
}

void ft_pairing_find_unpaired(const struct ft_pairing *p, struct ft_findings *findings)
{
    struct tally rest = {.host = NULL};
    struct tally *tallies = calloc(ft_pairing_ends(p) + 1, sizeof(*tallies));
    uint32_t more = 0;
    size_t n;

    if (!tallies)
        return;
    n = tally_hosts(p, tallies);
    for (size_t i = 0; i < n; i++) {
        if (i < HOSTS_SHOWN) {
            find_of(&tallies[i], 1, findings);
            continue;
        }
        more++;
        for (int s = 0; s < FT_PAIR_STATES; s++)
            rest.counts[s] += tallies[i].counts[s];
    }
    find_of(&rest, more, findings);
    free(tallies);
}
