// SPDX-License-Identifier: Apache-2.0
#ifndef FT_DAEMON_API_API_H
#define FT_DAEMON_API_API_H
/*
 * The daemon's HTTP API: what the command-line tool and dashboards read. All answers are one JSON
 * object; records in it are those of fabrictrace.proto, "schema" first.
 *
 *   GET /api/v1/paths[?flow=F][&state=S][&host=H][&limit=N]
 *   GET /api/v1/links[?group=G]
 *   GET /api/v1/imbalance
 *   GET /api/v1/events[?kind=K]          standing ones
 *   GET /api/v1/loss                     this daemon's accounting, and the last of each source
 *       {"fabric":"lab","window_start_ms":1,"window_end_ms":2,"total":64,"records":[...]}
 *
 *       window_* are absent before the first window has closed; total counts what matched, also
 *       over limit, where paths are the fastest; H is a host's name or address. Paths are the
 *       present state; links and imbalance the last closed window.
 *
 *   GET /api/v1/explain?flow=F           the same object for one flow
 *
 *       "records" holds its path, and beside it "reverse" (the path records of the other
 *       direction), "links" (the link records of its hops) and "collisions" (the standing events
 *       on them); 404 when the flow is not known.
 *
 *   GET /api/v1/topology
 *       {"fabric":"lab","switches":[{"name","tier","addresses":[],"ports":[{"name","ifindex",
 *       "speed_bps","peer","peer_port","host","group","source":"static"|"lldp"|"learnt"}],
 *       "lags":[{"name","ifindex","members":[]}]}],
 *       "hosts":[{"name","nics":[{"addresses":[],"rail","attach":[{"switch","port"}]}]}]}
 *
 *   GET /api/v1/matrix[?comm=ID][&op=OP]
 *       "records" holds one object for each communicator: {"comm_id","name","ranks","members":[
 *       {"rank","host","pid","gpu","job","closed"}],"edges":[{"src","dst","op","sent_bytes",
 *       "received_bytes","sent_messages","received_messages","expected_bytes","step_median_ns",
 *       "step_max_ns"}]}; sums since the daemon started.
 *   GET /api/v1/ranks[?comm=ID]          each rank, its last operation, and what is slowest there
 *       "records" holds one object for each rank: {"comm_id","rank","ranks","host","pid","gpu",
 *       "job","closed","op","time_ms","slowest_peer","slowest_step_median_ns",
 *       "others_step_median_ns","slowest_switch","slowest_port","slowest_port_flows"}; slowest_*
 *       as in the rank's last fabrictrace.collective.v1.
 *   GET /api/v1/qps[?host=H][&state=S][&limit=N]   connected queue pairs that agents list
 *       "records" holds one object for each: {"host","device","port","local","remote","driver",
 *       "state","by","flow","tuple_source","peer_host","peer_device","comm_id","pid","comm","job",
 *       "since_ms"}; states and by as in daemon/pairing/pairing.h, flow what it sends by, where the
 * daemon found that. GET /api/v1/doctor                   what is not seen, and what to do
 *       "records" as above: [{"switch","port","severity":"warning"|"info","text","advice",
 *       "since_ms"}], switch and port absent where the finding is of the complete fabric, host and
 * device instead where it is of a host GET /metrics                         Prometheus text GET
 * /healthz                         "ok"
 *
 * F is a flow as a person writes it (lib/base/tuple.h). A wrong parameter is 400 with a sentence.
 */

struct ft_api;
struct ft_http;
struct ft_view;

/* Adds the routes to http. The view is borrowed. NULL without memory. */
struct ft_api *ft_api_new(struct ft_http *http, const struct ft_view *view);
void ft_api_free(struct ft_api *api);

#endif
