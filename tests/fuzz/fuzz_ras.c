// SPDX-License-Identifier: Apache-2.0
/* An answer of NCCL's RAS: what is taken becomes records whose ranks add up. */
#include "config.h"

#include <stdlib.h>
#include <string.h>

#include "agent/states/states_record.h"
#include "lib/diagnosis/ras.h"
#include "tests/fuzz/fuzz.h"

static struct ft_states_record record;

static void check(const struct ft_ras *ras, const struct ft_ras_comm *comm)
{
    const Fabrictrace__RankStates *m = &record.states;

    ft_fuzz_assert(comm->count <= comm->ranks && comm->first + comm->count <= ras->rank_count,
                   "ranks are those of the communicator");
    for (size_t i = 0; i < comm->count; i++)
        ft_fuzz_assert(ras->ranks[comm->first + i].rank < comm->ranks, "and have its numbers");
    ft_states_record_ras(&record, ras, comm, "gpu01", 1);
    ft_fuzz_assert(m->answered <= m->ranks && m->n_states <= FT_STATES_MAX &&
                       m->n_states + m->states_dropped <= comm->count,
                   "no rank is told twice");
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    char error[FT_RAS_ERROR_BYTES];
    char *copy = malloc(len ? len : 1);
    struct ft_ras ras;
    int rc;

    if (!copy)
        return 0;
    if (len)
        memcpy(copy, bytes, len);
    rc = ft_ras_read(&ras, copy, len, 1000, NULL, error);
    for (size_t c = 0; rc == 0 && c < ras.comm_count; c++)
        check(&ras, &ras.comms[c]);
    if (rc == 0)
        ft_ras_free(&ras);
    free(copy);
    return 0;
}
