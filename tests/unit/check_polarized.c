// SPDX-License-Identifier: Apache-2.0
/*
 * The event of a group whose members have no flow: more of them than it names.
 */
#include "config.h"

#include "daemon/window/polarized.h"

#include <stdio.h>
#include <string.h>

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

#define SPINES 140

static char message[512];
static size_t named;

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    snprintf(message, sizeof(message), "%s", record->event->message);
    named = record->event->evidence->n_idle_ports;
}

static void raise_of(const struct ft_topology *t, size_t total)
{
    struct ft_events *events = ft_events_new(10, &(struct ft_emitter){on_record, NULL});
    Fabrictrace__Imbalance figures = FABRICTRACE__IMBALANCE__INIT;
    uint32_t up0 = ft_topology_find_port(t, ft_topology_find_switch(t, "leaf0"), "up0");
    const struct ft_group *group = ft_topology_group(t, ft_topology_port(t, up0)->group);
    struct ft_idle idle = {.total = total};

    ck_assert_ptr_nonnull(events);
    ck_assert_uint_eq(group->link_count, SPINES);
    while (idle.count < total && idle.count < FT_IDLE_MAX) {
        idle.ports[idle.count] = group->links[idle.count];
        idle.count++;
    }
    ft_polarized_raise(&(struct ft_polarized){.figures = &figures, .group = group, .topology = t},
                       &idle, events);
    ft_events_free(events);
}

START_TEST(all_of_them_are_counted)
{
    struct ft_topology *t = leafspine(2, SPINES, 1);

    raise_of(t, 1);
    ck_assert_ptr_nonnull(strstr(message, "no flow on up0: "));
    raise_of(t, FT_IDLE_MAX);
    ck_assert_ptr_nonnull(strstr(message, "no flow on up0 and 63 more: "));
    raise_of(t, 69);
    ck_assert_ptr_nonnull(strstr(message, "no flow on up0 and 68 more: "));
    ck_assert_uint_eq(named, FT_IDLE_MAX);
    ft_topology_free(t);
}
END_TEST

FT_UNIT_MAIN("polarized", all_of_them_are_counted)
