// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <inttypes.h>
#include <stdlib.h>
#include <string.h>
#include <sys/random.h>
#include <sysexits.h>

#include "daemon/api/sources.h"
#include "daemon/api/window_figures.h"
#include "daemon/group/reader.h"
#include "daemon/history/history.h"
#include "daemon/incident/recorder.h"
#include "daemon/pipeline/configure.h"
#include "daemon/pipeline/identity.h"
#include "daemon/pipeline/pipeline.h"
#include "daemon/pipeline/stages.h"
#include "daemon/publish/kafka_settings.h"
#include "daemon/publish/publish.h"
#include "daemon/service/check.h"
#include "daemon/service/oracles.h"
#include "daemon/service/probers.h"
#include "daemon/service/service.h"
#include "lib/base/log.h"
#include "lib/io/transport/transport.h"

#define NS_PER_MS   1000000
#define ERROR_BYTES 512

static void on_kafka_error(void *arg, const char *key, const char *text)
{
    char location[FT_RUN_LOCATION_BYTES];
    struct ft_daemon *d = arg;
    uint64_t held;

    if (ft_log_limit_pass(&d->kafka_limit, ft_mono_now(), &held))
        ft_log_about(FT_LOG_WARNING,
                     &(struct ft_log_subject){FT_LOG_ID_SINK, FT_LOG_SINK_FIELD, "kafka"},
                     "kafka '%s': %s%s (%" PRIu64 " more held back)", d->settings->kafka_brokers,
                     ft_run_location(d->run, key, location), text, held);
}

static void on_registry_error(void *arg, const char *text)
{
    char line[FT_REGISTRY_ERROR_BYTES + 32];

    snprintf(line, sizeof(line), "schema registry: %s", text);
    on_kafka_error(arg, "kafka.registry.url", line);
}

static int open_registry(struct ft_daemon *d, struct ft_registry_opened *opened, char *error,
                         size_t error_bytes)
{
    int rc =
        d->settings->kafka_registry.url
            ? ft_registry_settings_open(&d->settings->kafka_registry, opened, error, error_bytes)
            : 0;

    opened->config.on_error = on_registry_error;
    opened->config.arg = d;
    return rc;
}

static int open_sink(struct ft_daemon *d, const char *spec)
{
    const struct ft_settings *s = d->settings;
    struct ft_kafka_settings settings = {.properties = NULL};
    struct ft_registry_opened registry = {.password = NULL};
    struct ft_sink_kafka_config kafka = {.topic_prefix = s->kafka_topic_prefix,
                                         .protobuf = s->kafka_format == FT_KAFKA_PROTOBUF,
                                         .producer = d->source_id};
    bool replay = ft_run_value(d->run, "replay"), sends = strcmp(spec, "kafka") == 0;
    char error[ERROR_BYTES];
    int rc = sends ? ft_kafka_settings_open(s, d->source_id, &settings, error, sizeof(error)) : 0;

    if (sends && rc == 0)
        rc = open_registry(d, &registry, error, sizeof(error));
    kafka.kafka = settings.config;
    if (registry.config.url)
        kafka.registry = &registry.config;
    if (replay)
        kafka.kafka.transactional_id = NULL; /* nothing of it was read from Kafka */
    kafka.kafka.on_error = on_kafka_error;
    kafka.kafka.arg = d;
    rc = rc ? rc
            : ft_publisher_open(d->view.publisher, spec, d->loop, &kafka, replay, error,
                                sizeof(error));
    ft_kafka_settings_close(&settings);
    ft_registry_settings_close(&registry);
    if (rc == 0)
        return EX_OK;
    ft_log(FT_LOG_ERROR, "sink '%s': %s", spec, error);
    return EX_CANTCREAT;
}

int ft_daemon_open_sinks(struct ft_daemon *d)
{
    const struct ft_strings *specs = ft_daemon_sinks(d->run);
    int rc;

    d->view.publisher = ft_publisher_new();
    rc = d->view.publisher ? ft_api_open_sinks(&d->view, d->settings, &d->live) : EX_OSERR;
    for (size_t i = 0; i < specs->count && rc == EX_OK; i++)
        rc = open_sink(d, specs->items[i]);
    return rc == EX_OK ? ft_daemon_open_exec(d) : rc;
}

static void on_record(void *arg, const Fabrictrace__Record *record)
{
    struct ft_daemon *d = arg;

    if (d->view.figures)
        ft_window_figures_take(d->view.figures, record);
    ft_publisher_record(d->view.publisher, record);
}

/* Takes the topology over. replay: records have the time. seed: of the join's tables. */
int ft_daemon_open_pipeline(struct ft_daemon *d, struct ft_topology *t, bool replay, uint64_t seed)
{
    struct ft_emitter emitter = {on_record, d};
    struct ft_pipeline_config config;

    ft_pipeline_configure(&config, d->settings, replay);
    config.join.seed = seed;
    config.source_id = d->source_id;
    config.window.keep = ft_history_emitter(d->view.history);
    if (ft_group_role_open(&d->role, d->settings, d->source_id, &config, &emitter) == 0)
        d->view.pipeline = ft_pipeline_new(&config, t, &emitter);
    if (!d->view.pipeline) {
        ft_topology_free(t);
        return EX_OSERR;
    }
    d->view.stages = ft_pipeline_stages(d->view.pipeline);
    ft_history_watch(d->view.history, d->view.stages->events);
    return EX_OK;
}

/* The stages around the pipeline: the transport (live), then each sink. */
void ft_daemon_add_stages(void *arg, struct ft_account *account)
{
    struct ft_daemon *d = arg;
    size_t before = account->stage_count;

    if (d->view.receiver)
        ft_arrivals_account(d->view.receiver, account);
    ft_group_reader_account(d->view.topics, account);
    ft_group_role_account(&d->role, account);
    ft_oracles_account(d->oracles, account);
    ft_probers_account(d->probers, account);
    ft_publisher_account(d->view.publisher, account);
    if (d->recorder && d->advancing)
        ft_recorder_stages(d->recorder, &account->stages[before], account->stage_count - before);
}

/* Keeps from here on what drives the pipeline. */
static int open_recorder(struct ft_daemon *d, uint64_t seed, int64_t now_ms)
{
    const struct ft_settings *s = d->settings;
    const struct ft_recorder_config config = {s->incident_ns / NS_PER_MS, s->incident_memory_max};

    d->started = *s;
    d->view.settings = &d->started;
    d->view.incident_head = &d->head;
    d->view.add_stages = ft_daemon_add_stages;
    d->view.add_stages_arg = d;
    if (s->incident_ns == 0)
        return EX_OK;
    d->head = (struct ft_head){.source_id = strdup(d->source_id),
                               .fabric = strdup(s->fabric),
                               .program = strdup(FT_HEAD_PROGRAM),
                               .seed = seed};
    if (!d->head.source_id || !d->head.fabric || !d->head.program)
        return EX_OSERR;
    d->view.recorder = d->recorder = ft_recorder_new(&config);
    if (!d->recorder)
        return EX_OSERR;
    d->arrivals_tap = (struct ft_arrivals_tap){ft_recorder_batch, ft_recorder_refused,
                                               ft_recorder_slice, d->recorder};
    d->arrivals.tap = &d->arrivals_tap;
    ft_recorder_begin(d->recorder, ft_daemon_topology(d->run), now_ms);
    ft_publisher_tap(d->view.publisher, ft_recorder_published, d->recorder);
    return EX_OK;
}

/* The stages of a live daemon. Takes the topology over. */
int ft_daemon_open_stages(struct ft_daemon *d, struct ft_topology *t)
{
    int64_t now_ms = ft_wall_now().ms;
    uint64_t seed;
    int rc = ft_api_open_figures(&d->view, d->settings);

    /* Nobody must be able to choose tuples that fall into one slot. */
    if (rc == EX_OK && getrandom(&seed, sizeof(seed), 0) != sizeof(seed))
        rc = EX_OSERR;
    if (rc) {
        ft_topology_free(t);
        return rc;
    }
    rc = ft_daemon_open_pipeline(d, t, false, seed);
    if (rc)
        return rc;
    ft_pipeline_on_account(d->view.pipeline, ft_daemon_add_stages, d);
    rc = open_recorder(d, seed, now_ms);
    ft_pipeline_begin(d->view.pipeline, now_ms);
    return rc;
}
