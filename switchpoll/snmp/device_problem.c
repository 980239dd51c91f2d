// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "switchpoll/snmp/device_impl.h"

#define UNRESOLVED_LOGGED 3

static void say(char problem[FT_DEVICE_PROBLEM_BYTES], const char *text)
{
    size_t at = strlen(problem);

    snprintf(problem + at, FT_DEVICE_PROBLEM_BYTES - at, "%s%s", at ? "; " : "", text);
}

/* Each port once, whoever is behind it: neighbours lie by port. */
static void say_unresolved(const struct ft_device *d, char problem[FT_DEVICE_PROBLEM_BYTES])
{
    unsigned reported = 0;

    for (size_t i = 0; i < d->neighbors.count; i++) {
        const struct ft_device_neighbor *n = &d->neighbors.items[i];
        const struct ft_device_local *local;
        char text[160];

        if (n->ifindex || (i > 0 && n[-1].local == n->local))
            continue;
        if (reported++ == UNRESOLVED_LOGGED) {
            say(problem, "more such ports");
            return;
        }
        local = ft_device_find_local(d, n->local);
        snprintf(text, sizeof(text), "LLDP port %u ('%.60s') does not name one interface of IF-MIB",
                 n->local, local && local->id.text ? local->id.text : "without an id");
        say(problem, text);
    }
}

/* Counters of 32 bits alone wrap within a second at 40 Gb/s: they are not read. */
static bool has_counters(const struct ft_device *d)
{
    uint64_t octets;

    for (size_t i = 0; i < d->ports.count; i++)
        if (ft_counters_get(&d->ports.items[i].counters, FT_MIB_IN_OCTETS, &octets))
            return true;
    return false;
}

void ft_device_problem(const struct ft_device *d, char problem[FT_DEVICE_PROBLEM_BYTES])
{
    problem[0] = 0;
    if (d->restarted)
        say(problem, "the SNMP agent has restarted");
    if (d->frozen)
        say(problem, "no counter has moved for long: the agent answers stale values, or nothing "
                     "passes at all");
    if (d->ports.count == 0)
        say(problem, "IF-MIB answers no port");
    else if (d->ports_away)
        say(problem, "IF-MIB answers no port any more: those of before are kept");
    else if (d->ports_missed)
        say(problem, "IF-MIB answers fewer ports than before: the others are kept for a poll");
    else if (!has_counters(d))
        say(problem, "IF-MIB answers no 64-bit counters");
    if (!d->has_lldp)
        say(problem, "LLDP-MIB is not answered: LLDP is off, or not offered over SNMP");
    say_unresolved(d, problem);
    if (d->not_increasing)
        say(problem, "an SNMP table does not increase and was read in part");
    if (d->truncated)
        say(problem, "an SNMP table is larger than what is kept of it");
}
