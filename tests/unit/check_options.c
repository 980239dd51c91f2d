// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdio.h>
#include <string.h>

#include "lib/config/options.h"
#include "tests/unit/unit.h"

struct config {
    char *name;
    char *note;
    struct ft_strings sinks;
    bool on;
    uint64_t cap;
    double share;
    int64_t window_ns;
    int64_t flush_ns;
    uint64_t bytes;
    char *listen;
    int level;
    uint64_t deep;
    uint64_t late;
    uint64_t deeper;
};

static const char *const levels[] = {"error", "info", "debug", NULL};

static const struct ft_option options[] = {
    {"name", FT_OPTION_STRING, offsetof(struct config, name), "lab", 0, 0, NULL,
     "Name of it all. Shown in each record."},
    {"note", FT_OPTION_STRING, offsetof(struct config, note), NULL, 0, 0, NULL, "A note."},
    {"sinks", FT_OPTION_STRINGS, offsetof(struct config, sinks), "[\"a\"]", 0, 0, NULL, "Sinks."},
    {"on", FT_OPTION_BOOL, offsetof(struct config, on), "yes", 0, 0, NULL, "Whether."},
    {"join.cap", FT_OPTION_UINT, offsetof(struct config, cap), "1000", 1, 2000000, NULL, ".cap"},
    {"join.share", FT_OPTION_DOUBLE, offsetof(struct config, share), "0.1", 0, 1, NULL, "Share."},
    {"join.window", FT_OPTION_DURATION, offsetof(struct config, window_ns), "10s", 0.1, 3600, NULL,
     "Window."},
    {"join.flush", FT_OPTION_DURATION, offsetof(struct config, flush_ns), "0", 0, 0, NULL, "Fl."},
    {"spool.bytes", FT_OPTION_SIZE, offsetof(struct config, bytes), "64MiB", 4096, 0, NULL, "B."},
    {"http.listen", FT_OPTION_ENDPOINT, offsetof(struct config, listen), "127.0.0.1:9478", 0, 0,
     NULL, "Where."},
    {"log.level", FT_OPTION_ENUM, offsetof(struct config, level), "info", 0, 0, levels, "How."},
    {"log.a.deep", FT_OPTION_UINT, offsetof(struct config, deep), "7", 0, 0, NULL, "Deep."},
    /* Behind others. */
    {"join.late", FT_OPTION_UINT, offsetof(struct config, late), "8", 0, 0, NULL, "Late."},
    {"log.a.deeper", FT_OPTION_UINT, offsetof(struct config, deeper), "9", 0, 0, NULL, "Deeper."},
    {NULL, 0, 0, NULL, 0, 0, NULL, NULL},
};

static const struct ft_option_table table = {"prog", options, sizeof(struct config)};

static struct config *load(const char *text, struct ft_diag *diag)
{
    struct ft_yaml *root = ft_yaml_parse(text, strlen(text), "p.yaml", diag);
    struct config *c = root ? ft_options_load(&table, root, NULL, diag, NULL) : NULL;

    ft_yaml_free(root);
    return c;
}

static void expect(const char *text, const char *complaints)
{
    struct ft_diag *diag = ft_diag_new();
    char all[4096] = "";

    ck_assert_ptr_null(load(text, diag));
    for (size_t i = 0; i < ft_diag_count(diag); i++)
        sprintf(all + strlen(all), "%s\n", ft_diag_text(diag, i));
    ck_assert_str_eq(all, complaints);
    ft_diag_free(diag);
}

START_TEST(has_the_defaults)
{
    struct ft_diag *diag = ft_diag_new();
    struct config *c = ft_options_load(&table, NULL, NULL, diag, NULL);

    ck_assert_ptr_nonnull(c);
    ck_assert_str_eq(c->name, "lab");
    ck_assert_ptr_null(c->note);
    ck_assert_uint_eq(c->sinks.count, 1);
    ck_assert_str_eq(c->sinks.items[0], "a");
    ck_assert(c->on);
    ck_assert_uint_eq(c->cap, 1000);
    ck_assert_double_eq(c->share, 0.1);
    ck_assert_int_eq(c->window_ns, INT64_C(10000000000));
    ck_assert_uint_eq(c->bytes, 64 << 20);
    ck_assert_str_eq(c->listen, "127.0.0.1:9478");
    ck_assert_int_eq(c->level, 1);
    ft_options_free(&table, c);
    ft_diag_free(diag);
}
END_TEST

START_TEST(reads_every_type)
{
    struct ft_diag *diag = ft_diag_new();
    struct config *c = load("name: 'x: y'\n"
                            "sinks: [p, q]\n"
                            "on: off\n"
                            "join: {cap: 2000000, share: 1e-3, window: 1.25s, flush: 250ms}\n"
                            "spool.bytes: 4KiB\n"
                            "http:\n"
                            "  listen: '[::1]:80'\n"
                            "log:\n"
                            "  level: debug\n"
                            "  a: {deep: 18446744073709551615}\n",
                            diag);

    if (!c)
        ck_abort_msg("%s", ft_diag_text(diag, 0));
    ck_assert_str_eq(c->name, "x: y");
    ck_assert_uint_eq(c->sinks.count, 2);
    ck_assert_str_eq(c->sinks.items[1], "q");
    ck_assert(!c->on);
    ck_assert_uint_eq(c->cap, 2000000);
    ck_assert_double_eq(c->share, 1e-3);
    ck_assert_int_eq(c->window_ns, 1250000000);
    ck_assert_int_eq(c->flush_ns, 250000000);
    ck_assert_uint_eq(c->bytes, 4096);
    ck_assert_str_eq(c->listen, "[::1]:80");
    ck_assert_int_eq(c->level, 2);
    ck_assert_uint_eq(c->deep, UINT64_MAX);
    ft_options_free(&table, c);
    ft_diag_free(diag);
}
END_TEST

START_TEST(complains_with_file_line_and_key)
{
    expect("joint:\n"
           "  cap: 1\n"
           "join:\n"
           "  capp: 1\n"
           "  cap: 0\n"
           "  window: 10\n"
           "  share: nan\n"
           "  flush: -1s\n"
           "quite_other: 1\n",
           "p.yaml:1: key 'joint': is not known; did you mean 'join'?\np.yaml:4: key 'join.capp': "
           "is not known; did you "
           "mean 'join.cap'?\np.yaml:5: key 'join.cap': '0' is not an integer from 1 to "
           "2000000\np.yaml:6: key 'join.window': '10' is not a duration (10s, 250ms, 5m, 1h) from "
           "100ms to 1h\np.yaml:7: key 'join.share': 'nan' is not a number from 0 to 1\np.yaml:8: "
           "key 'join.flush': '-1s' is not a duration (10s, 250ms, 5m, 1h)\np.yaml:9: key "
           "'quite_other': is not known\n");
    expect("on: maybe\n"
           "name: [a]\n"
           "sinks: {a: b}\n"
           "note:\n"
           "spool: {bytes: 4095}\n"
           "http: 9478\n"
           "log: {level: loud}\n"
           "spool.bytes: 1MiB\n"
           "nmae: x\n",
           "p.yaml:1: key 'on': 'maybe' is not true or false\n"
           "p.yaml:2: key 'name': has to be a text\n"
           "p.yaml:3: key 'sinks': has to be a list of texts\n"
           "p.yaml:4: key 'note': has no value; it takes a text\n"
           "p.yaml:5: key 'spool.bytes': '4095' is not a size in bytes (4KiB, 64MiB, 1GiB) of at "
           "least 4KiB\n"
           "p.yaml:6: key 'http': has to be a map of keys\n"
           "p.yaml:7: key 'log.level': 'loud' is not one of error, info, debug\n"
           "p.yaml:8: key 'spool.bytes': is given twice\n"
           "p.yaml:9: key 'nmae': is not known; did you mean 'name'?\n");
    expect("[]", "p.yaml:1: has to be a map of keys\n");
}
END_TEST

START_TEST(judges_endpoints_and_numbers_by_form)
{
    static const char *const good[] = {":9477", "host:0", "[fd00::1]:65535", "a.b-c.d:1"};
    static const char *const bad[] = {"9477",    "host:", "host:65536", "fd00::1:80",
                                      "[]:80",   "[::1]", "[::1:80",    "a b:80",
                                      "host:+1", "x]:1",  "::"};
    char text[128];

    for (size_t i = 0; i < sizeof(good) / sizeof(good[0]); i++) {
        struct ft_diag *diag = ft_diag_new();
        struct config *c;

        sprintf(text, "http.listen: '%s'", good[i]);
        c = load(text, diag);
        ck_assert_msg(c, "%s", good[i]);
        ck_assert_str_eq(c->listen, good[i]);
        ft_options_free(&table, c);
        ft_diag_free(diag);
    }
    for (size_t i = 0; i < sizeof(bad) / sizeof(bad[0]); i++) {
        char complaint[256];

        sprintf(text, "http.listen: '%s'", bad[i]);
        sprintf(complaint,
                "p.yaml:1: key 'http.listen': '%s' is not host:port, [v6]:port or :port\n", bad[i]);
        expect(text, complaint);
    }
    expect("log.a.deep: 18446744073709551616",
           "p.yaml:1: key 'log.a.deep': '18446744073709551616' is not an integer\n");
    expect("join.flush: 9999999999h",
           "p.yaml:1: key 'join.flush': '9999999999h' is not a duration (10s, 250ms, 5m, 1h)\n");
    expect("join.flush: 1.s",
           "p.yaml:1: key 'join.flush': '1.s' is not a duration (10s, 250ms, 5m, 1h)\n");
}
END_TEST

START_TEST(sets_from_the_command_line_win)
{
    char *items[] = {"join.cap=5", "sinks=[x, y]", "name=", "log.level=error"};
    char *bad[] = {"join.cap", "jion.cap=3", "on=perhaps", "jooin=1"};
    struct ft_strings sets = {items, 4};
    struct ft_diag *diag = ft_diag_new();
    struct ft_yaml *root = ft_yaml_parse("join: {cap: 7}", 14, "p.yaml", diag);
    struct config *c = ft_options_load(&table, root, &sets, diag, NULL);

    ck_assert_ptr_nonnull(c);
    ck_assert_uint_eq(c->cap, 5);
    ck_assert_uint_eq(c->sinks.count, 2);
    ck_assert_str_eq(c->name, "");
    ck_assert_int_eq(c->level, 0);
    ft_options_free(&table, c);
    sets = (struct ft_strings){bad, 4};
    ck_assert_ptr_null(ft_options_load(&table, root, &sets, diag, NULL));
    ck_assert_str_eq(ft_diag_text(diag, 0), "--set: 'join.cap' is not KEY=VALUE");
    ck_assert_str_eq(ft_diag_text(diag, 1),
                     "--set: key 'jion.cap': is not known; did you mean 'join.cap'?");
    ck_assert_str_eq(ft_diag_text(diag, 2), "--set: key 'on': 'perhaps' is not true or false");
    ck_assert_str_eq(ft_diag_text(diag, 3),
                     "--set: key 'jooin': is not known; did you mean 'join'?");
    ft_yaml_free(root);
    ft_diag_free(diag);
}
END_TEST

static char *print(const struct config *c)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    ft_options_print(&table, c, out);
    fclose(out);
    return text;
}

/* What is printed loads to what prints the same. */
static void check_round_trip(const char *yaml, const char *expected)
{
    struct ft_diag *diag = ft_diag_new();
    struct config *c = load(yaml, diag);
    struct config *again;
    char *first, *second;

    ck_assert_ptr_nonnull(c);
    first = print(c);
    if (expected)
        ck_assert_str_eq(first, expected);
    again = load(first, diag);
    if (!again)
        ck_abort_msg("%s\n%s", ft_diag_text(diag, 0), first);
    second = print(again);
    ck_assert_str_eq(first, second);
    ck_assert_str_eq(c->name, again->name);
    ck_assert_double_eq(c->share, again->share);
    ck_assert(!c->note == !again->note);
    free(first);
    free(second);
    ft_options_free(&table, c);
    ft_options_free(&table, again);
    ft_diag_free(diag);
}

START_TEST(prints_what_loads_to_the_same)
{
    check_round_trip("", "name: \"lab\"\n"
                         "# note:\n"
                         "sinks: [\"a\"]\n"
                         "on: true\n"
                         "join:\n"
                         "  cap: 1000\n"
                         "  share: 0.1\n"
                         "  window: 10s\n"
                         "  flush: 0ns\n"
                         "  late: 8\n"
                         "spool:\n"
                         "  bytes: 64MiB\n"
                         "http:\n"
                         "  listen: \"127.0.0.1:9478\"\n"
                         "log:\n"
                         "  level: info\n"
                         "  a:\n"
                         "    deep: 7\n"
                         "    deeper: 9\n");
    check_round_trip(
        "name: \"q\\\"b\\\\s\\n\\t\\x01\\x85\\xe9 #: ü\\u2028\\ufffe\\ufeff\\U0001f600\"\n"
        "note: null and void\n"
        "sinks: []\n"
        "join: {window: 1.234567891s, flush: 90m, share: 0.30000000000000004}\n"
        "spool: {bytes: 1GiB}\n",
        NULL);
    check_round_trip("note: \"null\"\nsinks: ['~', \"a, b\", ']']\nspool: {bytes: 12345}\n", NULL);
}
END_TEST

START_TEST(writes_a_manual_page_list)
{
    char *text = NULL;
    size_t len = 0;
    FILE *out = open_memstream(&text, &len);

    ft_options_mdoc(&table, out);
    fclose(out);
    ck_assert_ptr_nonnull(strstr(text, ".Bl -tag -width Ds\n"
                                       ".It Ic name : Ar text\n"
                                       "Name of it all.\nShown in each record.\n"
                                       "Takes a text.\n"
                                       "Default:\n.Li \"lab\" .\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n\\&.cap\n"));
    ck_assert_ptr_nonnull(strstr(text, ".Li \"[\"\"a\"\"]\" .\n"));
    ck_assert_ptr_nonnull(
        strstr(text, "Takes a duration (10s, 250ms, 5m, 1h) from 100ms to 1h.\n"));
    ck_assert_ptr_nonnull(strstr(text, "Takes one of error, info, debug.\n"));
    ck_assert_ptr_nonnull(strstr(text, "\n.El\n"));
    free(text);
}
END_TEST

FT_UNIT_MAIN("options", has_the_defaults, reads_every_type, complains_with_file_line_and_key,
             judges_endpoints_and_numbers_by_form, sets_from_the_command_line_win,
             prints_what_loads_to_the_same, writes_a_manual_page_list)
