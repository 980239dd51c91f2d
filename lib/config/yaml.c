// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/config/yaml.h"

#include <errno.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <yaml.h>

#include "lib/base/grow.h"
#include "lib/base/writer.h"

#define FILE_MAX_BYTES ((size_t)64 << 20)
#define DEPTH_MAX      32
#define NODES_MAX      (4u << 20)
/* Longer ones are cut: what they quote comes from the file. */
#define COMPLAINT_BYTES 512

struct child {
    char *key; /* NULL in a list */
    unsigned key_line;
    struct ft_yaml *node;
};

struct ft_yaml {
    enum ft_yaml_kind kind;
    unsigned line;
    bool plain;
    const char *file;
    char *text;
    struct child *children;
    size_t count;
    size_t size;
};

/* The root owns the name of the file, behind itself. */
struct document {
    struct ft_yaml root;
    char *file;
};

struct parse {
    yaml_parser_t parser;
    struct ft_diag *diag;
    const char *text;
    size_t len;
    const char *file;
    struct document *document;
    struct ft_yaml *open[DEPTH_MAX];
    unsigned depth;
    unsigned nodes;
    char *key; /* of the map on top, waiting for its value */
    unsigned key_line;
    bool have_root;
};

static void free_content(struct ft_yaml *node)
{
    for (size_t i = 0; i < node->count; i++) {
        free(node->children[i].key);
        free_content(node->children[i].node);
        free(node->children[i].node);
    }
    free(node->children);
    free(node->text);
}

void ft_yaml_free(struct ft_yaml *root)
{
    if (!root)
        return;
    free_content(root);
    free(((struct document *)root)->file);
    free(root);
}

static bool complain(struct parse *p, unsigned line, const char *what)
{
    ft_diag_add(p->diag, p->file, line, "%s", what);
    return false;
}

static bool out_of_memory(struct parse *p)
{
    return complain(p, 0, "out of memory");
}

static struct child *add_child(struct ft_yaml *parent)
{
    struct child *children =
        ft_grow(parent->children, parent->count, &parent->size, sizeof(*children));

    if (!children)
        return NULL;
    parent->children = children;
    return &parent->children[parent->count];
}

/* Makes the node where the next event belongs: the root, or a child of what is open. */
static struct ft_yaml *add_node(struct parse *p, enum ft_yaml_kind kind, unsigned line)
{
    struct ft_yaml *node, *parent;
    struct child *child;

    if (++p->nodes > NODES_MAX) {
        complain(p, line, "the file has too many values");
        return NULL;
    }
    if (p->depth == 0) {
        node = &p->document->root;
        p->have_root = true;
    } else {
        parent = p->open[p->depth - 1];
        child = add_child(parent);
        node = child ? calloc(1, sizeof(*node)) : NULL;
        if (!node) {
            out_of_memory(p);
            return NULL;
        }
        *child = (struct child){.key = p->key, .key_line = p->key_line, .node = node};
        p->key = NULL;
        parent->count++;
    }
    node->kind = kind;
    node->line = line;
    node->file = p->document->file;
    return node;
}

static bool open_node(struct parse *p, enum ft_yaml_kind kind, unsigned line)
{
    struct ft_yaml *node;

    if (p->depth > 0 && p->open[p->depth - 1]->kind == FT_YAML_MAP && !p->key)
        return complain(p, line, "a key is a word, not a list or map");
    if (p->depth == DEPTH_MAX)
        return complain(p, line, "nested too deeply");
    node = add_node(p, kind, line);
    if (!node)
        return false;
    p->open[p->depth++] = node;
    return true;
}

static bool add_scalar(struct parse *p, const yaml_event_t *event, unsigned line)
{
    const char *value = (const char *)event->data.scalar.value;
    struct ft_yaml *node;
    char *text;

    if (memchr(value, 0, event->data.scalar.length))
        return complain(p, line, "a zero byte in a value");
    text = strdup(value);
    if (!text)
        return out_of_memory(p);
    if (p->depth > 0 && p->open[p->depth - 1]->kind == FT_YAML_MAP && !p->key) {
        p->key = text;
        p->key_line = line;
        return true;
    }
    node = add_node(p, FT_YAML_SCALAR, line);
    if (!node) {
        free(text);
        return false;
    }
    node->text = text;
    node->plain = event->data.scalar.style == YAML_PLAIN_SCALAR_STYLE;
    return true;
}

static int by_key_then_line(const void *a, const void *b)
{
    const struct child *x = *(const struct child *const *)a, *y = *(const struct child *const *)b;
    int order = strcmp(x->key, y->key);

    /* Of two equal keys on a line the one that came later is the complaint. */
    return order ? order : x < y ? -1 : x > y;
}

/* Duplicate keys do not end the parse, so that all of them are named. */
static bool close_node(struct parse *p)
{
    const struct ft_yaml *node = p->open[--p->depth];
    const struct child **sorted;

    if (node->kind != FT_YAML_MAP || node->count < 2)
        return true;
    sorted = malloc(node->count * sizeof(*sorted));
    if (!sorted)
        return out_of_memory(p);
    for (size_t i = 0; i < node->count; i++)
        sorted[i] = &node->children[i];
    qsort(sorted, node->count, sizeof(*sorted), by_key_then_line);
    for (size_t i = 1; i < node->count; i++)
        if (strcmp(sorted[i]->key, sorted[i - 1]->key) == 0)
            ft_diag_add(p->diag, p->file, sorted[i]->key_line,
                        "key '%.200s': is given twice (first in line %u)", sorted[i]->key,
                        sorted[i - 1]->key_line);
    free(sorted);
    return true;
}

static bool take_event(struct parse *p, const yaml_event_t *event)
{
    unsigned line = (unsigned)event->start_mark.line + 1;

    switch (event->type) {
    case YAML_DOCUMENT_START_EVENT:
        return !p->have_root || complain(p, line, "more than one document");
    case YAML_SCALAR_EVENT:
        if (event->data.scalar.anchor)
            return complain(p, line, "anchors and aliases are not supported");
        return add_scalar(p, event, line);
    case YAML_SEQUENCE_START_EVENT:
        if (event->data.sequence_start.anchor)
            return complain(p, line, "anchors and aliases are not supported");
        return open_node(p, FT_YAML_LIST, line);
    case YAML_MAPPING_START_EVENT:
        if (event->data.mapping_start.anchor)
            return complain(p, line, "anchors and aliases are not supported");
        return open_node(p, FT_YAML_MAP, line);
    case YAML_SEQUENCE_END_EVENT:
    case YAML_MAPPING_END_EVENT:
        return close_node(p);
    case YAML_ALIAS_EVENT:
        return complain(p, line, "anchors and aliases are not supported");
    default:
        return true;
    }
}

static bool is_without_colon(const yaml_parser_t *y)
{
    return y->problem && strcmp(y->problem, "could not find expected ':'") == 0;
}

/* Of what cannot be in a file at all the library says but at which byte it is, and of a key without
 * its colon where the next one begins. */
static unsigned line_of_problem(const struct parse *p)
{
    const yaml_parser_t *y = &p->parser;
    unsigned line = 1;

    if (is_without_colon(y))
        return (unsigned)y->context_mark.line + 1;
    if (y->error != YAML_READER_ERROR)
        return (unsigned)y->problem_mark.line + 1;
    for (size_t i = 0; i < y->problem_offset && i < p->len; i++)
        line += p->text[i] == '\n';
    return line;
}

/* The blanks before what stands in a line. */
static bool has_tab(const struct parse *p, unsigned line)
{
    size_t at = 0;

    for (unsigned n = 1; n < line && at < p->len; at++)
        n += p->text[at] == '\n';
    while (at < p->len && p->text[at] == ' ')
        at++;
    return at < p->len && p->text[at] == '\t';
}

/* What the library's words mean for the file. */
static const char *hint(const struct parse *p, unsigned line)
{
    const yaml_parser_t *y = &p->parser;

    if (has_tab(p, line))
        return "; the line begins with a tab: YAML is indented by blanks";
    if (is_without_colon(y))
        return "; a key needs a colon and a blank behind it";
    if (y->problem && strncmp(y->problem, "mapping values are not allowed", 30) == 0)
        return "; a key needs a colon and a blank behind it, in the line before, too, and a text "
               "with ': ' in it needs quotes";
    return "";
}

static bool syntax_error(struct parse *p)
{
    const yaml_parser_t *y = &p->parser;
    unsigned line = line_of_problem(p);

    if (y->error == YAML_MEMORY_ERROR)
        return out_of_memory(p);
    ft_diag_add(p->diag, p->file, line, "not valid YAML: %s%s%s%s",
                y->problem ? y->problem : "unreadable", y->context ? " " : "",
                y->context ? y->context : "", hint(p, line));
    return false;
}

static bool take_events(struct parse *p)
{
    bool more = true, ok = true;

    while (more && ok) {
        yaml_event_t event;

        if (!yaml_parser_parse(&p->parser, &event))
            return syntax_error(p);
        more = event.type != YAML_STREAM_END_EVENT;
        ok = take_event(p, &event);
        yaml_event_delete(&event);
    }
    return ok;
}

struct ft_yaml *ft_yaml_parse(const char *text, size_t len, const char *file, struct ft_diag *diag)
{
    struct parse p = {.diag = diag, .text = text, .len = len, .file = file};
    size_t before = ft_diag_count(diag);
    bool ok;

    if (len > FILE_MAX_BYTES) {
        ft_diag_add(diag, file, 0, "is larger than 64 MiB");
        return NULL;
    }
    p.document = calloc(1, sizeof(*p.document));
    if (p.document)
        p.document->file = strdup(file);
    if (!p.document || !p.document->file || !yaml_parser_initialize(&p.parser)) {
        out_of_memory(&p);
        ft_yaml_free(p.document ? &p.document->root : NULL);
        return NULL;
    }
    p.document->root = (struct ft_yaml){.kind = FT_YAML_MAP, .line = 1, .file = p.document->file};
    yaml_parser_set_input_string(&p.parser, (const unsigned char *)text, len);
    ok = take_events(&p);
    yaml_parser_delete(&p.parser);
    free(p.key);
    if (!ok || ft_diag_count(diag) != before) {
        ft_yaml_free(&p.document->root);
        return NULL;
    }
    /* A file of comments only. */
    if (ft_yaml_is_null(&p.document->root)) {
        free(p.document->root.text);
        p.document->root.text = NULL;
        p.document->root.kind = FT_YAML_MAP;
    }
    return &p.document->root;
}

/* Reads to the end or one byte over the cap; -errno. */
static int read_all(FILE *in, struct ft_writer *w)
{
    char part[16384];
    size_t n;

    while ((n = fread(part, 1, sizeof(part), in)) > 0 && ft_writer_ok(w))
        ft_write_bytes(w, part, n);
    if (ferror(in))
        return errno ? -errno : -EIO;
    return ft_writer_ok(w) ? 0 : -EFBIG;
}

struct ft_yaml *ft_yaml_load(const char *file, struct ft_diag *diag)
{
    bool standard = strcmp(file, "-") == 0;
    const char *name = standard ? "standard input" : file;
    FILE *in = standard ? stdin : fopen(file, "re");
    struct ft_yaml *root = NULL;
    struct ft_writer w;
    int err;

    if (!in) {
        ft_diag_add(diag, name, 0, "%s", strerror(errno));
        return NULL;
    }
    ft_writer_init(&w, FILE_MAX_BYTES + 1);
    errno = 0;
    err = read_all(in, &w);
    if (err == -EFBIG)
        ft_diag_add(diag, name, 0, "is larger than 64 MiB");
    else if (err < 0)
        ft_diag_add(diag, name, 0, "%s", strerror(-err));
    else
        root = ft_yaml_parse(w.bytes ? (const char *)w.bytes : "", w.len, name, diag);
    ft_writer_free(&w);
    if (!standard)
        fclose(in);
    return root;
}

enum ft_yaml_kind ft_yaml_kind(const struct ft_yaml *node)
{
    return node->kind;
}

unsigned ft_yaml_line(const struct ft_yaml *node)
{
    return node->line;
}

const char *ft_yaml_file(const struct ft_yaml *node)
{
    return node->file;
}

const char *ft_yaml_text(const struct ft_yaml *node)
{
    return node->text;
}

bool ft_yaml_is_null(const struct ft_yaml *node)
{
    return node->kind == FT_YAML_SCALAR && node->plain &&
           (*node->text == '\0' || strcmp(node->text, "~") == 0 || strcmp(node->text, "null") == 0);
}

size_t ft_yaml_count(const struct ft_yaml *node)
{
    return node->count;
}

const struct ft_yaml *ft_yaml_item(const struct ft_yaml *node, size_t i)
{
    return node->children[i].node;
}

const char *ft_yaml_key(const struct ft_yaml *node, size_t i)
{
    return node->children[i].key;
}

unsigned ft_yaml_key_line(const struct ft_yaml *node, size_t i)
{
    return node->children[i].key_line;
}

const struct ft_yaml *ft_yaml_get(const struct ft_yaml *node, const char *key)
{
    if (node->kind != FT_YAML_MAP)
        return NULL;
    for (size_t i = 0; i < node->count; i++)
        if (strcmp(node->children[i].key, key) == 0)
            return node->children[i].node;
    return NULL;
}

void ft_yaml_complain(struct ft_diag *diag, const struct ft_yaml *node, const char *key,
                      const char *format, ...)
{
    char text[COMPLAINT_BYTES];
    va_list args;

    va_start(args, format);
    vsnprintf(text, sizeof(text), format, args);
    va_end(args);
    if (key)
        ft_diag_add(diag, node->file, node->line, "key '%.200s': %s", key, text);
    else
        ft_diag_add(diag, node->file, node->line, "%s", text);
}
