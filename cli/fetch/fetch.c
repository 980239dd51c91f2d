// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/fetch/fetch.h"

#include <errno.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/output/choice.h"
#include "cli/output/units.h"
#include "lib/base/secret.h"
#include "lib/io/http/http.h"
#include "proto/fabrictrace.pb-c.h"
#include "proto/json.h"

#define TARGET_BYTES_MAX 4096
#define ANSWER_BYTES_MAX FT_HTTP_BODY_BYTES_MAX
#define TIMEOUT_NS       30000000000
#define ERROR_BYTES      256
#define NS_PER_S         INT64_C(1000000000)

void ft_fetch_add_text(struct ft_writer *w, const char *text)
{
    static const char plain[] =
        "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789-._~";

    for (; *text; text++) {
        if (strchr(plain, *text))
            ft_write_u8(w, (uint8_t)*text);
        else
            ft_write_fmt(w, "%%%02X", (unsigned char)*text);
    }
}

static void add_parameter(struct ft_writer *w, char *separator, const char *name, const char *value)
{
    if (!value)
        return;
    ft_write_fmt(w, "%c%s=", *separator, name);
    *separator = '&';
    ft_fetch_add_text(w, value);
}

static void add_name(struct ft_writer *w, char *separator, const char *as,
                     const struct ft_args *args)
{
    add_parameter(w, separator, as, args->name);
    if (args->port) {
        ft_fetch_add_text(w, "/");
        ft_fetch_add_text(w, args->port);
    }
}

static void add_number(struct ft_writer *w, char *separator, const char *name, uint64_t value)
{
    ft_write_fmt(w, "%c%s=%llu", *separator, name, (unsigned long long)value);
    *separator = '&';
}

/* What is kept of a flow in the window of a moment, by its Kafka key. */
static void build_history(struct ft_writer *w, const struct ft_args *args)
{
    char src[FT_IP_TEXT_BYTES], dst[FT_IP_TEXT_BYTES], key[FT_TUPLE_TEXT_BYTES], separator = '?';

    ft_ip_format(&args->flow.src, src);
    ft_ip_format(&args->flow.dst, dst);
    snprintf(key, sizeof(key), "%s,%s,%u,%u,%u", src, dst, args->flow.sport, args->flow.dport,
             args->flow.proto);
    ft_write_str(w, "/api/v1/history");
    add_parameter(w, &separator, "kind", "path");
    add_parameter(w, &separator, "key", key);
    add_number(w, &separator, "from_ms", args->at_ms);
    add_number(w, &separator, "to_ms", args->at_ms + 1);
    ft_write_u8(w, 0);
}

/* as: what kind of thing the name of explain is taken for; else NULL. */
static void build_target(struct ft_writer *w, const struct ft_args *args, const char *as)
{
    static const char *const paths[FT_COMMANDS] = {
        [FT_COMMAND_PATHS] = "paths",
        [FT_COMMAND_LINKS] = "links",
        [FT_COMMAND_IMBALANCE] = "imbalance",
        [FT_COMMAND_COLLISIONS] = "events",
        [FT_COMMAND_EXPLAIN] = "explain",
        [FT_COMMAND_TOPOLOGY] = "topology",
        [FT_COMMAND_MATRIX] = "matrix",
        [FT_COMMAND_RANKS] = "ranks",
        [FT_COMMAND_DOCTOR] = "doctor",
        [FT_COMMAND_EVENTS] = "events",
        [FT_COMMAND_QPS] = "qps",
        [FT_COMMAND_HASH] = "hashes",
        [FT_COMMAND_DIAGNOSE] = "diagnoses",
        [FT_COMMAND_SPREAD] = "spread",
        [FT_COMMAND_RHYTHM] = "rhythms",
        [FT_COMMAND_PLANS] = "plans",
        [FT_COMMAND_MOVES] = "moves",
        [FT_COMMAND_PROBE] = "explain",
        [FT_COMMAND_PROBES] = "probes",
    };
    char flow[FT_TUPLE_TEXT_BYTES], separator = '?';

    if (args->has_at && args->command == FT_COMMAND_PATHS) {
        build_history(w, args);
        return;
    }
    ft_write_fmt(w, "/api/v1/%s", paths[args->command]);
    if (args->command == FT_COMMAND_COLLISIONS)
        add_parameter(w, &separator, "kind", "collision");
    add_parameter(w, &separator, "kind", args->kind);
    if (args->name)
        add_name(w, &separator, as, args);
    if (args->has_flow) {
        ft_tuple_format(&args->flow, flow);
        add_parameter(w, &separator, "flow", flow);
    }
    add_parameter(w, &separator, "state", args->verdict ? args->verdict : args->state);
    add_parameter(w, &separator, "job", args->job);
    add_parameter(w, &separator, "switch", args->switch_name);
    add_parameter(w, &separator, "host", args->host);
    if (args->command == FT_COMMAND_IMBALANCE && args->group)
        add_parameter(w, &separator, "scope", "group");
    add_parameter(w, &separator, args->command == FT_COMMAND_IMBALANCE ? "name" : "group",
                  args->group);
    add_parameter(w, &separator, "comm", args->comm);
    add_parameter(w, &separator, "op", args->op);
    if (args->has_from)
        add_number(w, &separator, "from_ms", args->from_ms);
    if (args->has_to)
        add_number(w, &separator, "to_ms", args->to_ms);
    if (args->has_at)
        add_number(w, &separator, "at_ms", args->at_ms);
    /* Of these all are needed: to find the newest, or those that are first once they are sorted. */
    if (args->limit && args->command != FT_COMMAND_EVENTS && args->command != FT_COMMAND_LINKS &&
        args->command != FT_COMMAND_IMBALANCE)
        add_number(w, &separator, "limit", args->limit);
    ft_write_u8(w, 0);
}

/* The daemon's sentence, on one line: the detail of a problem (RFC 9457), or what else is there. */
static void put_body(FILE *err, const struct ft_writer *body)
{
    char why[ERROR_BYTES];
    struct ft_answer *problem =
        ft_answer_parse((const char *)body->bytes, body->len, why, sizeof(why));
    const char *detail = problem ? ft_value_str(ft_answer_root(problem), "detail") : NULL;
    const char *text = detail ? detail : (const char *)body->bytes;
    size_t len = detail ? strlen(detail) : body->len;

    for (size_t i = 0; i < len && i < 512; i++)
        fputc(text[i] < 0x20 || text[i] >= 0x7f ? ' ' : text[i], err);
    fputc('\n', err);
    ft_answer_free(problem);
}

static bool has_lines(const struct ft_writer *body, size_t from)
{
    const uint8_t *newline = memchr(body->bytes + from, '\n', body->len - from);

    return newline && newline + 1 < body->bytes + body->len;
}

/* fabrictraced refuses with a sentence; another server has a page for it. */
static bool is_page(const struct ft_writer *body)
{
    size_t n = 0;

    while (n < body->len && strchr(" \t\r\n", body->bytes[n]))
        n++;
    return n < body->len && (body->bytes[n] == '<' || body->len > 512 || has_lines(body, n));
}

/* What is to be written before the endpoint. */
static const char *scheme_of(const struct ft_args *args)
{
    return strstr(args->endpoint, "://") ? "" : "http://";
}

static int unknown_kind(const char *kind, FILE *err)
{
    int32_t known;

    if (ft_json_enum_parse(&fabrictrace__kind__descriptor, kind, &known) == 0)
        return 0;
    fprintf(err, "fabrictrace events: no kind '%s' of events is known; there are", kind);
    for (unsigned i = 1; i < fabrictrace__kind__descriptor.n_values; i++) {
        char name[FT_JSON_ENUM_BYTES];

        ft_json_enum_text(&fabrictrace__kind__descriptor,
                          fabrictrace__kind__descriptor.values[i].value, name);
        fprintf(err, "%s %s", i > 1 ? "," : "", name);
    }
    fputc('\n', err);
    return EX_USAGE;
}

static int refused(const struct ft_args *args, int status, const struct ft_writer *body, FILE *err)
{
    char flow[FT_TUPLE_TEXT_BYTES];

    if (is_page(body)) {
        fprintf(err, "fabrictrace: what answers is not fabrictraced: %s%s: status %d\n",
                scheme_of(args), args->endpoint, status);
        return EX_PROTOCOL;
    }
    if (status == 401) {
        fprintf(err, "fabrictrace: fabrictraced at %s %s\n", args->endpoint,
                args->token_file ? "refuses the token of --token-file"
                                 : "requires a token: --token-file FILE");
        return EX_NOPERM;
    }
    if (status == 404 && args->name)
        return FT_EXIT_NOT_FOUND;
    if (status == 404 &&
        (args->command == FT_COMMAND_EXPLAIN || args->command == FT_COMMAND_PROBE)) {
        ft_tuple_format(&args->flow, flow);
        fprintf(err,
                "fabrictrace: fabrictraced at %s does not know the flow %s\n"
                "  Nobody has seen it lately: no switch has sampled it and no agent reports it.\n"
                "  fabrictrace paths --host HOST lists the flows of a host.\n",
                args->endpoint, flow);
        return FT_EXIT_NOT_FOUND;
    }
    if (status == 400 && args->kind && unknown_kind(args->kind, err))
        return EX_USAGE;
    fprintf(err, "fabrictrace: fabrictraced at %s answers %d: ", args->endpoint, status);
    put_body(err, body);
    if (status == 400 && args->command == FT_COMMAND_QPS && args->state)
        fputs("  fabrictrace(1) has the states.\n", err);
    if (status == 400)
        return EX_USAGE;
    return status == 503 ? EX_UNAVAILABLE : EX_PROTOCOL;
}

/* why names the endpoint. */
static int unreachable(int rc, const char *why, FILE *err)
{
    switch (rc) {
    case -EINVAL:
        fprintf(err, "fabrictrace: %s\n  Write the endpoint as HOST:PORT.\n", why);
        return EX_USAGE;
    case -ENOMEM:
    case -EMSGSIZE:
        fprintf(err, "fabrictrace: %s\n", why);
        return EX_OSERR;
    case -EKEYREJECTED:
        fprintf(err,
                "fabrictrace: %s\n"
                "  --ca FILE names the authority that signed it; its names must have the host of "
                "the endpoint.\n",
                why);
        return EX_PROTOCOL;
    case -EPROTO:
        fprintf(err, "fabrictrace: %s\n", why);
        return EX_PROTOCOL;
    case -ENOKEY:
        fprintf(err, "fabrictrace: --ca: %s\n", why);
        return EX_NOINPUT;
    case -EPERM:
        fprintf(err, "fabrictrace: %s\n", why);
        return EX_USAGE;
    case -ECANCELED:
        return FT_FETCH_ENDED;
    case -ETIMEDOUT:
        fprintf(err,
                "fabrictrace: no answer within %d seconds: %s\n"
                "  Does it hang?  systemctl status fabrictraced; is it the right endpoint?\n",
                (int)(FT_HTTP_QUIET_NS / NS_PER_S), why);
        return EX_UNAVAILABLE;
    case -ENODATA:
        fprintf(err, "fabrictrace: %s\n  Ask again; the log of fabrictraced may say why.\n", why);
        return EX_UNAVAILABLE;
    case -EBADMSG:
        fprintf(err, "fabrictrace: the server is not fabrictraced: %s\n", why);
        return EX_PROTOCOL;
    default:
        fprintf(err,
                "fabrictrace: fabrictraced does not answer: %s\n"
                "  Does it run here?  systemctl status fabrictraced\n"
                "  Does it run elsewhere?  fabrictrace --endpoint HOST:PORT, or "
                "FABRICTRACE_ENDPOINT\n",
                why);
        return EX_UNAVAILABLE;
    }
}

int ft_fetch_target(const struct ft_args *args, const char *target, struct ft_answer **answer,
                    FILE *err)
{
    struct ft_http_server server = {.endpoint = args->endpoint, .ca = args->ca};
    char error[ERROR_BYTES] = "", *token = NULL;
    struct ft_writer body;
    struct ft_answer *got;
    int rc;

    /* Read each time: it may be renewed while top runs. */
    if (args->token_file && ft_secret_read(args->token_file, &token, error, sizeof(error)) < 0) {
        fprintf(err, "fabrictrace: --token-file: %s\n", error);
        return EX_NOPERM;
    }
    server.token = token;
    ft_writer_init(&body, ANSWER_BYTES_MAX);
    rc = ft_http_ask(&server, target, TIMEOUT_NS, args->stop_fd, &body, error, sizeof(error));
    if (rc != 200) {
        rc = rc < 0 ? unreachable(rc, error, err) : refused(args, rc, &body, err);
        goto out;
    }
    got = ft_answer_parse((const char *)body.bytes, body.len, error, sizeof(error));
    if (!got) {
        fprintf(err, "fabrictrace: what answers is not fabrictraced: %s%s: %s\n", scheme_of(args),
                args->endpoint, error);
        rc = EX_PROTOCOL;
        goto out;
    }
    *answer = got;
    rc = 0;
out:
    ft_writer_free(&body);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    return rc;
}

static int fetch(const struct ft_args *args, const char *as, struct ft_answer **answer, FILE *err)
{
    struct ft_writer target;
    int rc = EX_USAGE;

    ft_writer_init(&target, TARGET_BYTES_MAX);
    build_target(&target, args, as);
    if (ft_writer_ok(&target))
        rc = ft_fetch_target(args, (const char *)target.bytes, answer, err);
    else
        fprintf(err, "fabrictrace: the options are too long\n");
    ft_writer_free(&target);
    return rc;
}

/* The daemon takes any text for a job: one without ranks and paths is none. */
static bool is_empty(const struct ft_value *root)
{
    const struct ft_value *ranks = ft_value_get(root, "records");
    const struct ft_value *paths = ft_value_get(root, "paths");

    return ranks && paths && ft_value_count(ranks) == 0 && ft_value_count(paths) == 0;
}

/* A name as what it is: the daemon knows no two things of one name but a job's. */
static int fetch_named(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    static const char *const kinds[] = {"link", "group", "job"};
    size_t count = args->port ? 1 : sizeof(kinds) / sizeof(kinds[0]);
    struct ft_answer *got = NULL;
    int rc = FT_EXIT_NOT_FOUND;

    for (size_t i = 0; rc == FT_EXIT_NOT_FOUND && i < count; i++) {
        rc = fetch(args, kinds[i], &got, err);
        if (rc == 0 && i == 2 && is_empty(ft_answer_root(got))) {
            ft_answer_free(got);
            rc = FT_EXIT_NOT_FOUND;
        }
    }
    if (rc == 0)
        *answer = got;
    return rc;
}

/* Whether a member of the objects in a list has this text. */
static bool lists(const struct ft_value *list, const char *member, const char *text)
{
    for (size_t i = 0; i < ft_value_count(list); i++)
        if (ft_value_is(ft_value_at(list, i), member, text))
            return true;
    return false;
}

int ft_fetch_save(const struct ft_args *args, const char *target, int64_t timeout_ns, FILE *out,
                  FILE *err)
{
    struct ft_http_server server = {.endpoint = args->endpoint, .ca = args->ca};
    char error[ERROR_BYTES] = "", *token = NULL;
    struct ft_writer body;
    int rc;

    if (args->token_file && ft_secret_read(args->token_file, &token, error, sizeof(error)) < 0) {
        fprintf(err, "fabrictrace: --token-file: %s\n", error);
        return EX_NOPERM;
    }
    server.token = token;
    ft_writer_init(&body, ANSWER_BYTES_MAX);
    rc = ft_http_save(&server, target, timeout_ns, args->stop_fd, out, &body, error, sizeof(error));
    if (rc == 200)
        rc = EX_OK;
    else
        rc = rc < 0 ? unreachable(rc, error, err) : refused(args, rc, &body, err);
    ft_writer_free(&body);
    if (token)
        explicit_bzero(token, strlen(token));
    free(token);
    return rc;
}

/* A name that a filter asks for, and where those of its kind are listed. */
struct named {
    const char *kind, *name;
    enum ft_command from;      /* whose answer lists them */
    const char *list, *member; /* the list there, and what of its records is the name */
    const char *command;       /* that shows them */
    int status;                /* where it is not known */
};

static struct named named_by(const struct ft_args *args)
{
    if (args->host)
        return (struct named){"host",     args->host, FT_COMMAND_TOPOLOGY, "hosts", "name",
                              "topology", EX_NOHOST};
    if (args->switch_name)
        return (struct named){
            "switch",   args->switch_name, FT_COMMAND_TOPOLOGY, "switches", "name",
            "topology", EX_USAGE};
    if (args->group)
        return (struct named){"group", args->group, FT_COMMAND_LINKS, "records",
                              "group", "imbalance", EX_USAGE};
    if (args->comm)
        return (struct named){"communicator", args->comm, FT_COMMAND_RANKS, "records",
                              "comm_id",      "ranks",    EX_USAGE};
    return (struct named){.kind = "job", .name = args->job, .command = "ranks", .status = EX_USAGE};
}

/* Whether the name is listed; where there is no list at all, nothing is said of names. */
static bool is_listed(const struct ft_args *args, const struct named *named, FILE *err)
{
    struct ft_args all = *args;
    struct ft_answer *answer;
    const struct ft_value *list;
    bool known;

    all.command = named->from;
    all.host = all.group = all.state = all.comm = all.op = all.kind = NULL;
    all.switch_name = all.job = all.verdict = NULL;
    all.has_flow = all.has_from = all.has_to = false;
    all.has_at = args->has_at && named->from == FT_COMMAND_LINKS;
    all.limit = 0;
    if (fetch(&all, NULL, &answer, err))
        return true;
    list = ft_value_get(ft_answer_root(answer), named->list);
    known = ft_value_count(list) == 0 || lists(list, named->member, named->name);
    ft_answer_free(answer);
    return known;
}

/* Likewise of a job, which has ranks, flows or queue pairs. */
static bool is_job(const struct ft_args *args, FILE *err)
{
    struct ft_args one = *args;
    struct ft_answer *answer;
    bool known;

    one.command = FT_COMMAND_EXPLAIN;
    one.name = args->job;
    one.job = one.state = one.kind = one.op = NULL;
    one.has_flow = one.has_from = one.has_to = one.has_at = false;
    one.limit = 0;
    if (fetch(&one, "job", &answer, err))
        return true;
    known = !is_empty(ft_answer_root(answer));
    ft_answer_free(answer);
    if (known || args->command != FT_COMMAND_QPS || !args->state)
        return known;
    one = *args;
    one.state = NULL;
    if (fetch(&one, NULL, &answer, err))
        return true;
    known = ft_value_count(ft_value_get(ft_answer_root(answer), "records")) > 0;
    ft_answer_free(answer);
    return known;
}

/* Nothing matches: of a name that nobody knows that does not mean that all is well. What cannot be
 * looked up is not judged. */
static int unknown_name(const struct ft_args *args, FILE *err)
{
    const struct named named = named_by(args);
    struct ft_ip ip;

    if (args->host && ft_ip_parse(args->host, &ip) == 0)
        return 0;
    if (named.list ? is_listed(args, &named, err) : is_job(args, err))
        return 0;
    fprintf(err, "fabrictrace: no %s '%s' is known: fabrictrace %s lists them\n", named.kind,
            named.name, named.command);
    return named.status;
}

/* Leaves events out that are less grave. An exit status. */
static int keep_severe(const struct ft_args *args, struct ft_answer *answer, FILE *err)
{
    bool *keep =
        ft_choice_severity(ft_value_get(ft_answer_root(answer), "records"), args->severity);

    if (!keep) {
        fputs("fabrictrace: no memory\n", err);
        return EX_OSERR;
    }
    ft_answer_keep(answer, keep);
    free(keep);
    return 0;
}

int ft_fetch(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    const struct ft_value *records;
    int rc = args->name ? fetch_named(args, answer, err) : fetch(args, NULL, answer, err);

    if (rc)
        return rc;
    records = ft_value_get(ft_answer_root(*answer), "records");
    if (records && ft_value_count(records) == 0 && args->kind)
        rc = unknown_kind(args->kind, err);
    else if (records && ft_value_count(records) == 0 &&
             (args->host || args->switch_name || args->group || args->comm || args->job))
        rc = unknown_name(args, err);
    if (rc == 0 && args->severity)
        rc = keep_severe(args, *answer, err);
    if (rc) {
        ft_answer_free(*answer);
        *answer = NULL;
    } else if (!args->json && !args->export) {
        ft_answer_clean(*answer);
    }
    return rc;
}

/* "no window that is kept holds TIME: those from TIME to TIME are". */
static int not_kept(const struct ft_args *args, FILE *err)
{
    const struct ft_wall now = ft_wall_now();
    const struct ft_value *records;
    struct ft_answer *answer;
    char at[FT_UNIT_BYTES], from[FT_UNIT_BYTES], to[FT_UNIT_BYTES];
    uint64_t first = 0, last = 0;
    int rc = ft_fetch_target(args, "/api/v1/windows", &answer, err);

    if (rc)
        return rc;
    records = ft_value_get(ft_answer_root(answer), "records");
    fprintf(err, "fabrictrace: fabrictraced at %s keeps no window that holds %s", args->endpoint,
            ft_unit_time(at, args->at_ms, now));
    if (ft_value_count(records) == 0) {
        fputs(": none has closed yet\n", err);
    } else {
        ft_value_uint(ft_value_at(records, 0), "window_start_ms", &first);
        ft_value_uint(ft_value_at(records, ft_value_count(records) - 1), "window_end_ms", &last);
        fprintf(err, ": its windows are from %s to %s\n", ft_unit_time(from, first, now),
                ft_unit_time(to, last, now));
    }
    ft_answer_free(answer);
    return EX_USAGE;
}

int ft_fetch_window(const struct ft_args *args, struct ft_answer **answer, FILE *err)
{
    char target[128];
    int rc;

    snprintf(target, sizeof(target), "/api/v1/windows?from_ms=%llu&to_ms=%llu",
             (unsigned long long)args->at_ms, (unsigned long long)args->at_ms + 1);
    rc = ft_fetch_target(args, target, answer, err);
    if (rc || ft_value_count(ft_value_get(ft_answer_root(*answer), "records")) > 0)
        return rc;
    ft_answer_free(*answer);
    *answer = NULL;
    return not_kept(args, err);
}

int ft_fetch_kept(const struct ft_args *args, uint64_t *kept_ms, struct ft_answer **active,
                  FILE *err)
{
    struct ft_answer *windows;
    int rc = ft_fetch_target(args, "/api/v1/windows?limit=1", &windows, err);

    if (rc)
        return rc;
    *kept_ms = 0;
    ft_value_uint(ft_value_at(ft_value_get(ft_answer_root(windows), "records"), 0),
                  "window_start_ms", kept_ms);
    ft_answer_free(windows);
    rc = ft_fetch_target(args, "/api/v1/events", active, err);
    if (rc == 0)
        ft_answer_clean(*active);
    return rc;
}
