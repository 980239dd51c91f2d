// SPDX-License-Identifier: Apache-2.0
#ifndef FT_WHATIF_ERROR_H
#define FT_WHATIF_ERROR_H
/*
 * How far the fluid model is off in the case that was measured: rates of flows and loads of links
 * on the paths that the flows had. Errors are |predicted - measured| / measured.
 *
 * Where no link is full every flow gets its demand, and rates say nothing about the model: flows
 * that a full link limits are therefore judged by themselves. A link is judged where it was
 * measured to carry at least 1 % of its speed; what no captured flow explains is part of its error.
 */
#include "lib/whatif/captured.h"

struct ft_errors {
    uint32_t count;
    double median, p90, worst;
};

struct ft_model_error {
    struct ft_errors rates;   /* of all flows */
    struct ft_errors limited; /* of those behind a full link */
    struct ft_errors loads;   /* of links between switches */
    uint32_t worst_link;      /* FT_NONE */
};

/* -ENOMEM. */
int ft_model_error(const struct ft_captured *c, struct ft_model_error *out);

/* The error's message with what it points to. */
struct ft_error_record {
    Fabrictrace__ModelError m;
    Fabrictrace__Errors rates, limited, loads;
    Fabrictrace__PortName worst;
};

void ft_model_error_fill(struct ft_error_record *r, const struct ft_model_error *e,
                         const struct ft_topology *t);

#endif
