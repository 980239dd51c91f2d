// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "cli/output/answer.h"

#include <errno.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "cli/output/safe.h"

struct ft_answer {
    json_t *root;
};

/* A value is Jansson's own node under a name that keeps its header in this file. */
static const json_t *node(const struct ft_value *value)
{
    return (const json_t *)value;
}

struct ft_answer *ft_answer_parse(const char *text, size_t len, char *error, size_t error_bytes)
{
    struct ft_answer *answer = calloc(1, sizeof(*answer));
    json_error_t why;

    if (!answer) {
        snprintf(error, error_bytes, "no memory");
        return NULL;
    }
    answer->root = json_loadb(text, len, JSON_REJECT_DUPLICATES, &why);
    if (!answer->root) {
        snprintf(error, error_bytes, "not JSON, line %d: %s", why.line, why.text);
    } else if (!json_is_object(answer->root)) {
        snprintf(error, error_bytes, "not a JSON object");
        json_decref(answer->root);
        answer->root = NULL;
    }
    if (!answer->root) {
        free(answer);
        return NULL;
    }
    return answer;
}

static void clean_text(json_t *value)
{
    char *text = strdup(json_string_value(value));

    if (text)
        ft_safe_text(text);
    /* Without memory nothing is shown. */
    json_string_set_nocheck(value, text ? text : "");
    free(text);
}

/* The daemon's answers are a few levels deep; the parser has a limit of its own. */
static void clean(json_t *value)
{
    const char *key;
    json_t *member;
    size_t i;

    if (json_is_string(value))
        clean_text(value);
    json_array_foreach(value, i, member) clean(member);
    json_object_foreach(value, key, member) clean(member);
}

void ft_answer_clean(struct ft_answer *answer)
{
    clean(answer->root);
}

int ft_answer_put(struct ft_answer *answer, const char *name, const struct ft_value *value)
{
    if (!value) {
        json_object_del(answer->root, name);
        return 0;
    }
    return json_object_set(answer->root, name, (json_t *)(uintptr_t)value) ? -ENOMEM : 0;
}

void ft_answer_keep(struct ft_answer *answer, const bool *keep)
{
    json_t *records = json_object_get(answer->root, "records");

    for (size_t i = json_array_size(records); i > 0; i--)
        if (!keep[i - 1])
            json_array_remove(records, i - 1);
}

void ft_answer_free(struct ft_answer *answer)
{
    if (!answer)
        return;
    json_decref(answer->root);
    free(answer);
}

const struct ft_value *ft_answer_root(const struct ft_answer *answer)
{
    return (const struct ft_value *)answer->root;
}

const struct ft_value *ft_value_get(const struct ft_value *object, const char *name)
{
    return (const struct ft_value *)json_object_get(node(object), name);
}

size_t ft_value_count(const struct ft_value *list)
{
    return json_array_size(node(list));
}

const struct ft_value *ft_value_at(const struct ft_value *list, size_t i)
{
    return (const struct ft_value *)json_array_get(node(list), i);
}

const char *ft_value_text(const struct ft_value *value)
{
    return json_string_value(node(value));
}

const char *ft_value_str(const struct ft_value *object, const char *name)
{
    return ft_value_text(ft_value_get(object, name));
}

bool ft_value_uint(const struct ft_value *object, const char *name, uint64_t *out)
{
    const json_t *v = node(ft_value_get(object, name));

    if (!json_is_integer(v) || json_integer_value(v) < 0)
        return false;
    *out = (uint64_t)json_integer_value(v);
    return true;
}

bool ft_value_real(const struct ft_value *object, const char *name, double *out)
{
    const json_t *v = node(ft_value_get(object, name));

    if (!json_is_number(v))
        return false;
    *out = json_number_value(v);
    return true;
}

bool ft_value_true(const struct ft_value *object, const char *name)
{
    return json_is_true(node(ft_value_get(object, name)));
}

bool ft_value_is(const struct ft_value *object, const char *name, const char *text)
{
    const char *s = ft_value_str(object, name);

    return s && strcmp(s, text) == 0;
}

char *ft_value_dump(const struct ft_value *value)
{
    /* The daemon writes at most 6 significant digits: 15 give them back as they were. */
    return json_dumps(node(value), JSON_COMPACT | JSON_ENCODE_ANY | JSON_REAL_PRECISION(15));
}
