// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/effective.h"

#include <math.h>

#define Z 1.959963984540054
/* With fewer samples of each link that has some, there may be others that carry as much. */
#define SAMPLES_A_LINK 5

static double share_of_same(const struct ft_entropy_link *links, size_t m, size_t i, double all)
{
    double share = 0;

    for (size_t k = 0; k < m; k++) {
        if (links[k].behind_id != links[i].behind_id)
            continue;
        if (k < i)
            return 0; /* counted there */
        share += (double)links[k].samples / all;
    }
    return share;
}

bool ft_entropy_of(const struct ft_entropy_link *links, size_t m, struct ft_entropy *out)
{
    double all = 0, squares = 0, seen = 0;
    struct ft_entropy e = {0};

    for (size_t i = 0; i < m; i++) {
        all += (double)links[i].samples;
        seen += links[i].samples > 0;
        e.paths += links[i].behind.paths;
    }
    if (all == 0 || all < SAMPLES_A_LINK * seen)
        return false;
    for (size_t i = 0; i < m; i++) {
        double share = (double)links[i].samples / all, nats, same;

        if (links[i].samples == 0)
            continue;
        nats = links[i].behind.nats - log(share);
        same = share_of_same(links, m, i, all);
        e.nats += share * nats;
        squares += share * nats * nats;
        e.variance += same * same * links[i].behind.variance;
    }
    /* The second part is all that is left where the links are even. */
    e.variance += fmax(0, squares - e.nats * e.nats) / all + (seen - 1) / (2 * all * all);
    e.nats += (seen - 1) / (2 * all);
    *out = e;
    return true;
}

void ft_effective(const struct ft_entropy *e, struct ft_effective *out)
{
    double error = Z * sqrt(e->variance);

    out->paths = fmin(exp(e->nats), e->paths);
    out->lo = fmin(fmax(1, exp(e->nats - error)), out->paths);
    out->hi = fmin(exp(e->nats + error), e->paths);
}
