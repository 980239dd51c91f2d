// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "tests/unit/pairing_rig.h"

/* Each job has a name of its own, and there is no end of jobs. */
START_TEST(names_of_jobs_that_are_over_make_room)
{
    enum { ENDS = 1000 };
    static Fabrictrace__QueuePair ends[ENDS];
    static Fabrictrace__QueuePair *list[ENDS];
    static char jobs[ENDS][32];
    Fabrictrace__QueuePairs report = FABRICTRACE__QUEUE_PAIRS__INIT;
    struct rig rig;

    rig_init(&rig, 1, 2 * ENDS);
    report.host = (char *)"h0";
    report.device = (char *)"mlx5_0";
    report.has_port = report.has_time_ms = report.has_interval_ms = report.has_listed = true;
    report.port = 1;
    report.interval_ms = RIG_REFRESH_MS;
    report.listed = ENDS;
    report.n_queue_pairs = ENDS;
    report.queue_pairs = list;
    for (uint32_t second = 1; second <= 100; second++) {
        struct ft_pairing_end end;
        uint32_t index = 0;

        report.time_ms = second * 1000;
        for (uint32_t i = 0; i < ENDS; i++) {
            list[i] = &ends[i];
            fabrictrace__queue_pair__init(&ends[i]);
            ends[i].has_local = ends[i].has_remote = ends[i].has_pid = ends[i].has_since_ms = true;
            ends[i].local = i + 1;
            ends[i].remote = ENDS + i;
            ends[i].pid = second;
            ends[i].since_ms = second * 1000;
            ends[i].job = jobs[i];
            snprintf(jobs[i], sizeof(jobs[i]), "job %u of %u", i, second);
        }
        ck_assert_int_eq(ft_pairing_list(rig.pairing, &report, second * 1000), 0);
        ft_pairing_sweep(rig.pairing, second * 1000 + 999);
        for (uint32_t n = 0; n < ENDS; n++) {
            ck_assert(ft_pairing_next(rig.pairing, &index, &end));
            ck_assert_ptr_nonnull(end.job);
            ck_assert_str_eq(end.job, jobs[end.local - 1]);
        }
    }
    rig_free(&rig);
}
END_TEST

FT_UNIT_MAIN("pairing_names", names_of_jobs_that_are_over_make_room)
