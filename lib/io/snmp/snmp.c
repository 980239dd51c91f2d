// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "lib/io/snmp/snmp.h"

#include <errno.h>
#include <fcntl.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/io/snmp/snmp_impl.h"

#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

#include <net-snmp/library/large_fd_set.h>

#define NS_PER_US    1000
#define ENDPOINT_MAX (FT_IP_TEXT_BYTES + 16)

struct ft_snmp {
    struct ft_loop *loop;
    struct ft_snmp_stats stats;
    netsnmp_large_fd_set fds; /* for one descriptor at a time */
    struct ft_snmp_room room;
};

enum state {
    STATE_IDLE,
    STATE_REQUESTED, /* a request is made and not sent */
    STATE_PROBING,   /* it waits for the agent's engine id */
    STATE_ASKING,    /* it is in progress */
    STATE_OVER,      /* it failed, and on_reply is to hear */
};

struct ft_snmp_session {
    struct ft_snmp *snmp;
    const struct ft_snmp_auth *auth;
    void *handle; /* net-snmp's */
    struct ft_watch *reader;
    int fd; /* that reader watches, -1: none */
    struct ft_watch *timer;
    enum state state;
    netsnmp_pdu *request;
    void (*on_reply)(void *arg, const struct ft_snmp_reply *reply);
    void *arg;
    enum ft_snmp_fault fault; /* in STATE_OVER */
    const char *text;
    bool probed; /* the probe has ended, one way or the other */
    bool inside; /* net-snmp works on this session: it must not be closed or sent on */
    bool dying;
};

/* The library is set up once a process: it reads no file, keeps no state on disk, says nothing. */
static void set_up_library(void)
{
    static bool done;

    if (done)
        return;
    done = true;
    netsnmp_register_loghandler(NETSNMP_LOGHANDLER_NONE, LOG_DEBUG);
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DONT_READ_CONFIGS, 1);
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DISABLE_PERSISTENT_LOAD, 1);
    netsnmp_ds_set_boolean(NETSNMP_DS_LIBRARY_ID, NETSNMP_DS_LIB_DISABLE_PERSISTENT_SAVE, 1);
    setenv("MIBS", "", 1);
    netsnmp_set_mib_directory("");
    init_snmp("fabrictrace");
}

bool ft_snmp_built(void)
{
    return true;
}

struct ft_snmp *ft_snmp_new(struct ft_loop *loop, char *error, size_t error_bytes)
{
    struct ft_snmp *snmp = calloc(1, sizeof(*snmp));

    if (!snmp) {
        snprintf(error, error_bytes, "out of memory");
        return NULL;
    }
    set_up_library();
    snmp->loop = loop;
    netsnmp_large_fd_set_init(&snmp->fds, FD_SETSIZE);
    return snmp;
}

void ft_snmp_free(struct ft_snmp *snmp)
{
    if (!snmp)
        return;
    netsnmp_large_fd_set_cleanup(&snmp->fds);
    free(snmp->room.varbinds);
    free(snmp->room.ids);
    free(snmp);
}

void ft_snmp_stats(const struct ft_snmp *snmp, struct ft_snmp_stats *stats)
{
    *stats = snmp->stats;
}

static netsnmp_session *session_of(const struct ft_snmp_session *s)
{
    return snmp_sess_session(s->handle);
}

/* Makes the next request begin with a probe: whoever answers there now may be another engine, or
 * the same one with its boots counter lost, whose messages net-snmp would refuse for ever. */
static void forget_engine(struct ft_snmp_session *s)
{
    netsnmp_session *session = session_of(s);
    struct usmUser *user;

    if (session->version != SNMP_VERSION_3 || session->securityEngineIDLen == 0)
        return;
    user = usm_get_user(session->securityEngineID, session->securityEngineIDLen,
                        session->securityName);
    if (user) {
        usm_remove_user(user);
        usm_free_user(user);
    }
    free_enginetime(session->securityEngineID, session->securityEngineIDLen);
    free(session->securityEngineID);
    session->securityEngineID = NULL;
    session->securityEngineIDLen = 0;
    free(session->contextEngineID);
    session->contextEngineID = NULL;
    session->contextEngineIDLen = 0;
    session->flags &= ~(u_long)SNMP_FLAGS_USER_CREATED;
}

/* Ends the request that is in progress; on_reply hears of it outside of net-snmp. */
static void fail(struct ft_snmp_session *s, enum ft_snmp_fault fault, const char *text)
{
    s->state = STATE_OVER;
    s->fault = fault;
    s->text = text;
}

static void fail_by_report(struct ft_snmp_session *s, netsnmp_pdu *pdu)
{
    switch (snmpv3_get_report_type(pdu)) {
    case SNMPERR_UNKNOWN_ENG_ID:
        fail(s, FT_SNMP_ENGINE, "the agent's engine id has changed");
        break;
    case SNMPERR_UNKNOWN_USER_NAME:
        fail(s, FT_SNMP_REFUSED, "the agent does not know the user");
        break;
    case SNMPERR_AUTHENTICATION_FAILURE:
        fail(s, FT_SNMP_REFUSED, "the agent refuses the authentication: wrong auth or auth_secret");
        break;
    case SNMPERR_DECRYPTION_ERR:
        fail(s, FT_SNMP_REFUSED, "the agent cannot decrypt: wrong priv or priv_secret");
        break;
    case SNMPERR_UNSUPPORTED_SEC_LEVEL:
        fail(s, FT_SNMP_REFUSED, "the agent does not allow this user's security level");
        break;
    case SNMPERR_NOT_IN_TIME_WINDOW:
        fail(s, FT_SNMP_REFUSED, "the agent's clock does not agree: not in time window");
        break;
    case SNMPERR_BAD_CONTEXT:
        fail(s, FT_SNMP_REFUSED, "the agent does not know the context");
        break;
    default:
        fail(s, FT_SNMP_REFUSED, "the agent refuses the request");
        break;
    }
}

/* Hands the reply over. on_reply may ask again or free the session. */
static void deliver(struct ft_snmp_session *s, const struct ft_snmp_reply *reply)
{
    struct ft_snmp_stats *stats = &s->snmp->stats;

    switch (reply->fault) {
    case FT_SNMP_OK:
        stats->answers++;
        stats->varbinds += reply->count;
        break;
    case FT_SNMP_TIMEOUT:
        stats->timeouts++;
        break;
    case FT_SNMP_REFUSED:
        stats->refused++;
        break;
    default:
        stats->errors++;
        break;
    }
    stats->pending--;
    s->state = STATE_IDLE;
    if (!s->dying)
        s->on_reply(s->arg, reply);
}

static void take_response(struct ft_snmp_session *s, netsnmp_pdu *pdu)
{
    struct ft_snmp_reply reply = {.fault = FT_SNMP_OK, .text = ""};

    if (pdu->errstat == SNMP_ERR_TOOBIG)
        fail(s, FT_SNMP_TOO_BIG, "the answer would be too big");
    else if (pdu->errstat == SNMP_ERR_AUTHORIZATIONERROR || pdu->errstat == SNMP_ERR_NOACCESS)
        fail(s, FT_SNMP_REFUSED, "the agent does not allow this user to read that");
    else if (pdu->errstat != SNMP_ERR_NOERROR)
        fail(s, FT_SNMP_ERROR, "the agent answers with an error");
    else if (!ft_snmp_values(&s->snmp->room, pdu, &reply))
        fail(s, FT_SNMP_ERROR, "out of memory");
    else
        deliver(s, &reply);
}

/* net-snmp reports the end of a request here. A report comes twice: as a message, after which
 * net-snmp may send once more by itself (not in time window), and as a security error when it will
 * not. */
static int on_event(int operation, netsnmp_session *session, int reqid, netsnmp_pdu *pdu,
                    void *magic)
{
    struct ft_snmp_session *s = magic;
    bool probe = s->state == STATE_PROBING;

    (void)session;
    (void)reqid;
    if (operation == NETSNMP_CALLBACK_OP_RESEND) {
        s->snmp->stats.resent++;
        return 1;
    }
    if (s->state != STATE_ASKING && !probe)
        return 1;
    if (probe) {
        if (operation != NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE || pdu->command != SNMP_MSG_REPORT)
            s->probed = true;
    } else if (operation == NETSNMP_CALLBACK_OP_RECEIVED_MESSAGE) {
        if (pdu->command != SNMP_MSG_REPORT)
            take_response(s, pdu);
    } else if (operation == NETSNMP_CALLBACK_OP_SEC_ERROR) {
        fail_by_report(s, pdu);
    } else if (operation == NETSNMP_CALLBACK_OP_TIMED_OUT) {
        fail(s, FT_SNMP_TIMEOUT, "no answer");
    } else {
        fail(s, FT_SNMP_SEND, "the request cannot be sent");
    }
    return 1;
}

/* False when it could not be sent; the request is gone then. */
static bool send_pdu(struct ft_snmp_session *s, netsnmp_pdu *pdu)
{
    bool sent;

    s->inside = true;
    sent = snmp_sess_async_send(s->handle, pdu, on_event, s) != 0;
    s->inside = false;
    if (!sent)
        snmp_free_pdu(pdu);
    return sent;
}

/* The probe of RFC 3414 section 4: an empty request of nobody to an unknown engine, answered with a
 * report that names the engine. */
static void send_probe(struct ft_snmp_session *s)
{
    netsnmp_pdu *pdu = snmp_pdu_create(SNMP_MSG_GET);

    s->probed = false;
    if (pdu) {
        pdu->version = SNMP_VERSION_3;
        pdu->securityName = strdup("");
        pdu->securityNameLen = 0;
        pdu->securityLevel = SNMP_SEC_LEVEL_NOAUTH;
        pdu->securityModel = SNMP_SEC_MODEL_USM;
    }
    s->snmp->stats.discoveries++;
    s->state = STATE_PROBING;
    if (!pdu || !send_pdu(s, pdu))
        fail(s, FT_SNMP_SEND, "the engine probe cannot be sent");
}

static void send_requests(struct ft_snmp_session *s)
{
    netsnmp_session *session = session_of(s);
    netsnmp_pdu *pdu = s->request;

    if (session->version == SNMP_VERSION_3) {
        if (session->securityEngineIDLen == 0) {
            send_probe(s);
            return;
        }
        /* A session with the same engine may have taken the user with it. */
        if (!usm_get_user(session->securityEngineID, session->securityEngineIDLen,
                          session->securityName))
            session->flags &= ~(u_long)SNMP_FLAGS_USER_CREATED;
        if (usm_create_user_from_session(session) != SNMPERR_SUCCESS) {
            fail(s, FT_SNMP_SEND, "the user's keys cannot be made");
            return;
        }
    }
    s->request = NULL;
    s->state = STATE_ASKING;
    if (!send_pdu(s, pdu))
        fail(s, FT_SNMP_SEND, "the request cannot be sent");
}

static void end_probe(struct ft_snmp_session *s)
{
    if (session_of(s)->securityEngineIDLen == 0)
        fail(s, FT_SNMP_TIMEOUT, "no answer");
    else
        s->state = STATE_REQUESTED;
}

static void destroy(struct ft_snmp_session *s)
{
    ft_watch_free(s->reader);
    ft_watch_free(s->timer);
    if (s->request)
        snmp_free_pdu(s->request);
    if (s->handle) {
        forget_engine(s);
        snmp_sess_close(
            s->handle); /* calls on_event for what is in progress, which minds the state */
    }
    free(s);
}

static void on_readable(void *arg);

/* Lets the loop watch the descriptor and the time that net-snmp waits for now. */
static void reconcile(struct ft_snmp_session *s)
{
    netsnmp_transport *transport = snmp_sess_transport(s->handle);
    struct timeval wait = {0};
    int fd = transport ? transport->sock : -1;
    int count = 0;
    int block = 1;

    if (fd != s->fd) {
        ft_watch_free(s->reader);
        s->reader =
            fd >= 0 ? ft_watch_stage(ft_watch_fd(s->snmp->loop, fd, on_readable, s), "snmp") : NULL;
        s->fd = s->reader ? fd : -1;
    }
    if (s->state != STATE_PROBING && s->state != STATE_ASKING) {
        ft_watch_once_disarm(s->timer);
        return;
    }
    snmp_sess_select_info2_flags(s->handle, &count, &s->snmp->fds, &wait, &block,
                                 NETSNMP_SELECT_NOALARMS);
    NETSNMP_LARGE_FD_CLR(fd, &s->snmp->fds);
    if (block)
        ft_watch_once_disarm(s->timer);
    else
        /* A moment later than it says: at that very time nothing is overdue yet. */
        ft_watch_once_arm(s->timer, (int64_t)wait.tv_sec * 1000000000 +
                                        (int64_t)(wait.tv_usec + 1000) * NS_PER_US);
}

/* Goes on until nothing is left to do but to wait. Only from the loop. */
static void conclude(struct ft_snmp_session *s)
{
    for (;;) {
        if (s->dying) {
            destroy(s);
            return;
        }
        if (s->state == STATE_PROBING && s->probed) {
            end_probe(s);
        } else if (s->state == STATE_REQUESTED) {
            send_requests(s);
        } else if (s->state == STATE_OVER) {
            struct ft_snmp_reply reply = {.fault = s->fault, .text = s->text};

            if (s->request)
                snmp_free_pdu(s->request);
            s->request = NULL;
            if (s->fault != FT_SNMP_TOO_BIG && s->fault != FT_SNMP_ERROR)
                forget_engine(s);
            s->inside = true;
            deliver(s, &reply);
            s->inside = false;
        } else {
            break;
        }
    }
    reconcile(s);
}

static void on_readable(void *arg)
{
    struct ft_snmp_session *s = arg;

    s->inside = true;
    NETSNMP_LARGE_FD_SET(s->fd, &s->snmp->fds);
    snmp_sess_read2(s->handle, &s->snmp->fds);
    NETSNMP_LARGE_FD_CLR(s->fd, &s->snmp->fds);
    s->inside = false;
    conclude(s);
}

static void on_timer(void *arg)
{
    struct ft_snmp_session *s = arg;

    s->inside = true;
    snmp_sess_timeout(s->handle);
    s->inside = false;
    conclude(s);
}

static void fill_session(netsnmp_session *session, const struct ft_snmp_auth *auth)
{
    if (auth->version == 2) {
        session->version = SNMP_VERSION_2c;
        session->community = (u_char *)auth->community;
        session->community_len = strlen(auth->community);
        return;
    }
    session->version = SNMP_VERSION_3;
    session->securityModel = SNMP_SEC_MODEL_USM;
    session->securityName = auth->user;
    session->securityNameLen = strlen(auth->user);
    session->contextName = auth->context;
    session->contextNameLen = strlen(auth->context);
    session->securityLevel = SNMP_SEC_LEVEL_NOAUTH;
    if (auth->auth_type) {
        session->securityLevel = SNMP_SEC_LEVEL_AUTHNOPRIV;
        session->securityAuthProto =
            sc_get_auth_oid(auth->auth_type, &session->securityAuthProtoLen);
        memcpy(session->securityAuthKey, auth->auth_key, auth->auth_key_bytes);
        session->securityAuthKeyLen = auth->auth_key_bytes;
    }
    if (auth->priv_type) {
        session->securityLevel = SNMP_SEC_LEVEL_AUTHPRIV;
        session->securityPrivProto =
            sc_get_priv_oid(auth->priv_type, &session->securityPrivProtoLen);
        memcpy(session->securityPrivKey, auth->priv_key, auth->priv_key_bytes);
        session->securityPrivKeyLen = auth->priv_key_bytes;
    }
}

static void *open_handle(const struct ft_snmp_auth *auth, const struct ft_ip *address,
                         uint16_t port, int64_t timeout_ns, unsigned retries)
{
    char text[FT_IP_TEXT_BYTES];
    char endpoint[ENDPOINT_MAX];
    netsnmp_session template;
    netsnmp_transport *transport;
    void *handle;

    ft_ip_format(address, text);
    snprintf(endpoint, sizeof(endpoint), ft_ip_is4(address) ? "udp:%s:%u" : "udp6:[%s]:%u", text,
             (unsigned)port);
    snmp_sess_init(&template);
    template.peername = endpoint;
    template.timeout = (long)(timeout_ns / NS_PER_US);
    template.retries = (int)retries;
    template.flags |= SNMP_FLAGS_DONT_PROBE;
    fill_session(&template, auth);
    handle = snmp_sess_open(&template);
    explicit_bzero(&template, sizeof(template));
    if (!handle)
        return NULL;
    /* Opening clears the flag, and sending would then probe and wait. */
    snmp_sess_session(handle)->flags |= SNMP_FLAGS_DONT_PROBE;
    transport = snmp_sess_transport(handle);
    /* Readiness may be false (a bad checksum), and the loop must not wait in recvmsg(). */
    fcntl(transport->sock, F_SETFL, fcntl(transport->sock, F_GETFL) | O_NONBLOCK);
    fcntl(transport->sock, F_SETFD, FD_CLOEXEC);
    return handle;
}

struct ft_snmp_session *ft_snmp_session_new(struct ft_snmp *snmp, const struct ft_ip *address,
                                            uint16_t port, const struct ft_snmp_auth *auth,
                                            int64_t timeout_ns, unsigned retries, char *error,
                                            size_t error_bytes)
{
    struct ft_snmp_session *s = calloc(1, sizeof(*s));

    if (!s) {
        snprintf(error, error_bytes, "out of memory");
        return NULL;
    }
    s->snmp = snmp;
    s->auth = auth;
    s->fd = -1;
    s->timer = ft_watch_stage(ft_watch_once(snmp->loop, on_timer, s), "snmp");
    s->handle = open_handle(auth, address, port, timeout_ns, retries);
    if (!s->timer || !s->handle) {
        snprintf(error, error_bytes, "cannot open an SNMP socket: %s", strerror(errno));
        destroy(s);
        return NULL;
    }
    reconcile(s);
    return s;
}

void ft_snmp_session_free(struct ft_snmp_session *s)
{
    if (!s)
        return;
    if (s->state != STATE_IDLE) {
        s->snmp->stats.pending--;
        s->snmp->stats.requests--;
    }
    s->state = STATE_IDLE;
    s->dying = true;
    if (!s->inside)
        destroy(s);
}

int ft_snmp_ask(struct ft_snmp_session *s, const struct ft_snmp_oid *names, size_t count,
                unsigned repetitions, void (*on_reply)(void *arg, const struct ft_snmp_reply *r),
                void *arg)
{
    netsnmp_pdu *pdu;

    if (s->state != STATE_IDLE)
        return -EBUSY;
    if (count == 0 || count > FT_SNMP_NAMES_MAX)
        return -EINVAL;
    pdu = snmp_pdu_create(repetitions ? SNMP_MSG_GETBULK : SNMP_MSG_GET);
    if (!pdu)
        return -ENOMEM;
    if (repetitions) {
        pdu->non_repeaters = 0;
        pdu->max_repetitions = repetitions;
    }
    for (size_t i = 0; i < count; i++) {
        oid name[FT_SNMP_OID_MAX];

        for (size_t k = 0; k < names[i].len; k++)
            name[k] = names[i].ids[k];
        if (!snmp_add_null_var(pdu, name, names[i].len)) {
            snmp_free_pdu(pdu);
            return -ENOMEM;
        }
    }
    s->request = pdu;
    s->on_reply = on_reply;
    s->arg = arg;
    s->state = STATE_REQUESTED;
    s->snmp->stats.requests++;
    s->snmp->stats.pending++;
    if (!s->inside)
        ft_watch_once_arm(s->timer, 0);
    return 0;
}
