// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/diagnosis/partial.h"

#include <inttypes.h>
#include <stdio.h>

#define NAMED_MAX 4

/* "3, 7 and more". How many ranks a communicator has its processes say, who may lie: no more
 * numbers are looked up than ranks are known and named. */
static uint32_t name_missing(const struct ft_recent *recent, const Fabrictrace__Diagnosis *m,
                             char *text, size_t bytes)
{
    uint32_t named = 0, missing = m->ranks - m->ranks_known;
    size_t n = 0;

    text[0] = '\0';
    for (uint32_t rank = 0; rank < m->ranks && named < NAMED_MAX && n < bytes; rank++) {
        const struct ft_recent_rank *r = ft_recent_find(recent, m->communicator, rank);

        if (r && r->process)
            continue;
        n += (size_t)snprintf(text + n, bytes - n, "%s%" PRIu32, named ? ", " : "", rank);
        named++;
    }
    if (named < missing && n < bytes)
        snprintf(text + n, bytes - n, " and more");
    return named;
}

void ft_partial_report(const struct ft_recent *recent, struct ft_diagnosis_report *r,
                       struct ft_partial *partial)
{
    Fabrictrace__Diagnosis *m = &r->message;
    char ranks[64];

    if (!m->has_ranks || !m->communicator)
        return;
    if (m->confidence > FT_PARTIAL_CONFIDENCE)
        m->confidence = FT_PARTIAL_CONFIDENCE;
    if (name_missing(recent, m, ranks, sizeof(ranks)))
        snprintf(partial->doubt, sizeof(partial->doubt),
                 "%" PRIu32 " of %" PRIu32 " ranks of communicator %s are known: nobody reported "
                 "rank %s, which the others may wait for",
                 m->ranks_known, m->ranks, m->communicator, ranks);
    else
        snprintf(partial->doubt, sizeof(partial->doubt),
                 "%" PRIu32 " of %" PRIu32 " ranks of communicator %s are known in this job: the "
                 "others are reported with another name of their job, or with none",
                 m->ranks_known, m->ranks, m->communicator);
    if (m->n_evidence_against == FT_REPORT_TEXTS)
        m->n_evidence_against--;
    r->doubts[m->n_evidence_against++] = partial->doubt;
}
