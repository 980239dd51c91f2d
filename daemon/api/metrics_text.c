// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/metrics_text.h"

#include <inttypes.h>

#include "daemon/api/store.h"
#include "daemon/api/view.h"
#include "daemon/health/detours.h"
#include "daemon/jobs/slowest.h"
#include "daemon/pairing/pairing.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/events.h"
#include "daemon/publish/publish.h"
#include "lib/io/http.h"
#include "lib/io/loop.h"
#include "lib/io/transport.h"
#include "proto/json.h"

#define PREFIX "fabrictraced_"

static void head(struct ft_writer *w, const char *name, const char *type, const char *help)
{
    ft_write_fmt(w, "# HELP " PREFIX "%s %s\n# TYPE " PREFIX "%s %s\n", name, help, name, type);
}

static void plain(struct ft_writer *w, const char *name, const char *type, const char *help,
                  uint64_t value)
{
    head(w, name, type, help);
    ft_write_fmt(w, PREFIX "%s %" PRIu64 "\n", name, value);
}

static void write_records(struct ft_writer *w, const struct ft_pipeline_stats *s)
{
    head(w, "records_total", "counter", "Records that came in, by what became of them.");
    for (int f = 0; f < FT_RECORD_FATES; f++)
        ft_write_fmt(w, PREFIX "records_total{fate=\"%s\"} %" PRIu64 "\n",
                     ft_record_fate_name((enum ft_record_fate)f), s->fates[f]);
    plain(w, "records_implausible_total", "counter",
          "Records of more bytes than a flow can carry: cut to what it could.", s->implausible);
    head(w, "first_path_seconds", "summary",
         "From a flow's first sample to its first resolved path.");
    ft_write_fmt(w, PREFIX "first_path_seconds_sum %.3f\n", (double)s->first_path_sum_ms / 1000);
    ft_write_fmt(w, PREFIX "first_path_seconds_count %" PRIu64 "\n", s->first_paths);
    head(w, "first_path_max_seconds", "gauge", "The longest of these since the start.");
    ft_write_fmt(w, PREFIX "first_path_max_seconds %.3f\n", (double)s->first_path_max_ms / 1000);
}

static void write_join(struct ft_writer *w, const struct ft_view *view)
{
    const struct ft_pipeline_stats *pipeline = ft_pipeline_stats(view->pipeline);
    const struct ft_join *join = view->stages->join;
    const struct ft_join_stats *s = ft_join_stats(join);

    plain(w, "flows", "gauge", "Flows known.", ft_join_flows(join));
    plain(w, "flow_table_bytes", "gauge", "Memory of the flow table.", ft_join_bytes(join));
    plain(w, "unknown_switch_observations_total", "counter",
          "Observations of switches that the topology does not know.", s->unknown_switch);
    plain(w, "unknown_port_observations_total", "counter",
          "Ports in observations that the topology does not know.", s->unknown_port);
    plain(w, "windows_total", "counter", "Windows closed.",
          ft_window_stats(view->stages->window)->closed);
    plain(w, "windows_skipped_total", "counter",
          "Windows that the clock jumped over: nobody was there in them.",
          pipeline->windows_skipped);
    plain(w, "clock_set_back_total", "counter",
          "Times that the clock was set back by more than a window, and flows were learnt anew.",
          pipeline->restarts);
    plain(w, "path_records_total", "counter", "Path records published.",
          ft_window_stats(view->stages->window)->paths);
    plain(w, "standing_events", "gauge", "Events that stand now.",
          ft_events_count(view->stages->events));
    plain(w, "detours_refused_total", "counter", "Sightings of detours without room to keep them.",
          ft_detours_refused(view->stages->detours));
    plain(w, "events_refused_total", "counter",
          "Events, once a window, that found no room beside those that stand.",
          ft_events_refused(view->stages->events));
    plain(w, "rank_pairs_refused_total", "counter",
          "Pairs of ranks, once a window, that found no room for the link under them.",
          ft_pair_links_refused(view->stages->pairs));
    plain(w, "operations_forgotten_total", "counter",
          "Times that there were too many kinds of collectives to compare, and all were forgotten.",
          ft_slowest_forgotten(view->stages->slowest));
}

static void write_pairing(struct ft_writer *w, const struct ft_pairing *pairing)
{
    uint64_t states[FT_PAIR_STATES] = {0};
    struct ft_pairing_stats s;
    struct ft_pairing_end end;
    uint32_t index = 0;

    if (!pairing)
        return;
    while (ft_pairing_next(pairing, &index, &end))
        states[end.state]++;
    head(w, "queue_pairs", "gauge", "Connected queue pairs, by whether their other end is known.");
    for (int i = 0; i < FT_PAIR_STATES; i++)
        ft_write_fmt(w, PREFIX "queue_pairs{state=\"%s\"} %" PRIu64 "\n",
                     ft_pair_state_name((enum ft_pair_state)i), states[i]);
    ft_pairing_stats(pairing, &s);
    plain(w, "queue_pairs_withdrawn_total", "counter",
          "Flows of queue pairs that were reported and later withdrawn.", s.withdrawn);
    plain(w, "pairing_bytes", "gauge", "Memory of the tables of queue pairs.",
          ft_pairing_bytes(pairing));
}

static void write_sink(struct ft_writer *w, const struct ft_publisher *publisher, size_t i,
                       const char *name, const char *fate, uint64_t value)
{
    ft_write_fmt(w, PREFIX "%s{sink=", name);
    ft_json_write_label(w, ft_publisher_spec(publisher, i));
    if (fate)
        ft_write_fmt(w, ",fate=\"%s\"", fate);
    ft_write_fmt(w, "} %" PRIu64 "\n", value);
}

static void write_sinks(struct ft_writer *w, const struct ft_publisher *publisher)
{
    struct ft_sink_stats s;

    head(w, "sink_records_total", "counter", "Records handed to a sink, by what became of them.");
    for (size_t i = 0; i < ft_publisher_sinks(publisher); i++) {
        ft_publisher_sink(publisher, i, &s);
        write_sink(w, publisher, i, "sink_records_total", "processed", s.processed);
        write_sink(w, publisher, i, "sink_records_total", "failed", s.failed);
        write_sink(w, publisher, i, "sink_records_total", "refused", s.refused);
    }
    head(w, "sink_pending", "gauge", "Records that wait in a sink.");
    for (size_t i = 0; i < ft_publisher_sinks(publisher); i++) {
        ft_publisher_sink(publisher, i, &s);
        write_sink(w, publisher, i, "sink_pending", NULL, s.pending);
    }
}

static void write_transport(struct ft_writer *w, const struct ft_receiver *receiver)
{
    struct ft_receiver_stats s;

    if (!receiver)
        return;
    ft_receiver_stats(receiver, &s);
    head(w, "payloads_total", "counter", "Payloads of agents and pollers.");
    ft_write_fmt(w, PREFIX "payloads_total{fate=\"applied\"} %" PRIu64 "\n", s.applied);
    ft_write_fmt(w, PREFIX "payloads_total{fate=\"duplicate\"} %" PRIu64 "\n", s.duplicates);
    ft_write_fmt(w, PREFIX "payloads_total{fate=\"lost_with_sender\"} %" PRIu64 "\n", s.lost);
    ft_write_fmt(w, PREFIX "payloads_total{fate=\"refused\"} %" PRIu64 "\n", s.refused);
    plain(w, "peers", "gauge", "Agents and pollers connected.", s.connected);
    plain(w, "connections_refused_total", "counter",
          "Connections that were turned away: too many, or no memory.", s.connections_refused);
    plain(w, "connections_crowded_out_total", "counter",
          "Connections cut off within a frame, as all frames together took too much memory.",
          s.crowded_out);
}

void ft_metrics_text(const struct ft_view *view, struct ft_writer *w)
{
    head(w, "build_info", "gauge", "The version that runs.");
    ft_write_fmt(w, PREFIX "build_info{version=\"%s\"} 1\n", PACKAGE_VERSION);
    write_records(w, ft_pipeline_stats(view->pipeline));
    write_join(w, view);
    write_pairing(w, view->stages->pairing);
    write_sinks(w, view->publisher);
    write_transport(w, view->receiver);
    if (view->loop)
        ft_loop_metrics(view->loop, PREFIX, w);
    if (view->http)
        ft_http_metrics(view->http, PREFIX, w);
    ft_store_write_figures(view->store, PREFIX, w);
}
