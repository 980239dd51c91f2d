// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_PIPELINE_STAGES_H
#define FT_DAEMON_PIPELINE_STAGES_H
/*
 * The stages of the pipeline, in the order of the pipeline. The pipeline owns and drives them;
 * whoever looks at the running daemon includes the header of the stage that it reads, and takes it
 * from here. Thread: the loop's.
 */
struct ft_stages {
    struct ft_join *join;
    struct ft_counters *counters; /* NULL: not used */
    struct ft_ranks *ranks;
    struct ft_pair_links *pairs;
    struct ft_slowest *slowest;
    struct ft_events *events;
    struct ft_pairing *pairing;     /* NULL: not used */
    struct ft_pairing *left;        /* is being freed; NULL: none */
    struct ft_discovery *discovery; /* NULL: the file alone counts */
    struct ft_wiring *wiring;       /* NULL: cables are not looked at */
    struct ft_agents *agents;
    struct ft_clocks *clocks;
    struct ft_congestion *congestion;
    struct ft_detours *detours;
    struct ft_spread *spread;
    struct ft_rhythms *rhythms;
    struct ft_follower *follower;
    struct ft_hints *hints;
    struct ft_probed *probed;
    struct ft_prober *prober;       /* NULL: agents are not asked */
    struct ft_hashes *hashes;       /* NULL: switches' hashes are not learnt */
    struct ft_second *second;       /* NULL, as the diagnoser */
    struct ft_inference *inference; /* NULL: paths are not inferred from counters */
    struct ft_diagnoser *diagnoser; /* NULL: jobs are not diagnosed */
    struct ft_exporters *exporters; /* NULL without counters */
    struct ft_losses *losses;
    struct ft_processors *processors;
    struct ft_unrated *unrated;
    struct ft_window *window;
};

#endif
