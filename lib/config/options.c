// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/config/options.h"

#include <assert.h>
#include <errno.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/near.h"
#include "lib/config/options_impl.h"

#define KEY_BYTES 128

struct load {
    const struct ft_option_table *table;
    struct ft_diag *diag;
    char *config;
    bool *seen;      /* by option, set by the file */
    unsigned *lines; /* by option; NULL: nobody asks */
};

bool ft_strings_equal(const struct ft_strings *a, const struct ft_strings *b)
{
    if (a->count != b->count)
        return false;
    for (size_t i = 0; i < a->count; i++)
        if (strcmp(a->items[i], b->items[i]) != 0)
            return false;
    return true;
}

size_t ft_options_count(const struct ft_option_table *table)
{
    size_t n = 0;

    while (table->options[n].key)
        n++;
    return n;
}

static const struct ft_option *find_option(const struct ft_option_table *table, const char *key)
{
    for (const struct ft_option *o = table->options; o->key; o++)
        if (strcmp(o->key, key) == 0)
            return o;
    return NULL;
}

static bool is_section(const struct ft_option_table *table, const char *key)
{
    size_t len = strlen(key);

    for (const struct ft_option *o = table->options; o->key; o++)
        if (strncmp(o->key, key, len) == 0 && o->key[len] == '.')
            return true;
    return false;
}

/* The known key or section that a mistyped one is close to; near->name NULL: none is. */
static void find_near(const struct ft_option_table *table, const char *key, struct ft_near *near)
{
    ft_near_begin(near, key);
    for (const struct ft_option *o = table->options; o->key; o++) {
        ft_near_try(near, o->key, strlen(o->key));
        for (const char *dot = strchr(o->key, '.'); dot; dot = strchr(dot + 1, '.'))
            ft_near_try(near, o->key, (size_t)(dot - o->key));
    }
}

static void complain_unknown(const struct load *l, const char *file, unsigned line, const char *key)
{
    struct ft_near near;

    find_near(l->table, key, &near);
    if (near.name)
        ft_diag_add(l->diag, file, line, "key '%s': is not known; did you mean '%.*s'?", key,
                    (int)near.len, near.name);
    else
        ft_diag_add(l->diag, file, line, "key '%s': is not known", key);
}

static void complain_value(const struct load *l, const struct ft_option *o, const char *file,
                           unsigned line, const char *text)
{
    char range[FT_VALUE_RANGE_BYTES];

    ft_value_range(o, range);
    ft_diag_add(l->diag, file, line, "key '%s': '%.100s' is not %s", o->key, text ? text : "",
                range);
}

static void set_one(struct load *l, const struct ft_option *o, const char *file, unsigned line,
                    const char *text)
{
    int err = ft_value_set(o, text, l->config + o->offset);

    if (err == -ENOMEM)
        ft_diag_add(l->diag, file, line, "key '%s': out of memory", o->key);
    else if (err < 0)
        complain_value(l, o, file, line, text);
}

static bool is_list(const struct ft_option *o)
{
    return o->type == FT_OPTION_STRINGS || o->type == FT_OPTION_MAP;
}

/* Each member of a map is an item KEY=VALUE. */
static void set_map(struct load *l, const struct ft_option *o, const struct ft_yaml *map)
{
    ft_value_clear(o, l->config + o->offset);
    for (size_t i = 0; i < ft_yaml_count(map); i++) {
        const struct ft_yaml *child = ft_yaml_item(map, i);
        char *item = NULL;

        if (!ft_yaml_text(child) || ft_yaml_is_null(child))
            ft_diag_add(l->diag, ft_yaml_file(map), ft_yaml_key_line(map, i),
                        "key '%s.%s': has to be a text", o->key, ft_yaml_key(map, i));
        else if (asprintf(&item, "%s=%s", ft_yaml_key(map, i), ft_yaml_text(child)) < 0)
            ft_diag_add(l->diag, ft_yaml_file(map), ft_yaml_key_line(map, i), "out of memory");
        else
            set_one(l, o, ft_yaml_file(map), ft_yaml_key_line(map, i), item);
        free(item);
    }
}

static void set_node(struct load *l, const struct ft_option *o, const struct ft_yaml *node)
{
    const char *file = ft_yaml_file(node);
    const char *text = ft_yaml_text(node);
    char range[FT_VALUE_RANGE_BYTES];

    if (ft_yaml_is_null(node)) {
        ft_value_range(o, range);
        ft_yaml_complain(l->diag, node, o->key, "has no value; it takes %s", range);
        return;
    }
    if (text) {
        if (is_list(o))
            ft_value_clear(o, l->config + o->offset);
        set_one(l, o, file, ft_yaml_line(node), text);
        return;
    }
    if (o->type == FT_OPTION_MAP && ft_yaml_kind(node) == FT_YAML_MAP) {
        set_map(l, o, node);
        return;
    }
    if (!is_list(o) || ft_yaml_kind(node) != FT_YAML_LIST) {
        ft_value_range(o, range);
        ft_yaml_complain(l->diag, node, o->key, "has to be %s", range);
        return;
    }
    ft_value_clear(o, l->config + o->offset);
    for (size_t i = 0; i < ft_yaml_count(node); i++) {
        const struct ft_yaml *item = ft_yaml_item(node, i);

        if (ft_yaml_text(item) && !ft_yaml_is_null(item))
            set_one(l, o, file, ft_yaml_line(item), ft_yaml_text(item));
        else
            ft_yaml_complain(l->diag, item, o->key, "item %zu has to be a text", i);
    }
}

static void set_line(const struct load *l, const struct ft_option *o, unsigned line)
{
    if (l->lines)
        l->lines[o - l->table->options] = line;
}

static void read_map(struct load *l, const struct ft_yaml *map, const char *prefix)
{
    for (size_t i = 0; i < ft_yaml_count(map); i++) {
        const struct ft_yaml *child = ft_yaml_item(map, i);
        unsigned line = ft_yaml_key_line(map, i);
        const struct ft_option *o;
        char key[KEY_BYTES];

        snprintf(key, sizeof(key), "%s%s%s", prefix, *prefix ? "." : "", ft_yaml_key(map, i));
        o = find_option(l->table, key);
        if (o && l->seen[o - l->table->options]) {
            ft_diag_add(l->diag, ft_yaml_file(map), line, "key '%s': is given twice", key);
        } else if (o) {
            l->seen[o - l->table->options] = true;
            set_line(l, o, line);
            set_node(l, o, child);
        } else if (!is_section(l->table, key)) {
            complain_unknown(l, ft_yaml_file(map), line, key);
        } else if (ft_yaml_kind(child) == FT_YAML_MAP) {
            read_map(l, child, key);
        } else if (!ft_yaml_is_null(child)) {
            ft_yaml_complain(l->diag, child, key, "has to be a map of keys");
        }
    }
}

/* "KEY=VALUE" of the command line; the value of a list is a YAML list or one item. */
static void read_set(struct load *l, const char *text)
{
    const char *equals = strchr(text, '=');
    const struct ft_option *o;
    char key[KEY_BYTES];

    if (!equals || (size_t)(equals - text) >= sizeof(key)) {
        ft_diag_add(l->diag, "--set", 0, "'%.100s' is not KEY=VALUE", text);
        return;
    }
    memcpy(key, text, (size_t)(equals - text));
    key[equals - text] = '\0';
    o = find_option(l->table, key);
    if (o)
        set_line(l, o, FT_OPTIONS_SET);
    if (!o) {
        complain_unknown(l, "--set", 0, key);
    } else if (is_list(o) && equals[1] == '[') {
        struct ft_yaml *list = ft_yaml_parse(equals + 1, strlen(equals + 1), "--set", l->diag);

        if (list)
            set_node(l, o, list);
        ft_yaml_free(list);
    } else {
        if (is_list(o))
            ft_value_clear(o, l->config + o->offset);
        set_one(l, o, "--set", 0, equals + 1);
    }
}

/* A default is part of the program: one that does not read is our bug. */
static int set_default(const struct ft_option *o, char *config)
{
    struct ft_diag *diag;
    struct ft_yaml *node;
    int err = 0;

    if (!o->standard)
        return 0;
    if (!is_list(o)) {
        err = ft_value_set(o, o->standard, config + o->offset);
        assert(err != -EINVAL);
        return err;
    }
    diag = ft_diag_new();
    node = diag ? ft_yaml_parse(o->standard, strlen(o->standard), "default", diag) : NULL;
    if (!node)
        err = -ENOMEM;
    else if (ft_yaml_text(node))
        err = ft_value_set(o, ft_yaml_text(node), config + o->offset);
    for (size_t i = 0; node && err == 0 && i < ft_yaml_count(node); i++)
        err = ft_value_set(o, ft_yaml_text(ft_yaml_item(node, i)), config + o->offset);
    ft_yaml_free(node);
    ft_diag_free(diag);
    return err;
}

void *ft_options_load(const struct ft_option_table *table, const struct ft_yaml *root,
                      const struct ft_strings *sets, struct ft_diag *diag, unsigned *lines)
{
    struct load l = {.table = table, .diag = diag, .lines = lines};
    size_t before = ft_diag_count(diag);
    bool ok;

    l.config = calloc(1, table->struct_bytes);
    l.seen = calloc(ft_options_count(table) + 1, sizeof(*l.seen));
    ok = l.config && l.seen;
    for (const struct ft_option *o = table->options; ok && o->key; o++)
        ok = set_default(o, l.config) == 0;
    if (!ok)
        ft_diag_add(diag, NULL, 0, "%s: out of memory", table->program);
    else if (root && ft_yaml_kind(root) != FT_YAML_MAP)
        ft_yaml_complain(diag, root, NULL, "has to be a map of keys");
    else if (root)
        read_map(&l, root, "");
    for (size_t i = 0; ok && sets && i < sets->count; i++)
        read_set(&l, sets->items[i]);
    free(l.seen);
    if (ft_diag_count(diag) == before)
        return l.config;
    ft_options_free(table, l.config);
    return NULL;
}

void ft_options_free(const struct ft_option_table *table, void *config)
{
    if (!config)
        return;
    for (const struct ft_option *o = table->options; o->key; o++)
        ft_value_clear(o, (char *)config + o->offset);
    free(config);
}

static void print_option(const struct ft_option *o, const char *name, const void *config, FILE *out)
{
    const void *target = (const char *)config + o->offset;

    if ((o->type == FT_OPTION_STRING || o->type == FT_OPTION_ENDPOINT) && !*(char *const *)target) {
        fprintf(out, "# %s:\n", name);
        return;
    }
    fprintf(out, "%s: ", name);
    ft_value_print(o, target, out);
    fputc('\n', out);
}

/* The first option of a section. */
static const struct ft_option *first_of(const struct ft_option_table *table, const char *key,
                                        size_t len)
{
    const struct ft_option *o = table->options;

    while (strncmp(o->key, key, len) != 0)
        o++;
    return o;
}

/* The options of a section, whose keys begin with so many bytes; those of one in it where the first
 * of them stands, as they need not stand together in the table. */
static void print_section(const struct ft_option_table *table, const char *section, size_t len,
                          int depth, const void *config, FILE *out)
{
    for (const struct ft_option *o = table->options; o->key; o++) {
        const char *name, *point;
        size_t inner;

        if (strncmp(o->key, section, len) != 0)
            continue;
        name = o->key + len;
        point = strchr(name, '.');
        inner = point ? (size_t)(point + 1 - o->key) : 0;
        if (point && first_of(table, o->key, inner) != o)
            continue;
        fprintf(out, "%*s", 2 * depth, "");
        if (point) {
            fprintf(out, "%.*s:\n", (int)(point - name), name);
            print_section(table, o->key, inner, depth + 1, config, out);
        } else {
            print_option(o, name, config, out);
        }
    }
}

void ft_options_print(const struct ft_option_table *table, const void *config, FILE *out)
{
    print_section(table, "", 0, 0, config, out);
}

/* Text as mdoc(7) takes it: each sentence on a line of its own, no line a request by accident. */
static void print_roff(const char *text, FILE *out)
{
    bool start = true;

    for (const char *c = text; *c; c++) {
        if (start && (*c == '.' || *c == '\''))
            fputs("\\&", out);
        start = false;
        if (*c == '\\') {
            fputs("\\e", out);
        } else if (*c == '\n' || (*c == ' ' && c > text && c[-1] == '.')) {
            fputc('\n', out);
            start = true;
        } else {
            fputc(*c, out);
        }
    }
    fputc('\n', out);
}

static void print_default(const struct ft_option *o, FILE *out)
{
    if (!o->standard || !*o->standard) {
        fputs("Not set by default.\n", out);
        return;
    }
    fputs("Default:\n.Li \"", out);
    /* Inside a quoted argument a quote is doubled (roff(7)). */
    for (const char *c = o->standard; *c; c++)
        fputs(*c == '"' ? "\"\"" : *c == '\\' ? "\\e" : (char[]){*c, '\0'}, out);
    fputs("\" .\n", out);
}

void ft_options_mdoc(const struct ft_option_table *table, FILE *out)
{
    fputs(".Bl -tag -width Ds\n", out);
    for (const struct ft_option *o = table->options; o->key; o++) {
        char range[FT_VALUE_RANGE_BYTES];

        fprintf(out, ".It Ic %s : Ar %s\n", o->key, ft_value_type(o));
        print_roff(o->help, out);
        ft_value_range(o, range);
        fputs("Takes ", out);
        fputs(range, out);
        fputs(".\n", out);
        print_default(o, out);
    }
    fputs(".El\n", out);
}
