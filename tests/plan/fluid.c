// SPDX-License-Identifier: Apache-2.0
/* The fluid model for check_fluid.py: cases in, results out, or a large one for its time.
 *
 * stdin: LINKS FLOWS ROUNDS, the capacities, then for each flow DEMAND BITS ROUND N LINK..., then
 * for each round START AFTER (-1: none). stdout: a rate a line, or with ROUNDS > 0 the end of each
 * flow and then of each round. `fluid large FLOWS LINKS`: seconds of processor time. */
#include "config.h"

#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

#include "lib/sim/fluid.h"

static void must(int fine)
{
    if (!fine) {
        fprintf(stderr, "fluid: a case that is not one\n");
        exit(2);
    }
}

static int large(uint32_t flows, uint32_t links)
{
    double *capacity = calloc(links, sizeof(*capacity)), *rate = calloc(flows, sizeof(*rate));
    uint32_t *first = calloc((size_t)flows + 1, sizeof(*first));
    uint32_t *link = calloc((size_t)flows * 4, sizeof(*link)), state = 1;
    struct ft_fluid f = {links, capacity, flows, first, link, NULL, NULL, NULL};
    clock_t start;
    double worst = 0;

    must(capacity && rate && first && link);
    for (uint32_t i = 0; i < links; i++)
        capacity[i] = 4e11;
    for (uint32_t i = 0; i < 4 * flows; i++) {
        state = state * 1664525u + 1013904223u;
        link[i] = (uint32_t)((uint64_t)state * links >> 32);
    }
    for (uint32_t i = 0; i <= flows; i++)
        first[i] = 4 * i;
    start = clock();
    must(ft_fluid_rates(&f, NULL, 0, rate) == 0);
    printf("%.3f\n", (double)(clock() - start) / CLOCKS_PER_SEC);
    memset(capacity, 0, links * sizeof(*capacity));
    for (uint32_t i = 0; i < 4 * flows; i++)
        capacity[link[i]] += rate[i / 4];
    for (uint32_t i = 0; i < links; i++)
        worst = capacity[i] > worst ? capacity[i] : worst;
    must(worst <= 4e11 * (1 + 1e-9) && worst >= 4e11 * (1 - 1e-9));
    free(capacity);
    free(rate);
    free(first);
    free(link);
    return 0;
}

int main(int argc, char **argv)
{
    static double capacity[1000], demand[10000], bits[10000], out[10000], ends[1000];
    static uint32_t first[10001], link[100000], round_of[10000];
    static struct ft_fluid_round rounds[1000];
    uint32_t rounds_count;
    struct ft_fluid f = {0, capacity, 0, first, link, demand, NULL, NULL};

    if (argc == 4 && strcmp(argv[1], "large") == 0)
        return large((uint32_t)atoi(argv[2]), (uint32_t)atoi(argv[3]));
    must(scanf("%u %u %u", &f.links, &f.flows, &rounds_count) == 3 && f.links < 1000 &&
         f.flows < 10000 && rounds_count < 1000);
    for (uint32_t i = 0; i < f.links; i++)
        must(scanf("%lf", &capacity[i]) == 1);
    for (uint32_t i = 0; i < f.flows; i++) {
        uint32_t n;

        must(scanf("%lf %lf %u %u", &demand[i], &bits[i], &round_of[i], &n) == 4 && n < 10);
        first[i + 1] = first[i] + n;
        for (uint32_t k = 0; k < n; k++)
            must(scanf("%u", &link[first[i] + k]) == 1 && link[first[i] + k] < f.links);
    }
    for (uint32_t i = 0; i < rounds_count; i++) {
        int after;

        must(scanf("%lf %d", &rounds[i].start_s, &after) == 2);
        rounds[i].after = after < 0 ? FT_FLUID_NEVER : (uint32_t)after;
    }
    if (rounds_count)
        must(ft_fluid_play(&f, bits, round_of, rounds, rounds_count, out, ends) == 0);
    else
        must(ft_fluid_rates(&f, NULL, 0, out) == 0);
    for (uint32_t i = 0; i < f.flows; i++)
        printf("%.17g\n", out[i]);
    for (uint32_t i = 0; i < rounds_count; i++)
        printf("%.17g\n", ends[i]);
    return 0;
}
