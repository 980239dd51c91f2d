// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/diagnosis/tree.h"

#include <errno.h>
#include <math.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/grow.h"
#include "lib/base/task.h"

#define DEPTH_MAX    48
#define NUMBER_BYTES 64

int ft_tree_add(struct ft_tree *t, const struct ft_tree_node *node, uint32_t *at)
{
    struct ft_tree_node *nodes;

    if (t->count == (t->nodes_max ? t->nodes_max : FT_TREE_NODES_MAX))
        return -E2BIG;
    ft_task_spend(t->task, 1);
    nodes = ft_grow(t->nodes, t->count, &t->size, sizeof(*nodes));
    if (!nodes)
        return -ENOMEM;
    t->nodes = nodes;
    t->nodes[t->count] = *node;
    t->nodes[t->count].next = FT_TREE_NONE;
    if (node->kind == FT_TREE_LIST || node->kind == FT_TREE_DICT)
        if (node->count == 0)
            t->nodes[t->count].is.children.first = FT_TREE_NONE;
    *at = t->count++;
    return 0;
}

void ft_tree_append(struct ft_tree *t, uint32_t parent, uint32_t child)
{
    struct ft_tree_node *p = &t->nodes[parent];

    if (p->count == 0)
        p->is.children.first = child;
    else
        t->nodes[p->is.children.last].next = child;
    p->is.children.last = child;
    p->count++;
}

void ft_tree_free(struct ft_tree *t)
{
    free(t->nodes);
    *t = (struct ft_tree){0};
}

bool ft_tree_is(const struct ft_tree *t, uint32_t node, enum ft_tree_kind kind)
{
    return node < t->count && t->nodes[node].kind == kind;
}

uint32_t ft_tree_first(const struct ft_tree *t, uint32_t node)
{
    if (!ft_tree_is(t, node, FT_TREE_LIST) && !ft_tree_is(t, node, FT_TREE_DICT))
        return FT_TREE_NONE;
    return t->nodes[node].count ? t->nodes[node].is.children.first : FT_TREE_NONE;
}

uint32_t ft_tree_get(const struct ft_tree *t, uint32_t dict, const char *key)
{
    uint32_t at = ft_tree_is(t, dict, FT_TREE_DICT) ? ft_tree_first(t, dict) : FT_TREE_NONE;
    size_t len = strlen(key);

    for (uint32_t i = 0; at != FT_TREE_NONE && i + 1 < t->nodes[dict].count; i += 2) {
        const struct ft_tree_node *node = &t->nodes[at];

        if (node->kind == FT_TREE_TEXT && node->count == len &&
            memcmp(node->is.text, key, len) == 0)
            return node->next;
        at = node->next == FT_TREE_NONE ? FT_TREE_NONE : t->nodes[node->next].next;
    }
    return FT_TREE_NONE;
}

void ft_tree_text(const struct ft_tree *t, uint32_t node, char *to, size_t size)
{
    size_t n = ft_tree_is(t, node, FT_TREE_TEXT) ? t->nodes[node].count : 0;

    n = n < size ? n : size - 1;
    if (n > 0)
        memcpy(to, t->nodes[node].is.text, n);
    to[n] = '\0';
    /* A name ends where it would not be text. */
    for (size_t i = 0; i < n; i++)
        if ((unsigned char)to[i] < ' ' || (unsigned char)to[i] > '~')
            to[i] = '?';
}

bool ft_tree_number(const struct ft_tree *t, uint32_t node, int64_t *number)
{
    if (ft_tree_is(t, node, FT_TREE_REAL) && fabs(t->nodes[node].is.real) < 9e18) {
        *number = (int64_t)t->nodes[node].is.real;
        return true;
    }
    if (!ft_tree_is(t, node, FT_TREE_INT))
        return false;
    *number = t->nodes[node].is.number;
    return true;
}

struct json {
    struct ft_tree *t;
    char *at, *end;
};

static int value(struct json *j, unsigned depth, uint32_t *out);

static void skip_space(struct json *j)
{
    while (j->at < j->end && (*j->at == ' ' || *j->at == '\t' || *j->at == '\n' || *j->at == '\r'))
        j->at++;
}

static bool take(struct json *j, char c)
{
    skip_space(j);
    if (j->at == j->end || *j->at != c)
        return false;
    j->at++;
    return true;
}

/* Names need no more of Unicode than that it is not misread. */
static bool unescape(struct json *j, char **to)
{
    static const char from[] = "\"\\/bfnrt", into[] = "\"\\/\b\f\n\r\t";
    const char *found;

    if (j->at == j->end)
        return false;
    if (*j->at == 'u') {
        if (j->end - j->at < 5)
            return false;
        j->at += 5;
        *(*to)++ = '?';
        return true;
    }
    found = memchr(from, *j->at, sizeof(from) - 1);
    if (!found)
        return false;
    *(*to)++ = into[found - from];
    j->at++;
    return true;
}

/* Written over itself: what is unescaped is no longer than what it was. */
static int string(struct json *j, uint32_t *out)
{
    char *start = j->at, *to = j->at;

    while (j->at < j->end && *j->at != '"') {
        if ((unsigned char)*j->at < ' ')
            return -EINVAL;
        if (*j->at != '\\') {
            *to++ = *j->at++;
            continue;
        }
        j->at++;
        if (!unescape(j, &to))
            return -EINVAL;
    }
    if (j->at == j->end || to - start > INT32_MAX)
        return -EINVAL;
    j->at++;
    return ft_tree_add(j->t,
                       &(struct ft_tree_node){
                           .kind = FT_TREE_TEXT, .is.text = start, .count = (uint32_t)(to - start)},
                       out);
}

static int number(struct json *j, uint32_t *out)
{
    char text[NUMBER_BYTES], *end;
    struct ft_tree_node node = {.kind = FT_TREE_INT};
    size_t n = 0;

    while (j->at < j->end && n < sizeof(text) - 1 && *j->at && strchr("+-.0123456789eE", *j->at))
        text[n++] = *j->at++;
    text[n] = '\0';
    if (n == 0)
        return -EINVAL;
    errno = 0;
    node.is.number = strtoll(text, &end, 10);
    if (*end || errno) {
        node.kind = FT_TREE_REAL;
        node.is.real = strtod(text, &end);
    }
    return *end ? -EINVAL : ft_tree_add(j->t, &node, out);
}

static int word(struct json *j, uint32_t *out)
{
    static const struct {
        const char *text;
        struct ft_tree_node node;
    } words[] = {{"true", {.kind = FT_TREE_BOOL, .is.number = 1}},
                 {"false", {.kind = FT_TREE_BOOL}},
                 {"null", {.kind = FT_TREE_NULL}}};

    for (size_t i = 0; i < sizeof(words) / sizeof(words[0]); i++) {
        size_t n = strlen(words[i].text);

        if ((size_t)(j->end - j->at) < n || memcmp(j->at, words[i].text, n) != 0)
            continue;
        j->at += n;
        return ft_tree_add(j->t, &words[i].node, out);
    }
    return number(j, out);
}

static int children(struct json *j, unsigned depth, bool dict, uint32_t *out)
{
    struct ft_tree_node node = {.kind = dict ? FT_TREE_DICT : FT_TREE_LIST};
    int rc = ft_tree_add(j->t, &node, out);
    uint32_t child;

    if (rc || take(j, dict ? '}' : ']'))
        return rc;
    do {
        if (dict) {
            if (!take(j, '"'))
                return -EINVAL;
            rc = string(j, &child);
            if (rc)
                return rc;
            ft_tree_append(j->t, *out, child);
            if (!take(j, ':'))
                return -EINVAL;
        }
        rc = value(j, depth + 1, &child);
        if (rc)
            return rc;
        ft_tree_append(j->t, *out, child);
    } while (take(j, ','));
    return take(j, dict ? '}' : ']') ? 0 : -EINVAL;
}

static int value(struct json *j, unsigned depth, uint32_t *out)
{
    skip_space(j);
    if (depth > DEPTH_MAX || j->at == j->end)
        return depth > DEPTH_MAX ? -E2BIG : -EINVAL;
    switch (*j->at) {
    case '{':
    case '[':
        return children(j, depth, *j->at++ == '{', out);
    case '"':
        j->at++;
        return string(j, out);
    default:
        return word(j, out);
    }
}

int ft_tree_of_json(struct ft_tree *t, char *text, size_t len)
{
    struct json j = {.t = t, .at = text, .end = text + len};
    int rc;

    *t = (struct ft_tree){.nodes_max = t->nodes_max, .task = t->task};
    rc = value(&j, 0, &t->root);
    skip_space(&j);
    if (rc == 0 && j.at != j.end)
        rc = -EINVAL;
    if (rc)
        ft_tree_free(t);
    return rc;
}
