// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_HASHES_HASHES_H
#define FT_DAEMON_HASHES_HASHES_H
/*
 * How each switch chooses among its equal-cost links, learnt from the flows whose path is known
 * (lib/fabric/hash_model.h), and published as fabrictrace.hash.v1 whenever that changes.
 *
 * Links that lead to a destination by equally short paths are a set; each switch and set is learnt
 * by itself, so that a link that fails or returns does not mix two tables. Each flow counts once
 * for each path that it takes. It is predicted before it is learnt from: of flows that the model
 * did not know, the part that it predicted rightly is its accuracy. A hash that was changed shows
 * by that, and is learnt anew. Of flows that are not RoCEv2 nothing is learnt, and none is
 * predicted: their headers differ in what no model has. To a set that is new in another topology,
 * or there again, flows belong that were learnt before, too: of those alone that moved to a new
 * link it would seem that all take it.
 *
 * Of flows in tunnels the header around them is learnt from as well, in a set of its own: where it
 * is right and the flows' own header is not, the switch hashes that one. It predicts flows alone
 * whose outer header is known as it is now (ft_flow_outer()), with ends that were seen by that port
 * of entry. Where both are right, nothing shows which is hashed: flows that were seen in a tunnel
 * are predicted where both say the same.
 *
 * NICs that hang on several leaves choose as well, by the hash of their host's bond: those that
 * choose between the same leaves are a set, in which each NIC counts as a port of entry, so that
 * their hashes may differ by what is constant in a NIC.
 *
 * Links of flows without samples are predicted by models that were right so far. Such a prediction
 * is weaker than a sample (lib/fabric/hinted.h), and is made anew each time that it is asked for:
 * one of a model that is trusted no more is gone.
 *
 * A set whose switch, or one of whose links, has not been in the topology for a day is forgotten;
 * where the table is full it makes room for a new one at once.
 *
 * Capped: sets, flows kept of each, flows and sets looked at in a window. Pure. Thread: one.
 */
#include <stdbool.h>
#include <stddef.h>
#include <stdint.h>

#include "daemon/join/join.h"
#include "daemon/publish/emit.h"

/* Flows that are kept of a set; more only test what was learnt. */
#define FT_HASHES_FLOWS 512
/* How long a set is kept that is no longer in the topology: a link that is repaired returns. */
#define FT_HASHES_GONE_MS INT64_C(86400000)
/* Sets that are held against the topology in a window. */
#define FT_HASHES_LOOKS 256
/* Memory of a set at most. */
#define FT_HASHES_SET_BYTES (108 << 10)

struct ft_hashes;

/* NULL without memory. */
struct ft_hashes *ft_hashes_new(size_t sets_max, uint64_t seed);
void ft_hashes_free(struct ft_hashes *h);

/* At the close of a window: begins it, and ages sets; takes a flow that was seen in it, whose
 * learnt flag is set when it needs no second look. */
void ft_hashes_begin(struct ft_hashes *h, const struct ft_topology *t, int64_t now_ms);
void ft_hashes_flow(struct ft_hashes *h, const struct ft_join *join, struct ft_flow *flow,
                    int64_t window_start_ms);

/* After the flows: learns the next set that has enough new ones, and publishes what changed. False
 * when that was all. One set is up to some milliseconds of work. */
bool ft_hashes_step(struct ft_hashes *h, const char *fabric, int64_t now_ms,
                    const struct ft_emitter *emitter);

/* At the end of a replay: learns from whatever there is, and publishes every set. */
void ft_hashes_finish(struct ft_hashes *h, const char *fabric, int64_t now_ms,
                      const struct ft_emitter *emitter);

/* Emits the state of the next set, with its learnt function where that is asked for. index begins
 * at 0; false: that was all. */
bool ft_hashes_next(const struct ft_hashes *h, uint32_t *index, bool function, const char *fabric,
                    int64_t now_ms, const struct ft_emitter *emitter);

/* The links of a group that no flow like those seen takes, by the learnt choice of their switch:
 * each set that has such a link is linear, and proven on flows that it did not know. Returns how
 * many were written to ports, `max` at most. */
size_t ft_hashes_never(const struct ft_hashes *h, const struct ft_topology *t,
                       const struct ft_group *group, uint32_t *ports, size_t max);

/* By which port a flow leaves the switch that it enters by `in`, as learnt from other flows: only
 * where the model was right for 99 % of at least 64 flows that it did not know, of the newest 64 at
 * most one contradicted it, and 448 are as it says; and only by a link that no known flow was to
 * take and did not: of a resilient table some buckets of that link may be dealt to others. The hint
 * has that share as its accuracy. */
bool ft_hashes_predict(const struct ft_hashes *h, const struct ft_join *join,
                       const struct ft_flow *flow, uint32_t in, struct ft_hint *hint);

/* Flows whose link samples showed while a model was trusted, by whether it was the one that the
 * model predicts. */
void ft_hashes_checked(const struct ft_hashes *h, uint64_t *confirmed, uint64_t *contradicted);
/* Sets of links whose flows were predicted in this window. */
uint32_t ft_hashes_trusted(const struct ft_hashes *h);

/* Those of tunnels count by themselves. */
size_t ft_hashes_count(const struct ft_hashes *h);
uint64_t ft_hashes_refused(const struct ft_hashes *h);
/* Hops of flows of which nothing was learnt since the start, for the switch has more equal-cost
 * links than FT_HASH_MEMBERS_MAX. */
uint64_t ft_hashes_wide(const struct ft_hashes *h);
/* Forgotten since the start. */
uint64_t ft_hashes_removed(const struct ft_hashes *h);

#endif
