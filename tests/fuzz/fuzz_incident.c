// SPDX-License-Identifier: Apache-2.0
/* The file of an incident. The first byte says what the rest is: a file, its head, or a section of
 * what came in, which drives a small pipeline. */
#include "config.h"

#include "daemon/incident/head.h"
#include "daemon/incident/player.h"
#include "lib/files/topology_file.h"
#include "lib/io/disk/incident.h"
#include "tests/fuzz/fuzz.h"

static void read_file(const uint8_t *bytes, size_t len)
{
    FILE *in = len ? fmemopen((void *)(uintptr_t)bytes, len, "r") : NULL;
    struct ft_incident *incident = in ? ft_incident_open(in) : NULL;
    struct ft_incident_read section;
    uint64_t before = 0;
    int rc = 0;

    while (incident && (rc = ft_incident_next(incident, &section)) > 0) {
        ft_fuzz_assert(section.offset > before && section.offset < len, "sections go on");
        before = section.offset;
    }
    if (incident)
        ft_fuzz_assert((rc < 0) == (*ft_incident_problem(incident) != 0), "what is wrong is said");
    ft_incident_close(incident);
    if (in)
        fclose(in);
}

static void read_head(const uint8_t *bytes, size_t len)
{
    struct ft_diag *diag = ft_diag_new();
    struct ft_settings settings = {.window_ns = 0};
    struct ft_head head;

    if (diag && ft_head_read(bytes, len, &head, &settings, diag) == 0) {
        ft_fuzz_assert(settings.window_ns > settings.grace_ns && settings.flows_max > 0,
                       "settings are within their ranges");
        ft_head_clear(&head);
    }
    ft_diag_free(diag);
}

static void ignore(void *arg, const Fabrictrace__Record *record)
{
    (void)arg;
    (void)record;
}

static void play(const uint8_t *bytes, size_t len)
{
    const struct ft_emitter emitter = {ignore, NULL};
    const struct ft_pipeline_config config = {
        .join = {.flows_max = 64,
                 .beside_max = 65536,
                 .window_ms = 10000,
                 .evidence_ms = 30000,
                 .idle_ms = 60000,
                 .policy = {.hold_down_ms = 2000, .tolerance_ms = 2000}},
        .window = {.loads = {.window_ms = 10000, .elephant_share = 0.1, .elephants_max = 64},
                   .refresh_ms = 60000,
                   .victims_max = 4,
                   .keep = emitter},
        .discovery = {.switches_max = 16, .addresses_max = 16, .ports_max = 64},
        .ends_max = 16,
        .counters_max = 16,
        .grace_ms = 3000,
        .events_max = 16,
        .sources_max = 16,
        .source_id = "fuzz"};
    struct ft_diag *diag = ft_diag_new();
    struct ft_topology *t = diag ? ft_topology_file_none("fuzz", diag) : NULL;
    struct ft_pipeline *p = t ? ft_pipeline_new(&config, t, &emitter) : NULL;
    struct ft_player *player = p ? ft_player_new(p, "fuzz") : NULL;
    size_t offset;

    if (player) {
        int rc = ft_player_section(player, bytes, len, &offset);

        ft_fuzz_assert(offset <= len && (rc != 0 || len >= 8), "an offset lies within the section");
    }
    ft_player_free(player);
    ft_pipeline_free(p);
    if (!p)
        ft_topology_free(t);
    ft_diag_free(diag);
}

int LLVMFuzzerTestOneInput(const uint8_t *bytes, size_t len)
{
    if (len == 0)
        return 0;
    switch (bytes[0]) {
    case 'f':
        read_file(bytes + 1, len - 1);
        break;
    case 'h':
        read_head(bytes + 1, len - 1);
        break;
    case 'r':
        play(bytes + 1, len - 1);
        break;
    }
    return 0;
}
