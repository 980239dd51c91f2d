// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/fetch/consume.h"

#include <errno.h>
#include <inttypes.h>
#include <signal.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <sysexits.h>

#include "cli/fetch/fetch.h"
#include "cli/output/rows.h"
#include "cli/output/text.h"
#include "cli/output/units.h"
#include "cli/show/show.h"
#include "lib/base/clock.h"
#include "lib/base/grow.h"
#include "lib/base/secret.h"
#include "lib/base/writer.h"
#include "lib/io/kafka/reader.h"
#include "proto/json.h"
#include "proto/message.h"

#define TIMEOUT_NS       10000000000
#define POLL_MS          200
#define MS_IN_S          1000
#define ERROR_BYTES      512
#define RECORD_BYTES_MAX (16u << 20)
#define TABLE_BYTES_MAX  (256u << 20)
#define TABLE_ROWS       1000
#define PROPERTIES_MAX   64
#define STRANGERS_LOGGED 5

struct item {
    int64_t time_ms;
    int32_t partition;
    int64_t offset;
    char *json; /* the record, or with its time and key where there is no table of its kind */
};

struct consumer {
    const struct ft_args *args;
    const char *schema; /* NULL: the topic's name is that of no record */
    struct ft_kafka_reader *reader;
    char *properties[PROPERTIES_MAX + 1];
    struct ft_writer json;
    struct item *items; /* of the next table */
    size_t count, room;
    uint64_t shown, strangers;
    bool cut; /* there was more than the table takes */
    bool silent;
    struct ft_mono heard, printed;
};

static volatile sig_atomic_t ended;

static void end(int number)
{
    (void)number;
    ended = 1;
}

static bool is_text(const struct ft_value *value, const char *expected)
{
    const char *text = ft_value_text(value);
    char *dump;
    bool same;

    if (text)
        return strcmp(text, expected) == 0;
    dump = ft_value_dump(value);
    same = dump && strcmp(dump, expected) == 0;
    free(dump);
    return same;
}

/* path: up to the '='. */
static bool has(const struct ft_value *value, const char *path, size_t len, const char *expected)
{
    const char *dot = memchr(path, '.', len);
    size_t head = dot ? (size_t)(dot - path) : len;
    char name[FT_JSON_ENUM_BYTES];

    for (size_t i = 0; i < ft_value_count(value); i++)
        if (has(ft_value_at(value, i), path, len, expected))
            return true;
    if (len == 0)
        return value && is_text(value, expected);
    if (head >= sizeof(name))
        return false;
    memcpy(name, path, head);
    name[head] = '\0';
    value = ft_value_get(value, name);
    return value && has(value, dot ? dot + 1 : "", dot ? len - head - 1 : 0, expected);
}

/* Whether a record has a member NAME=VALUE; members of objects are named as outer.inner, and of a
 * list one item is enough. filter holds a '='. */
static bool passes(const struct ft_value *record, const char *filter)
{
    size_t len = strcspn(filter, "=");

    return has(record, filter, len, filter + len + 1);
}

static int read_properties(struct consumer *c, const char *path)
{
    FILE *file = fopen(path, "re");
    char *line = NULL, error[ERROR_BYTES];
    size_t size = 0, count = 0;
    bool secret = false;
    int rc = 0;

    if (!file) {
        fprintf(stderr, "fabrictrace consume: %s: %s\n", path, strerror(errno));
        return EX_NOINPUT;
    }
    while (rc == 0 && getline(&line, &size, file) >= 0) {
        line[strcspn(line, "\r\n")] = '\0';
        if (!*line || *line == '#')
            continue;
        secret = secret || ft_secret_setting(line);
        c->properties[count] = strdup(line);
        if (!c->properties[count] || ++count == PROPERTIES_MAX) {
            fprintf(stderr, "fabrictrace consume: %s: more than %d lines\n", path,
                    PROPERTIES_MAX - 1);
            rc = EX_USAGE;
        }
    }
    free(line);
    fclose(file);
    if (rc == 0 && secret && ft_secret_check(path, error, sizeof(error)) < 0) {
        fprintf(stderr, "fabrictrace consume: %s: has a secret, and %s\n", path, error);
        rc = EX_NOPERM;
    }
    return rc;
}

/* Who writes the kind alone means its topic. */
static void complain_topic(const struct ft_args *args)
{
    char schema[FT_JSON_ENUM_BYTES + 16];

    snprintf(schema, sizeof(schema), "fabrictrace.%s.v1", args->topic);
    fprintf(stderr, "fabrictrace consume: there is no topic '%s' at %s", args->topic,
            args->brokers);
    if (ft_message_schema(schema))
        fprintf(stderr, "; did you mean '%s'?\n", schema);
    else
        fputs("\n  fabrictrace-topics(7) lists them; most are there once something of their kind "
              "was published.\n",
              stderr);
}

static int open_reader(struct consumer *c)
{
    const struct ft_args *args = c->args;
    const struct ft_kafka_reader_config config = {
        .brokers = args->brokers,
        .topic = args->topic,
        .from_ms = args->has_from ? (int64_t)args->from_ms
                   : args->follow ? FT_KAFKA_END
                                  : FT_KAFKA_BEGINNING,
        .follow = args->follow,
        .properties = (const char *const *)c->properties,
        .timeout_ns = TIMEOUT_NS,
    };
    char error[ERROR_BYTES];

    c->reader = ft_kafka_reader_new(&config, error, sizeof(error));
    if (c->reader)
        return EX_OK;
    switch (errno) {
    case ENOENT:
        complain_topic(args);
        return FT_EXIT_NOT_FOUND;
    case EINVAL:
        fprintf(stderr, "fabrictrace consume: %s\n", error);
        return EX_USAGE;
    case ENOMEM:
        return EX_OSERR;
    default:
        fprintf(
            stderr,
            "fabrictrace consume: topic '%s' at %s: %s\n"
            "  Are the brokers elsewhere?  fabrictrace consume --brokers HOST:PORT,... TOPIC, or "
            "FABRICTRACE_BROKERS\n",
            args->topic, args->brokers, error);
        return EX_UNAVAILABLE;
    }
}

/* Kinds with a table of their own. */
static bool is_schema(const struct consumer *c, const char *kind)
{
    size_t len = strlen("fabrictrace.");

    return c->schema && strncmp(c->schema + len, kind, strlen(kind)) == 0 &&
           strcmp(c->schema + len + strlen(kind), ".v1") == 0;
}

static bool has_table(const struct consumer *c)
{
    static const char *const kinds[] = {"path", "link", "imbalance", "event", "hash"};

    for (size_t i = 0; i < sizeof(kinds) / sizeof(kinds[0]); i++)
        if (is_schema(c, kinds[i]))
            return true;
    return false;
}

static int by_time(const void *left, const void *right)
{
    const struct item *a = left, *b = right;

    if (a->time_ms != b->time_ms)
        return a->time_ms < b->time_ms ? -1 : 1;
    if (a->partition != b->partition)
        return a->partition < b->partition ? -1 : 1;
    return a->offset < b->offset ? -1 : a->offset > b->offset;
}

static int show_others(const struct ft_screen *screen, const struct ft_value *records)
{
    static const struct ft_column columns[] = {
        {.title = "TIME"}, {.title = "KEY"}, {.title = "RECORD", .elastic = true}};
    struct ft_grid *grid = ft_grid_new(columns, sizeof(columns) / sizeof(columns[0]));
    char time[FT_UNIT_BYTES];
    int rc = 0;

    for (size_t i = 0; rc == 0 && i < ft_value_count(records); i++) {
        const struct ft_value *item = ft_value_at(records, i);
        char *text = ft_value_dump(ft_value_get(item, "record"));
        const char *key = ft_value_str(item, "key");
        uint64_t ms;

        if (ft_value_uint(item, "time_ms", &ms))
            ft_grid_cell(grid, FT_PLAIN, "%s", ft_unit_time(time, ms, screen->now));
        else
            ft_grid_skip(grid);
        ft_grid_cell(grid, FT_PLAIN, "%s", key ? key : "");
        ft_grid_cell(grid, FT_PLAIN, "%s", text ? text : "");
        rc = text ? 0 : -ENOMEM;
        free(text);
    }
    if (rc == 0)
        rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

/* In the order that they came in: of one thing there are several, each of its time. */
static int show_records(const struct consumer *c, const struct ft_screen *screen,
                        const struct ft_value *root)
{
    const struct ft_value *records = ft_value_get(root, "records");
    bool links = is_schema(c, "link"), imbalance = is_schema(c, "imbalance");
    bool events = is_schema(c, "event");
    struct ft_grid *grid;
    int rc = 0;

    if (is_schema(c, "hash"))
        return ft_show_hash(screen, root);
    if (!has_table(c))
        return show_others(screen, records);
    grid = links       ? ft_rows_links_timed()
           : imbalance ? ft_rows_imbalance_timed()
           : events    ? ft_rows_events()
                       : ft_rows_paths_timed();
    for (size_t i = 0; rc == 0 && i < ft_value_count(records); i++) {
        const struct ft_value *record = ft_value_at(records, i);

        if (events) {
            ft_rows_events_add(grid, record, screen->now);
            continue;
        }
        ft_text_time_cell(grid, record, links || imbalance ? "window_start_ms" : "time_ms",
                          screen->now);
        if (links)
            ft_rows_links_add(grid, record);
        else if (imbalance)
            ft_rows_imbalance_add(grid, record);
        else
            rc = ft_rows_paths_add(grid, record);
    }
    if (rc == 0)
        rc = ft_grid_print(grid, screen, 0);
    ft_grid_free(grid);
    return rc;
}

static void forget_items(struct consumer *c)
{
    for (size_t i = 0; i < c->count; i++)
        free(c->items[i].json);
    c->count = 0;
}

/* The table of what is collected. */
static int print_table(struct consumer *c)
{
    struct ft_answer *answer = NULL;
    struct ft_screen screen;
    struct ft_writer text;
    char error[ERROR_BYTES];
    int rc = -ENOMEM;

    c->printed = ft_mono_now();
    if (c->count == 0)
        return EX_OK;
    qsort(c->items, c->count, sizeof(*c->items), by_time);
    ft_writer_init(&text, TABLE_BYTES_MAX);
    ft_write_str(&text, "{\"records\":[");
    for (size_t i = 0; i < c->count; i++) {
        ft_write_str(&text, i ? "," : "");
        ft_write_str(&text, c->items[i].json);
    }
    ft_write_str(&text, "]}");
    if (ft_writer_ok(&text))
        answer = ft_answer_parse((char *)text.bytes, text.len, error, sizeof(error));
    ft_writer_free(&text);
    if (answer) {
        ft_answer_clean(answer);
        ft_screen_init(&screen, stdout);
        screen.err = stderr;
        screen.layout = (struct ft_layout){c->args->sort, c->args->columns, 0};
        if (c->args->wide)
            screen.width = 0;
        rc = show_records(c, &screen, ft_answer_root(answer));
    }
    ft_answer_free(answer);
    forget_items(c);
    if (rc)
        return rc == -EINVAL ? EX_USAGE : EX_OSERR;
    return fflush(stdout) == 0 ? EX_OK : EX_IOERR;
}

static int keep(struct consumer *c, const struct ft_kafka_message *m, const struct ft_value *record)
{
    struct item *grown = ft_grow(c->items, c->count, &c->room, sizeof(*grown));
    struct item item = {m->time_ms, m->partition, m->offset, NULL};
    char *dump = ft_value_dump(record), *key = strndup(m->key ? m->key : "", m->key_len);

    if (grown)
        c->items = grown;
    if (grown && dump && key && has_table(c)) {
        item.json = dump;
        dump = NULL;
    } else if (grown && dump && key) {
        ft_writer_reset(&c->json);
        ft_write_str(&c->json, "{\"key\":");
        ft_json_write_text(&c->json, key);
        if (m->time_ms >= 0)
            ft_write_fmt(&c->json, ",\"time_ms\":%" PRId64, m->time_ms);
        ft_write_str(&c->json, ",\"record\":");
        ft_write_str(&c->json, dump);
        ft_write_str(&c->json, "}");
        item.json = ft_writer_ok(&c->json) ? strndup((char *)c->json.bytes, c->json.len) : NULL;
    }
    free(dump);
    free(key);
    if (!item.json)
        return EX_OSERR;
    c->items[c->count++] = item;
    return EX_OK;
}

static bool is_selected(const struct consumer *c, const struct ft_value *record)
{
    for (size_t i = 0; i < c->args->filter_count; i++)
        if (!passes(record, c->args->filters[i]))
            return false;
    return true;
}

static void report_stranger(struct consumer *c, const struct ft_kafka_message *m,
                            const char *reason)
{
    if (c->strangers++ < STRANGERS_LOGGED)
        fprintf(stderr, "fabrictrace consume: partition %d, offset %" PRId64 ": no record: %s\n",
                m->partition, m->offset, reason);
}

static int take(struct consumer *c, const struct ft_kafka_message *m)
{
    char reason[FT_MESSAGE_ERROR_BYTES], error[ERROR_BYTES];
    struct ft_answer *answer;
    int rc;

    if (m->len == 0)
        return EX_OK; /* a key that is deleted */
    ft_writer_reset(&c->json);
    rc = ft_message_to_json(c->schema, m->value, m->len, &c->json, reason);
    if (rc == -ENOMEM)
        return EX_OSERR;
    answer = rc ? NULL : ft_answer_parse((char *)c->json.bytes, c->json.len, error, sizeof(error));
    if (!answer) {
        report_stranger(c, m, rc == -EBADMSG ? reason : rc ? "too large" : error);
        return EX_OK;
    }
    rc = EX_OK;
    if (is_selected(c, ft_answer_root(answer))) {
        c->shown++;
        if (!c->args->json)
            rc = keep(c, m, ft_answer_root(answer));
        else if (ft_show_json_line(stdout, ft_answer_root(answer)))
            rc = EX_OSERR;
    }
    ft_answer_free(answer);
    return rc;
}

/* True when a table's time has come: then what was read so far is printed. */
static bool is_due(const struct consumer *c)
{
    return c->args->follow && ft_mono_since_ns(ft_mono_now(), c->printed) >=
                                  (int64_t)c->args->interval_s * MS_IN_S * 1000000;
}

static bool is_full(struct consumer *c)
{
    uint64_t most = c->args->limit;

    if (!c->args->json && !c->args->follow && most == 0) {
        most = TABLE_ROWS;
        c->cut = c->shown >= most;
    }
    return most && c->shown >= most;
}

/* What goes away by itself is waited for; without --follow as long as for a first answer. */
static int hear_error(struct consumer *c, const char *error)
{
    if (!c->silent)
        fprintf(stderr, "fabrictrace consume: %s\n", error);
    c->silent = true;
    return c->args->follow || ft_mono_since_ns(ft_mono_now(), c->heard) < TIMEOUT_NS
               ? EX_OK
               : EX_UNAVAILABLE;
}

static int pump(struct consumer *c)
{
    struct ft_kafka_message message;
    char error[ERROR_BYTES] = "no broker answers any more";
    int got = 0, rc = EX_OK;

    while (rc == EX_OK && !ended && !is_full(c)) {
        got = ft_kafka_reader_next(c->reader, POLL_MS, &message, error, sizeof(error));
        if (got == -ENODATA)
            break;
        if (got == 1) {
            c->silent = false;
            c->heard = ft_mono_now();
            rc = take(c, &message);
        } else if (got < 0 || ft_mono_since_ns(ft_mono_now(), c->heard) >= TIMEOUT_NS) {
            rc = got < 0 || !c->args->follow ? hear_error(c, error) : EX_OK;
        }
        if (rc == EX_OK && got != 1 && fflush(stdout) != 0)
            rc = EX_IOERR;
        if (rc == EX_OK && !c->args->json && is_due(c))
            rc = print_table(c);
    }
    return rc;
}

static int finish(struct consumer *c)
{
    int rc = c->args->json ? EX_OK : print_table(c);

    if (rc == EX_OK && fflush(stdout) != 0)
        return EX_IOERR;
    if (rc == EX_OK && c->shown == 0 && !c->args->json && !c->args->follow)
        printf("no records\n");
    if (c->cut)
        fprintf(stderr,
                "fabrictrace consume: the first %d; --limit shows more, --from later ones\n",
                TABLE_ROWS);
    if (c->strangers > STRANGERS_LOGGED)
        fprintf(stderr, "fabrictrace consume: %" PRIu64 " messages are no records\n", c->strangers);
    return rc == EX_OK && c->strangers ? EX_DATAERR : rc;
}

int ft_consume_command(const struct ft_args *args)
{
    struct consumer c = {
        .args = args, .schema = ft_message_schema(args->topic), .heard = ft_mono_now()};
    struct sigaction action = {.sa_handler = end};
    int rc = args->properties ? read_properties(&c, args->properties) : EX_OK;

    c.printed = c.heard;
    sigaction(SIGINT, &action, NULL);
    sigaction(SIGTERM, &action, NULL);
    ft_writer_init(&c.json, RECORD_BYTES_MAX);
    if (rc == EX_OK)
        rc = open_reader(&c);
    if (rc == EX_OK) {
        c.heard = ft_mono_now();
        rc = pump(&c);
        rc = rc == EX_OK ? finish(&c) : rc;
    }
    if (rc == EX_OSERR)
        fprintf(stderr, "fabrictrace consume: no memory\n");
    forget_items(&c);
    free(c.items);
    ft_kafka_reader_free(c.reader);
    ft_writer_free(&c.json);
    for (size_t i = 0; c.properties[i]; i++)
        free(c.properties[i]);
    return rc;
}
