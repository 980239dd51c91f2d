// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/fabric/evenness.h"

#include <errno.h>
#include <math.h>
#include <stdlib.h>

#include "lib/fabric/weights.h"

/* -p ln p of k of n. */
static double term(double k, double n)
{
    return k > 0 ? -k / n * log(k / n) : 0;
}

/* Mean entropy of n flows that each take any of m links: each link has Binomial(n, 1 / m). */
static double mean_entropy(double n, double m)
{
    double sum = 0;

    for (double k = 1; m > 1 && k < n; k++)
        sum += m * term(k, n) *
               exp(lgamma(n + 1) - lgamma(k + 1) - lgamma(n - k + 1) - k * log(m) +
                   (n - k) * log1p(-1 / m));
    return sum;
}

/* by: how many flows came in by each port, and by which link they went on; the last of a row are
 * all. share NULL: of each link alike. */
static double mean_of(const uint32_t *by, uint32_t entries, size_t count, size_t m,
                      const double *share)
{
    double mean = 0;

    for (uint32_t e = 0; e <= entries; e++) {
        uint32_t n = by[e * (m + 1) + m];

        mean += n / (double)count *
                (share ? ft_weighted_entropy(n, share, m) : mean_entropy(n, (double)m));
    }
    return mean;
}

int ft_evenness(const struct ft_hash_flow *flows, size_t count, uint32_t entries,
                const struct ft_link_set *links, struct ft_evenness *out)
{
    size_t m = links->m;
    uint32_t *by = calloc((entries + (size_t)1) * (m + 1), sizeof(*by));
    double *share = malloc(m * sizeof(*share));
    double entropy = 0, expected;
    int rc = -ENOMEM;

    if (!by || !share)
        goto out;
    for (size_t i = 0; i < count; i++) {
        uint32_t entry = ft_hash_entry(&flows[i].in);
        uint32_t *of = &by[(entry < entries ? entry : entries) * (m + 1)];

        of[flows[i].member]++;
        of[m]++;
    }
    for (uint32_t e = 0; e <= entries; e++) {
        const uint32_t *of = &by[e * (m + 1)];
        double n = of[m];

        for (uint32_t i = 0; i < m && n > 0; i++)
            entropy += n / (double)count * term(of[i], n);
    }
    expected = mean_of(by, entries, count, m, NULL);
    for (int weighed = 0; weighed < FT_WEIGHINGS; weighed++)
        if (ft_weigh(links, (enum ft_weighing)weighed, share))
            expected = fmin(expected, mean_of(by, entries, count, m, share));
    *out = (struct ft_evenness){exp(entropy), exp(expected)};
    rc = 0;
out:
    free(by);
    free(share);
    return rc;
}
