// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "daemon/api/openapi.h"

#include <string.h>

#include "lib/base/writer.h"
#include "lib/io/disk/incident.h"
#include "lib/io/http/http.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/json.h"
#include "proto/record.h"
#include "proto/schema.h"

#define PARAMETERS_MAX 12
#define LISTS_MAX      8
#define PARTS          "#/components/schemas/"

struct parameter {
    const char *name;
    const char *type; /* of its schema */
    const char *text;
};

static const struct parameter parameters[] = {
    {"flow", "string", "A flow, as 10.0.1.1:49441-10.0.3.1."},
    {"state", "string", "A state; fabrictrace-api(7) lists them."},
    {"host", "string", "A host's name; of flows an address, too."},
    {"switch", "string", "A switch's name."},
    {"port", "string", "A port's name."},
    {"group", "string", "A group of equal-cost links, as leaf1/up."},
    {"job", "string", "A job's name."},
    {"comm", "string", "A communicator's id."},
    {"op", "string", "An operation, as AllReduce."},
    {"rank", "integer", "A rank."},
    {"kind", "string", "A kind: of events, or of what history is asked of."},
    {"key", "string", "The Kafka key of the records, as leaf1/Ethernet1."},
    {"of", "string", "What spreads: qp, connection or job."},
    {"scope", "string", "group, layer or fabric."},
    {"name", "string", "The name of a group, layer or fabric."},
    {"link", "string", "A link by the port that it leaves by, as leaf1/Ethernet1."},
    {"from_ms", "integer", "Not before this time; Unix milliseconds."},
    {"to_ms", "integer", "Before this time."},
    {"at_ms", "integer", "The window that holds this time, instead of the last one."},
    {"function", "string", "true: with the function that was learnt, to predict links by."},
    {"policy", "string", "Policies, with commas between; fabrictrace-api(7) lists them."},
    {"seeds", "integer", "Draws of a policy by chance, from 1 to 100; 20 where it is not given."},
    {"pairs", "integer", "Queue pairs of a flow, from 1 to 8."},
    {"spray", "integer", "Paths of a sprayed flow at most, from 1 to 64."},
    {"sort", "string", "rate (the standard) or flow."},
    {"limit", "integer", "At most so many records."},
    {"cursor", "string", "Where the page begins: next of the answer before."},
};

/* A list of records in an answer. */
struct list {
    const char *name;   /* NULL: that was the last */
    const char *schema; /* NULL: of any event, by schema events */
};

struct endpoint {
    const char *path;
    const char *summary;
    const char *parameters[PARAMETERS_MAX];
    struct list lists[LISTS_MAX]; /* none: it is an answer of its own kind */
    const char *own;              /* its schema then */
};

#define SCHEMA(name) "fabrictrace." name ".v1"
#define PAGE         "limit", "cursor"

static const struct endpoint endpoints[] = {
    {.path = "topology", .summary = "The fabric as it is known now.", .own = SCHEMA("topology")},
    {.path = "paths",
     .summary = "Flows as they are now, with their paths.",
     .parameters = {"flow", "state", "host", "switch", "port", "group", "job", "comm", "rank",
                    "sort", PAGE},
     .lists = {{"records", SCHEMA("path")}}},
    {.path = "flows",
     .summary = "The same as paths.",
     .parameters = {"flow", "state", "host", "switch", "port", "group", "job", "comm", "rank",
                    "sort", PAGE},
     .lists = {{"records", SCHEMA("path")}}},
    {.path = "links",
     .summary = "Directed links in a window.",
     .parameters = {"switch", "port", "group", "at_ms", PAGE},
     .lists = {{"records", SCHEMA("link")}}},
    {.path = "imbalance",
     .summary = "Imbalance of groups, layers and the fabric in a window.",
     .parameters = {"scope", "name", "state", "at_ms", PAGE},
     .lists = {{"records", SCHEMA("imbalance")}}},
    {.path = "elephants",
     .summary = "Elephants of a window, with their paths in it.",
     .parameters = {"job", "at_ms", PAGE},
     .lists = {{"records", SCHEMA("path")}}},
    {.path = "windows",
     .summary = "The windows that are kept.",
     .parameters = {"from_ms", "to_ms", PAGE},
     .lists = {{"records", SCHEMA("window")}}},
    {.path = "history",
     .summary = "The records of one key, of every window that is kept, oldest first; kind is link, "
                "imbalance, path or event.",
     .parameters = {"kind", "key", "from_ms", "to_ms", PAGE},
     .lists = {{"records", NULL}}},
    {.path = "events",
     .summary = "Active events; with at_ms those that were active then, with from_ms or to_ms "
                "those active in between.",
     .parameters = {"kind", "switch", "port", "host", "job", "rank", "from_ms", "to_ms", "at_ms",
                    PAGE},
     .lists = {{"records", SCHEMA("event")}}},
    {.path = "collisions",
     .summary = "Events of kind collision.",
     .parameters = {"switch", "port", "host", "job", "rank", "from_ms", "to_ms", "at_ms", PAGE},
     .lists = {{"records", SCHEMA("event")}}},
    {.path = "explain",
     .summary = "Everything about one flow, link, group or job; each has lists of its own.",
     .parameters = {"flow", "link", "group", "job"},
     .lists = {{"records", NULL},
               {"reverse", NULL},
               {"links", SCHEMA("link")},
               {"collisions", SCHEMA("event")},
               {"losses", SCHEMA("event")},
               {"events", SCHEMA("event")},
               {"slowest", SCHEMA("rank")},
               {"slowest_links", SCHEMA("link")}}},
    {.path = "collectives",
     .summary = "The last collective of each rank and operation.",
     .parameters = {"comm", "job", "host", "op", "rank", PAGE},
     .lists = {{"records", SCHEMA("collective")}}},
    {.path = "ranks",
     .summary = "Ranks, with what is slowest there.",
     .parameters = {"comm", "job", "host", "rank", PAGE},
     .lists = {{"records", SCHEMA("rank")}}},
    {.path = "matrix",
     .summary = "Communicators, and what their ranks sent each other.",
     .parameters = {"comm", "job", "op", PAGE},
     .lists = {{"records", SCHEMA("matrix")}}},
    {.path = "qps",
     .summary = "Connected queue pairs, and their other ends.",
     .parameters = {"host", "job", "state", PAGE},
     .lists = {{"records", SCHEMA("queue_pair")}}},
    {.path = "hosts",
     .summary = "How much each agent sees of its host.",
     .parameters = {"host", PAGE},
     .lists = {{"records", SCHEMA("host_status")}}},
    {.path = "hashes",
     .summary = "How each switch chooses among its equal-cost links.",
     .parameters = {"switch", "group", "function", PAGE},
     .lists = {{"records", SCHEMA("hash")}}},
    {.path = "diagnoses",
     .summary = "Jobs that hang or are slow now, by whom, and why that is concluded.",
     .parameters = {"job", "host", PAGE},
     .lists = {{"records", SCHEMA("diagnosis")}}},
    {.path = "rhythms",
     .summary = "Period and share of exchange of each job and what it sent, by its flows alone.",
     .parameters = {"job", PAGE},
     .lists = {{"records", SCHEMA("rhythm")}}},
    {.path = "spread",
     .summary = "How queue pairs, connections and jobs spread over equal-cost links.",
     .parameters = {"of", "host", "job", "group", PAGE},
     .lists = {{"records", SCHEMA("spread")}}},
    {.path = "plans",
     .summary = "Plans of source ports that agents gave ports of, and how far each has come.",
     .parameters = {"job", PAGE},
     .lists = {{"records", SCHEMA("plan")}}},
    {.path = "moves",
     .summary = "Queue pairs that got a port of a plan: the path before, the one that is "
                "predicted, and what samples say.",
     .parameters = {"job", PAGE},
     .lists = {{"records", SCHEMA("plan_port")}}},
    {.path = "whatif",
     .summary = "What other policies of routing would do to the traffic of the last window, with "
                "the model's error; one at a time.",
     .parameters = {"policy", "seeds", "pairs", "spray"},
     .lists = {{"records", SCHEMA("whatif")}}},
    {.path = "probes",
     .summary = "The last probe of each flow: who asked, what answered, what stays unknown.",
     .parameters = {"host", "flow", PAGE},
     .lists = {{"records", SCHEMA("probe")}}},
    {.path = "loss",
     .summary = "The accounting of this daemon, and the last one of each other program.",
     .parameters = {PAGE},
     .lists = {{"records", SCHEMA("loss")}}},
    {.path = "doctor",
     .summary = "What is not seen, and what to do.",
     .parameters = {PAGE},
     .lists = {{"records", SCHEMA("finding")}}},
};

#define COUNT(list) (sizeof(list) / sizeof((list)[0]))

/* Messages that are no published records. */
static const struct {
    const char *schema;
    const ProtobufCMessageDescriptor *descriptor;
} answers[] = {
    {SCHEMA("topology"), &fabrictrace__topology__descriptor},
    {SCHEMA("window"), &fabrictrace__window__descriptor},
    {SCHEMA("rank"), &fabrictrace__rank__descriptor},
    {SCHEMA("matrix"), &fabrictrace__matrix__descriptor},
    {SCHEMA("queue_pair"), &fabrictrace__queue_pair_end__descriptor},
    {SCHEMA("finding"), &fabrictrace__finding__descriptor},
    {SCHEMA("whatif"), &fabrictrace__what_if__descriptor},
};

static const ProtobufCMessageDescriptor *of_kind(Fabrictrace__Record__KindCase kind)
{
    return protobuf_c_message_descriptor_get_field(&fabrictrace__record__descriptor, (unsigned)kind)
        ->descriptor;
}

static void write_ref(struct ft_writer *w, const char *name)
{
    ft_write_fmt(w, "{\"$ref\":\"" PARTS "%s\"}", name);
}

/* schema NULL: a part of others. */
static void write_message(struct ft_writer *w, const ProtobufCMessageDescriptor *d,
                          const char *schema)
{
    ft_write_fmt(w, "\"%s\":", schema ? schema : d->short_name);
    ft_schema_write_object(w, d, schema, PARTS);
}

static void write_schemas(struct ft_writer *w)
{
    struct ft_schema_parts parts = {.count = 0};

    for (size_t i = 0; i < ft_record_kinds(); i++) {
        const ProtobufCMessageDescriptor *d = of_kind(ft_record_kind(i));

        ft_schema_collect(&parts, d);
        write_message(w, d, ft_record_schema(ft_record_kind(i)));
        ft_write_u8(w, ',');
    }
    for (size_t i = 0; i < COUNT(answers); i++) {
        ft_schema_collect(&parts, answers[i].descriptor);
        write_message(w, answers[i].descriptor, answers[i].schema);
        ft_write_u8(w, ',');
    }
    for (size_t i = 0; i < parts.count; i++) {
        write_message(w, parts.list[i], NULL);
        ft_write_u8(w, ',');
    }
    ft_write_str(w, "\"problem\":{\"type\":\"object\",\"additionalProperties\":false,"
                    "\"required\":[\"type\",\"title\",\"status\",\"detail\"],\"properties\":{"
                    "\"type\":{\"type\":\"string\"},\"title\":{\"type\":\"string\"},"
                    "\"status\":{\"type\":\"integer\"},\"detail\":{\"type\":\"string\"}}}");
}

static void write_list(struct ft_writer *w, const struct list *list)
{
    static const char *const some[] = {SCHEMA("link"), SCHEMA("imbalance"), SCHEMA("path"),
                                       SCHEMA("event"), SCHEMA("rank")};

    ft_write_fmt(w, ",\"%s\":{\"type\":\"array\",\"items\":", list->name);
    if (list->schema) {
        write_ref(w, list->schema);
    } else {
        ft_write_str(w, "{\"oneOf\":[");
        for (size_t i = 0; i < COUNT(some); i++) {
            if (i)
                ft_write_u8(w, ',');
            write_ref(w, some[i]);
        }
        ft_write_str(w, "]}");
    }
    ft_write_u8(w, '}');
}

static void write_answer(struct ft_writer *w, const struct endpoint *e)
{
    if (e->own) {
        write_ref(w, e->own);
        return;
    }
    ft_write_str(w, "{\"type\":\"object\",\"additionalProperties\":false,"
                    "\"required\":[\"fabric\",\"total\",\"records\"],\"properties\":{"
                    "\"fabric\":{\"type\":\"string\"},"
                    "\"window_start_ms\":{\"type\":\"integer\"},"
                    "\"window_end_ms\":{\"type\":\"integer\"},"
                    "\"total\":{\"type\":\"integer\",\"minimum\":0},"
                    "\"next\":{\"type\":\"string\"}");
    for (size_t i = 0; i < LISTS_MAX && e->lists[i].name; i++)
        write_list(w, &e->lists[i]);
    if (strcmp(e->path, "explain") == 0)
        write_list(w, &(struct list){"paths", SCHEMA("path")});
    ft_write_str(w, "}}");
}

static void write_parameter(struct ft_writer *w, const char *name)
{
    for (size_t i = 0; i < COUNT(parameters); i++) {
        if (strcmp(parameters[i].name, name) != 0)
            continue;
        ft_write_fmt(w, "{\"name\":\"%s\",\"in\":\"query\",\"description\":", name);
        ft_json_write_text(w, parameters[i].text);
        ft_write_fmt(w, ",\"schema\":{\"type\":\"%s\"}}", parameters[i].type);
    }
}

static void write_response(struct ft_writer *w, const char *status, const char *text)
{
    ft_write_fmt(w,
                 ",\"%s\":{\"description\":\"%s\",\"content\":{\"application/problem+json\":{"
                 "\"schema\":",
                 status, text);
    write_ref(w, "problem");
    ft_write_str(w, "}}}");
}

static void write_endpoint(struct ft_writer *w, const struct endpoint *e)
{
    ft_write_fmt(w, "\"/api/v1/%s\":{\"get\":{\"operationId\":\"%s\",\"summary\":", e->path,
                 e->path);
    ft_json_write_text(w, e->summary);
    ft_write_str(w, ",\"parameters\":[");
    for (size_t i = 0; i < PARAMETERS_MAX && e->parameters[i]; i++) {
        if (i)
            ft_write_u8(w, ',');
        write_parameter(w, e->parameters[i]);
    }
    ft_write_str(w, "],\"responses\":{\"200\":{\"description\":\"The answer.\",\"content\":{"
                    "\"application/json\":{\"schema\":");
    write_answer(w, e);
    ft_write_str(w, "}}},\"304\":{\"description\":\"The client has it: If-None-Match.\"}");
    write_response(w, "400", "A parameter is not known, or wrong.");
    write_response(w, "401", "A token is needed.");
    write_response(w, "404", "The object is not known.");
    write_response(w, "503", "Too many requests are in progress.");
    ft_write_str(w, "}}}");
}

static void write_others(struct ft_writer *w)
{
    ft_write_str(
        w, ",\"/api/v1/stream\":{\"get\":{\"operationId\":\"stream\",\"summary\":"
           "\"Server-sent events: a message window when a window has closed, with its start, its "
           "end and the imbalance record of the fabric, and a message event with each event "
           "record.\",\"responses\":{\"200\":{\"description\":\"It stays open.\",\"content\":{"
           "\"text/event-stream\":{\"schema\":{\"type\":\"string\"}}}}}}}"
           ",\"/api/v1/incident\":{\"get\":{\"operationId\":\"incident\",\"summary\":"
           "\"What came in and went out recently, as a file for fabrictrace replay: "
           "fabrictrace-incident(5).\",\"parameters\":[{\"name\":\"last_ms\",\"in\":\"query\","
           "\"description\":\"How far back, in milliseconds; half an hour where it is not given.\","
           "\"schema\":{\"type\":\"integer\"}}],\"responses\":{\"200\":{\"description\":\"The file."
           "\",\"content\":{\"" FT_INCIDENT_CONTENT_TYPE "\":{\"schema\":{\"type\":\"string\","
           "\"format\":\"binary\"}}}}");
    write_response(w, "400", "A parameter is not known, or wrong.");
    write_response(w, "401", "A token is needed.");
    write_response(w, "404", "Nothing is kept for an incident.");
    write_response(w, "503", "Too many requests are in progress.");
    ft_write_str(w, "}}}"
                    ",\"/api/v1/openapi.json\":{\"get\":{\"operationId\":\"openapi\",\"summary\":"
                    "\"This description.\",\"responses\":{\"200\":{\"description\":\"The answer.\","
                    "\"content\":{\"application/json\":{\"schema\":{\"type\":\"object\"}}}}}}}");
}

void ft_openapi_write(struct ft_writer *w)
{
    ft_write_str(w,
                 "{\"openapi\":\"3.1.0\",\"info\":{\"title\":\"fabrictraced\",\"version\":\"v1\","
                 "\"license\":{\"name\":\"Apache-2.0\",\"identifier\":\"Apache-2.0\"}},"
                 "\"security\":[{},{\"token\":[]}],\"paths\":{");
    for (size_t i = 0; i < COUNT(endpoints); i++) {
        if (i)
            ft_write_u8(w, ',');
        write_endpoint(w, &endpoints[i]);
    }
    write_others(w);
    ft_write_str(w, "},\"components\":{\"securitySchemes\":{\"token\":{\"type\":\"http\","
                    "\"scheme\":\"bearer\"}},\"schemas\":{");
    write_schemas(w);
    ft_write_str(w, "}}}\n");
}

int ft_api_openapi(void *view, const struct ft_http_request *request, struct ft_writer *body)
{
    (void)view;
    (void)request;
    ft_openapi_write(body);
    return 200;
}
