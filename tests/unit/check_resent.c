// SPDX-License-Identifier: Apache-2.0
/* The link under a pair that is named for the flows over it which send packets again. */
#include "config.h"

#include "daemon/diagnosis/resent.h"

#include <stdlib.h>
#include <string.h>

#include "tests/unit/leafspine.h"
#include "tests/unit/unit.h"

static struct ft_topology *topology;
static uint32_t ports[3];
static double chance[3]; /* of these; 1: too few to tell */
static Fabrictrace__Side side;
static struct ft_diagnosis_report report;
static struct ft_testimony room;

const struct ft_topology *__wrap_ft_join_topology(const struct ft_join *join);
const struct ft_topology *__wrap_ft_join_topology(const struct ft_join *join)
{
    (void)join;
    return topology;
}

static bool resends(const void *arg, uint32_t port, struct ft_lossy_found *found)
{
    ck_assert_ptr_eq(arg, ports);
    for (int i = 0; i < 3; i++)
        if (port == ports[i] && chance[i] < 1) {
            *found = (struct ft_lossy_found){
                .link = port, .again = 6, .flows = 10, .others_flows = 28, .p = chance[i]};
            return true;
        }
    return false;
}

static const struct ft_witnesses witnesses = {
    .join = (const struct ft_join *)&topology, .resends = resends, .resends_arg = ports};

static void setup(void)
{
    topology = leafspine(2, 2, 1);
    ck_assert_ptr_nonnull(topology);
    for (uint32_t i = 0; i < 3; i++)
        ports[i] = i;
    side = FABRICTRACE__SIDE__SIDE_ANY;
}

static void teardown(void)
{
    ft_topology_free(topology);
}

/* A report of a pair, with the links under it; their chances. */
static Fabrictrace__Diagnosis *make(double a, double b, double c)
{
    Fabrictrace__Diagnosis *m = &report.message;

    memset(&report, 0, sizeof(report));
    memset(&room, 0, sizeof(room));
    fabrictrace__diagnosis__init(m);
    m->evidence_for = report.reasons;
    m->has_peer = m->has_side = true;
    m->peer = 1;
    m->side = side;
    m->links = room.link_list;
    for (uint32_t i = 0; i < 3; i++) {
        const struct ft_port *port = ft_topology_port(topology, ports[i]);
        Fabrictrace__DiagnosisLink *link = &room.links[m->n_links];

        fabrictrace__diagnosis_link__init(link);
        link->switch_ = (char *)(uintptr_t)ft_topology_switch(topology, port->switch_id)->name;
        link->port = (char *)(uintptr_t)port->name;
        room.ports[m->n_links] = ports[i];
        room.link_list[m->n_links++] = link;
    }
    chance[0] = a;
    chance[1] = b;
    chance[2] = c;
    return m;
}

/* Which link is named; -1: none. */
static int named(double a, double b, double c)
{
    const Fabrictrace__Diagnosis *m = make(a, b, c);

    ft_resent_report(&witnesses, &report, &room);
    for (int i = 0; m->switch_ && i < 3; i++)
        if (m->switch_ == room.links[i].switch_ && m->port == room.links[i].port) {
            ck_assert_uint_eq(m->n_evidence_for, 1);
            ck_assert_ptr_nonnull(strstr(m->evidence_for[0],
                                         "6 of 10 flows over it sent packets again, 0 of 28 over"));
            ck_assert_int_eq(m->side, FABRICTRACE__SIDE__SIDE_PAIR);
            return i;
        }
    ck_assert_ptr_null(m->switch_);
    ck_assert_uint_eq(m->n_evidence_for, 0);
    return -1;
}

START_TEST(the_link_that_chance_does_not_explain_is_named)
{
    setup();
    ck_assert_int_eq(named(1, 1e-4, 1), 1);
    ck_assert_int_eq(named(0.4, 0.03, 1e-9), 2);
    ck_assert_int_eq(named(3e-4, 1, 1), 0);
    ck_assert_int_eq(named(4e-4, 1, 1), -1); /* one of three is so by chance in a thousand */
    ck_assert_int_eq(named(1, 1, 1), -1);
    ck_assert_int_eq(named(1e-6, 1e-5, 1), -1); /* either */
    ck_assert_int_eq(named(1e-5, 1e-6, 1), -1);
    teardown();
}
END_TEST

START_TEST(an_end_that_is_to_blame_and_a_link_that_is_named_stay)
{
    setup();
    side = FABRICTRACE__SIDE__SIDE_SENDER;
    ck_assert_int_eq(named(1, 1e-6, 1), -1);
    side = FABRICTRACE__SIDE__SIDE_RECEIVER;
    ck_assert_int_eq(named(1, 1e-6, 1), -1);
    side = FABRICTRACE__SIDE__SIDE_PAIR;
    ck_assert_int_eq(named(1, 1e-6, 1), 1);
    make(1, 1e-6, 1);
    report.message.switch_ = report.message.port = room.host;
    ft_resent_report(&witnesses, &report, &room);
    ck_assert_ptr_eq(report.message.switch_, room.host);
    make(1, 1e-6, 1);
    report.message.has_peer = false;
    ft_resent_report(&witnesses, &report, &room);
    ck_assert_ptr_null(report.message.switch_);
    teardown();
}
END_TEST

/* A diagnosis that stands has names instead of ports, and is its own. */
START_TEST(what_stands_is_named_later)
{
    Fabrictrace__Diagnosis *m, *kept;
    uint8_t *packed;
    size_t len;

    setup();
    m = make(1, 1e-6, 1);
    len = fabrictrace__diagnosis__get_packed_size(m);
    packed = malloc(len);
    ck_assert_ptr_nonnull(packed);
    fabrictrace__diagnosis__pack(m, packed);
    kept = fabrictrace__diagnosis__unpack(NULL, len, packed);
    ck_assert_ptr_nonnull(kept);
    chance[1] = 1e-2;
    ck_assert(!ft_resent_name(&witnesses, kept));
    chance[1] = 1e-6;
    ck_assert(ft_resent_name(&witnesses, kept));
    ck_assert_str_eq(kept->switch_, room.links[1].switch_);
    ck_assert_str_eq(kept->port, room.links[1].port);
    ck_assert_uint_eq(kept->n_evidence_for, 1);
    ck_assert(!ft_resent_name(&witnesses, kept)); /* it is by now */
    fabrictrace__diagnosis__free_unpacked(kept, NULL);
    /* Its switch has left the topology. */
    kept = fabrictrace__diagnosis__unpack(NULL, len, packed);
    free(kept->links[1]->switch_);
    kept->links[1]->switch_ = strdup("gone");
    ck_assert(!ft_resent_name(&witnesses, kept));
    fabrictrace__diagnosis__free_unpacked(kept, NULL);
    free(packed);
    teardown();
}
END_TEST

FT_UNIT_MAIN("resent", the_link_that_chance_does_not_explain_is_named,
             an_end_that_is_to_blame_and_a_link_that_is_named_stay, what_stands_is_named_later)
