// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/kafka/registry.h"

#include <errno.h>
#include <event2/http.h>
#include <jansson.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/kafka/registry_answer.h"

#define NS_PER_S     INT64_C(1000000000)
#define TIMEOUT_NS   (10 * NS_PER_S)
#define WAIT_MIN_NS  NS_PER_S
#define WAIT_MAX_NS  (30 * NS_PER_S)
#define ANSWER_BYTES ((size_t)1 << 20) /* who looks a schema up gets it back as well */
#define CONTENT_TYPE "application/vnd.schemaregistry.v1+json"
#define SUBJECTS_MAX 1024

struct subject {
    char *name, *url, *body;
    uint32_t id; /* 0: not known */
};

struct ft_registry {
    struct ft_web_client *http;
    struct ft_watch *again;
    char *url;
    bool registers;
    void (*on_error)(void *arg, const char *text);
    void *arg;
    struct subject *subjects; /* their room doubles */
    size_t asked;             /* the one that is asked for */
    bool busy;
    int64_t wait_ns;
    struct ft_registry_stats stats;
    char trouble[FT_REGISTRY_ERROR_BYTES];
    size_t troubled; /* the one that it is of */
};

static void ask_next(struct ft_registry *r);

/* The others are asked for before this one is again: what the registry does not take holds up none.
 */
static void fail(struct ft_registry *r, const char *reason)
{
    r->stats.failures++;
    r->troubled = r->asked;
    snprintf(r->trouble, sizeof(r->trouble), "subject '%s': %s", r->subjects[r->asked].name,
             reason);
    if (r->on_error)
        r->on_error(r->arg, r->trouble);
    r->asked = (r->asked + 1) % r->stats.subjects;
    ft_watch_once_arm(r->again, r->wait_ns);
    r->wait_ns = r->wait_ns * 2 < WAIT_MAX_NS ? r->wait_ns * 2 : WAIT_MAX_NS;
}

static void take_answer(void *arg, const struct ft_web_answer *answer)
{
    struct ft_registry *r = arg;
    char error[FT_REGISTRY_ERROR_BYTES];

    r->busy = false;
    if (!answer->status) {
        fail(r, answer->error);
        return;
    }
    if (ft_registry_answer_read(answer->status, answer->body, answer->len,
                                &r->subjects[r->asked].id, error, sizeof(error)) < 0) {
        fail(r, error);
        return;
    }
    r->stats.known++;
    r->wait_ns = WAIT_MIN_NS;
    ask_next(r);
}

static void ask_next(struct ft_registry *r)
{
    int rc;

    if (r->busy || ft_registry_ready(r))
        return;
    while (r->subjects[r->asked].id)
        r->asked = (r->asked + 1) % r->stats.subjects;
    r->stats.requests++;
    rc = ft_web_client_post(r->http, r->subjects[r->asked].url, r->subjects[r->asked].body,
                            strlen(r->subjects[r->asked].body), take_answer, r);
    r->busy = rc == 0;
    if (rc < 0)
        fail(r, strerror(-rc));
}

static void ask_again(void *arg)
{
    ask_next(arg);
}

struct ft_registry *ft_registry_new(struct ft_loop *loop, const struct ft_registry_config *config,
                                    char *error, size_t error_bytes)
{
    struct ft_web_client_config http = config->http;
    struct ft_registry *r = calloc(1, sizeof(*r));

    http.content_type = CONTENT_TYPE;
    http.timeout_ns = TIMEOUT_NS;
    http.answer_bytes_max = ANSWER_BYTES;
    snprintf(error, error_bytes, "no memory");
    if (!r)
        return NULL;
    r->wait_ns = WAIT_MIN_NS;
    r->registers = config->registers;
    r->on_error = config->on_error;
    r->arg = config->arg;
    r->url = strdup(config->url);
    r->again = ft_watch_stage(ft_watch_once(loop, ask_again, r), "publish");
    if (r->url && r->again)
        r->http = ft_web_client_new(loop, &http, error, error_bytes);
    if (r->http)
        return r;
    ft_registry_free(r);
    return NULL;
}

static void free_subject(struct subject *s)
{
    free(s->name);
    free(s->url);
    free(s->body);
}

void ft_registry_free(struct ft_registry *r)
{
    if (!r)
        return;
    ft_web_client_free(r->http);
    ft_watch_free(r->again);
    for (size_t i = 0; i < r->stats.subjects; i++)
        free_subject(&r->subjects[i]);
    free(r->subjects);
    free(r->url);
    free(r);
}

static char *url_of(const struct ft_registry *r, const char *subject)
{
    size_t len = strlen(r->url);
    char *name = evhttp_uriencode(subject, -1, 0), *url = NULL;

    while (len > 0 && r->url[len - 1] == '/')
        len--;
    if (name && asprintf(&url, "%.*s/subjects/%s%s", (int)len, r->url, name,
                         r->registers ? "/versions" : "") < 0)
        url = NULL;
    free(name);
    return url;
}

static char *body_of(const char *type, const char *schema)
{
    json_t *root = json_pack("{s:s, s:s}", "schemaType", type, "schema", schema);
    char *body = root ? json_dumps(root, JSON_COMPACT) : NULL;

    json_decref(root);
    return body;
}

static bool has_room(struct ft_registry *r)
{
    size_t count = r->stats.subjects;
    struct subject *subjects;

    if (count & (count - 1))
        return true;
    subjects = realloc(r->subjects, (count ? 2 * count : 1) * sizeof(*subjects));
    if (subjects)
        r->subjects = subjects;
    return subjects;
}

int ft_registry_add(struct ft_registry *r, const char *subject, const char *type,
                    const char *schema)
{
    struct subject s;

    if (r->stats.subjects == SUBJECTS_MAX)
        return -ENOSPC;
    s = (struct subject){strdup(subject), url_of(r, subject), body_of(type, schema), 0};
    if (!s.name || !s.url || !s.body || !has_room(r)) {
        free_subject(&s);
        return -ENOMEM;
    }
    r->subjects[r->stats.subjects++] = s;
    if (!ft_watch_once_armed(r->again))
        ask_next(r);
    return 0;
}

bool ft_registry_ready(const struct ft_registry *r)
{
    return r->stats.known == r->stats.subjects;
}

int ft_registry_id(const struct ft_registry *r, const char *subject, uint32_t *id)
{
    for (size_t i = 0; i < r->stats.subjects; i++)
        if (strcmp(r->subjects[i].name, subject) == 0) {
            *id = r->subjects[i].id;
            return *id ? 0 : -EAGAIN;
        }
    return -ENOENT;
}

void ft_registry_stats(const struct ft_registry *r, struct ft_registry_stats *stats)
{
    *stats = r->stats;
}

const char *ft_registry_trouble(const struct ft_registry *r)
{
    return *r->trouble && !r->subjects[r->troubled].id ? r->trouble : NULL;
}
