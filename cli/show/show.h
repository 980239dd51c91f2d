// SPDX-License-Identifier: Apache-2.0
#ifndef FT_CLI_SHOW_SHOW_H
#define FT_CLI_SHOW_SHOW_H
/*
 * One function a command: a daemon's answer (daemon/api/api.h) as text for a person. Pure but for
 * writing to the screen. All return 0 or -ENOMEM; members that an answer does not have are left
 * blank.
 */
#include "cli/output/answer.h"
#include "cli/output/grid.h"

int ft_show_paths(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_links(const struct ft_screen *screen, const struct ft_value *root);
/* The windows of one link, group or flow, a row each. */
int ft_show_history(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_imbalance(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_collisions(const struct ft_screen *screen, const struct ft_value *root);
/* One of them: a line with its link, and its victims below, at most so many. */
int ft_show_collision(const struct ft_screen *screen, const struct ft_value *event, size_t victims);
/* The time that events are of. */
struct ft_since {
    uint64_t from_ms, to_ms;       /* to_ms 0: now */
    uint64_t kept_ms;              /* nothing is known of before; 0: that is not known */
    const struct ft_value *active; /* the events that are active now */
};
int ft_show_events(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_explain(const struct ft_screen *screen, const struct ft_value *root);
/* What ft_show_explain() shows of a link, group or job. */
int ft_show_explain_named(const struct ft_screen *screen, const struct ft_value *root);
/* And of a host or a switch (cli/fetch/node.h). */
int ft_show_explain_node(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_doctor(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_diagnoses(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_hash(const struct ft_screen *screen, const struct ft_value *root);
/* An agent's record of probes; topology: the daemon's, for names of switches, or NULL. */
int ft_show_probe(const struct ft_screen *screen, const struct ft_value *record,
                  const struct ft_value *topology);
int ft_show_rhythm(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_spread(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_probes(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_plans(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_moves(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_qps(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_ranks(const struct ft_screen *screen, const struct ft_value *root);
int ft_show_topology(const struct ft_screen *screen, const struct ft_value *root);

/* --export: the topology as a file (fabrictrace-topology(5)). */
int ft_export_topology(FILE *out, const struct ft_value *root);

/* --json: each of the answer's records on a line of its own; the complete answer when `complete`.
 */
int ft_show_json(FILE *out, const struct ft_value *root, bool complete);
int ft_show_json_line(FILE *out, const struct ft_value *value);

#endif
