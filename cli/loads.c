// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/loads.h"

#include <errno.h>
#include <stdlib.h>

#include "cli/output/units.h"
#include "lib/fabric/metrics.h"
#include "lib/fabric/verdict.h"

struct judgement {
    uint64_t flows;
    struct ft_figures figures;
    double expected;
    double chi_square;
    double p;
    enum ft_verdict verdict;
};

static int judge(const uint64_t *loads, size_t count, struct judgement *j)
{
    double *load = calloc(count, sizeof(*load));
    struct ft_chance *chance = ft_chance_new();
    int rc = load && chance ? 0 : -ENOMEM;

    if (rc == 0) {
        j->flows = 0;
        for (size_t i = 0; i < count; i++) {
            load[i] = (double)loads[i];
            j->flows += loads[i];
        }
        ft_figures_of(load, NULL, count, &j->figures);
        j->expected = ft_fim_expected(j->flows, count);
        j->chi_square = ft_chi_square(loads, count);
        j->p = ft_p_value(chance, loads, count);
        j->verdict = ft_verdict_of(j->p);
    }
    ft_chance_free(chance);
    free(load);
    return rc;
}

static void show_json(FILE *out, size_t count, const struct judgement *j)
{
    const struct ft_figures *f = &j->figures;

    fprintf(out,
            "{\"schema\":\"fabrictrace.imbalance.v1\",\"scope\":\"group\",\"name\":\"loads\","
            "\"links\":%zu,\"flows\":%llu",
            count, (unsigned long long)j->flows);
    if (f->some)
        fprintf(out,
                ",\"fim\":%.6g,\"fim_expected\":%.6g,\"p_value\":%.6g,\"max_over_mean\":%.6g,"
                "\"cov\":%.6g,\"jain\":%.6g,\"effective_links\":%.6g",
                f->fim, j->expected, j->p, f->max_over_mean, f->cov, f->jain, f->effective_links);
    fprintf(out, ",\"verdict\":\"%s\"}\n", f->some ? ft_verdict_name(j->verdict) : "idle");
}

static void show_text(FILE *out, size_t count, const struct judgement *j)
{
    static const char *const words[] = {
        [FT_VERDICT_EVEN] = "even: no worse than chance",
        [FT_VERDICT_UNEVEN] = "uneven, may be luck",
        [FT_VERDICT_FAULT] = "FAULT: not explained by chance",
    };
    const struct ft_figures *f = &j->figures;
    char p[FT_UNIT_BYTES];

    fprintf(out, "%llu flow%s over %zu link%s\n", (unsigned long long)j->flows,
            j->flows == 1 ? "" : "s", count, count == 1 ? "" : "s");
    if (!f->some) {
        fprintf(out, "VERDICT          idle: nothing to judge\n");
        return;
    }
    fprintf(out, "FIM              %.4f %%\n", f->fim);
    fprintf(out, "BY CHANCE        %.4f %%\n", j->expected);
    fprintf(out, "P                %s\n", ft_unit_p(p, j->p));
    fprintf(out, "CHI-SQUARE       %.4f\n", j->chi_square);
    fprintf(out, "MAX/MEAN         %.4f\n", f->max_over_mean);
    fprintf(out, "COV              %.4f\n", f->cov);
    fprintf(out, "JAIN             %.4f\n", f->jain);
    fprintf(out, "EFFECTIVE LINKS  %.4f\n", f->effective_links);
    fprintf(out, "VERDICT          %s\n", words[j->verdict]);
}

int ft_loads_show(FILE *out, bool json, const uint64_t *loads, size_t count)
{
    struct judgement j;
    int rc = judge(loads, count, &j);

    if (rc < 0)
        return rc;
    if (json)
        show_json(out, count, &j);
    else
        show_text(out, count, &j);
    return 0;
}
