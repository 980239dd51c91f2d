// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/whatif/error.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/task.h"
#include "lib/sim/fluid.h"
#include "lib/sim/loads.h"

/* A link that carries less of its speed is not judged. */
#define LOAD_LEAST 0.01

static int compare(const void *a, const void *b)
{
    double x = *(const double *)a, y = *(const double *)b;

    return (x > y) - (x < y);
}

/* Sorts them. */
static struct ft_errors sum_up(double *errors, uint32_t count, struct ft_task *task)
{
    struct ft_errors e = {.count = count};

    if (count == 0)
        return e;
    ft_task_sort(task, errors, count, sizeof(*errors), compare);
    e.median = count % 2 ? errors[count / 2] : (errors[count / 2 - 1] + errors[count / 2]) / 2;
    e.p90 = errors[(uint32_t)ceil(0.9 * count) - 1];
    e.worst = errors[count - 1];
    return e;
}

struct model {
    uint32_t *first, *link;
    double *demand, *capacity, *rate, *load, *errors;
};

static void model_free(struct model *m)
{
    free(m->first);
    free(m->link);
    free(m->demand);
    free(m->capacity);
    free(m->rate);
    free(m->load);
    free(m->errors);
}

static int model_init(struct model *m, const struct ft_captured *c)
{
    size_t flows = (size_t)c->inputs.flows.count + 1;
    size_t links = (size_t)ft_links_of(c->inputs.topology) + 1;

    m->first = calloc(flows + 1, sizeof(*m->first));
    m->link = calloc(flows * FT_PATH_LINKS_MAX, sizeof(*m->link));
    m->demand = calloc(flows, sizeof(*m->demand));
    m->rate = calloc(flows, sizeof(*m->rate));
    m->capacity = calloc(links, sizeof(*m->capacity));
    m->load = calloc(links, sizeof(*m->load));
    m->errors = calloc(flows + links, sizeof(*m->errors));
    return m->first && m->link && m->demand && m->rate && m->capacity && m->load && m->errors
               ? 0
               : -ENOMEM;
}

static int predict(struct model *m, const struct ft_captured *c)
{
    const struct ft_topology *t = c->inputs.topology;
    uint32_t flows = c->inputs.flows.count, links = ft_links_of(t);
    struct ft_fluid fluid = {.links = links,
                             .capacity = m->capacity,
                             .flows = flows,
                             .first = m->first,
                             .link = m->link,
                             .demand = m->demand,
                             .task = c->task};
    int rc;

    for (uint32_t i = 0; i < flows; i++) {
        m->demand[i] = (double)c->inputs.flows.demands[i].rate_bps;
        m->first[i + 1] = m->first[i] + ft_path_links(t, &c->paths[i], m->link + m->first[i]);
        ft_task_spend(c->task, 1);
    }
    for (uint32_t l = 0; l < links; l++)
        m->capacity[l] = ft_link_speed(t, l) ? (double)ft_link_speed(t, l) : INFINITY;
    rc = ft_fluid_rates(&fluid, NULL, 0, m->rate);
    for (uint32_t i = 0; rc == 0 && i < flows; i++)
        for (uint32_t k = m->first[i]; k < m->first[i + 1]; k++)
            m->load[m->link[k]] += m->rate[i];
    return rc;
}

static struct ft_errors judge_rates(struct model *m, const struct ft_captured *c, bool limited)
{
    uint32_t n = 0;

    for (uint32_t i = 0; i < c->inputs.flows.count; i++)
        if (!limited || c->flows[i].limited)
            m->errors[n++] = fabs(m->rate[i] - c->flows[i].rate_bps) / c->flows[i].rate_bps;
    return sum_up(m->errors, n, c->task);
}

static void judge_loads(struct model *m, const struct ft_captured *c, struct ft_model_error *out)
{
    const struct ft_topology *t = c->inputs.topology;
    double worst = -1;
    uint32_t n = 0;

    out->worst_link = FT_NONE;
    for (uint32_t l = 0; l < ft_topology_ports(t); l++) {
        double measured = c->link_bps[l], speed = (double)ft_link_speed(t, l);

        if (ft_topology_port(t, l)->peer == FT_NONE || speed <= 0 || measured < LOAD_LEAST * speed)
            continue;
        m->errors[n] = fabs(m->load[l] - measured) / measured;
        if (m->errors[n] > worst) {
            worst = m->errors[n];
            out->worst_link = l;
        }
        n++;
    }
    out->loads = sum_up(m->errors, n, c->task);
}

int ft_model_error(const struct ft_captured *c, struct ft_model_error *out)
{
    struct model m = {0};
    int rc = model_init(&m, c);

    if (rc == 0)
        rc = predict(&m, c);
    if (rc == 0) {
        out->rates = judge_rates(&m, c, false);
        out->limited = judge_rates(&m, c, true);
        judge_loads(&m, c, out);
    }
    model_free(&m);
    return rc;
}

static void fill_errors(Fabrictrace__Errors *to, const struct ft_errors *from)
{
    fabrictrace__errors__init(to);
    to->has_count = true;
    to->count = from->count;
    to->has_median = to->has_p90 = to->has_worst = from->count > 0;
    to->median = from->median;
    to->p90 = from->p90;
    to->worst = from->worst;
}

void ft_model_error_fill(struct ft_error_record *r, const struct ft_model_error *e,
                         const struct ft_topology *t)
{
    fabrictrace__model_error__init(&r->m);
    fill_errors(&r->rates, &e->rates);
    fill_errors(&r->limited, &e->limited);
    fill_errors(&r->loads, &e->loads);
    r->m.rates = &r->rates;
    r->m.limited = &r->limited;
    r->m.loads = &r->loads;
    if (e->worst_link != FT_NONE) {
        const struct ft_port *p = ft_topology_port(t, e->worst_link);

        fabrictrace__port_name__init(&r->worst);
        r->worst.switch_ = (char *)ft_topology_switch(t, p->switch_id)->name;
        r->worst.port = (char *)p->name;
        r->m.worst_link = &r->worst;
    }
}
