// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include "switchpoll/snmp/identity.h"

#include <ctype.h>
#include <stdbool.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

#include "lib/base/tuple.h"

#define OCTETS_MAX 255 /* of any of these objects */
#define MAC_TEXT   17

/* Bytes of the UTF-8 sequence at p, 0 when it is none or a control character (RFC 3629). */
static size_t utf8(const uint8_t *p, size_t len)
{
    size_t n = p[0] < 0x80 ? 1 : p[0] < 0xc2 ? 0 : p[0] < 0xe0 ? 2 : p[0] < 0xf0 ? 3 : 4;

    if (n == 0 || n > len || p[0] > 0xf4 || p[0] < 0x20 || p[0] == 0x7f)
        return 0;
    for (size_t i = 1; i < n; i++)
        if ((p[i] & 0xc0) != 0x80)
            return 0;
    if ((p[0] == 0xe0 && p[1] < 0xa0) || (p[0] == 0xed && p[1] > 0x9f) ||
        (p[0] == 0xf0 && p[1] < 0x90) || (p[0] == 0xf4 && p[1] > 0x8f))
        return 0;
    return n;
}

static char *hexadecimal(const uint8_t *bytes, size_t len)
{
    char *text = malloc(2 * len + 3);

    if (!text)
        return NULL;
    memcpy(text, "0x", 3);
    for (size_t i = 0; i < len; i++)
        snprintf(text + 2 + 2 * i, 3, "%02x", bytes[i]);
    return text;
}

char *ft_identity_text(const uint8_t *bytes, size_t len)
{
    if (len > OCTETS_MAX)
        len = OCTETS_MAX;
    while (len > 0 && (bytes[len - 1] == 0 || bytes[len - 1] == ' '))
        len--;
    if (len == 0)
        return NULL;
    for (size_t i = 0; i < len;) {
        size_t n = utf8(bytes + i, len - i);

        if (n == 0)
            return hexadecimal(bytes, len);
        i += n;
    }
    return strndup((const char *)bytes, len);
}

static bool is_separator(uint8_t byte)
{
    return byte == ':' || byte == '-' || byte == ' ';
}

static bool is_mac_text(const uint8_t *bytes, size_t len)
{
    if (len != MAC_TEXT)
        return false;
    for (size_t i = 0; i < len; i++)
        if (i % 3 == 2 ? !is_separator(bytes[i]) : !isxdigit(bytes[i]))
            return false;
    return true;
}

char *ft_identity_mac(const uint8_t *bytes, size_t len)
{
    char *text;

    if (len != 6 && !is_mac_text(bytes, len))
        return NULL;
    text = malloc(MAC_TEXT + 1);
    if (!text)
        return NULL;
    if (len == 6) {
        snprintf(text, MAC_TEXT + 1, "%02x:%02x:%02x:%02x:%02x:%02x", bytes[0], bytes[1], bytes[2],
                 bytes[3], bytes[4], bytes[5]);
        return text;
    }
    for (size_t i = 0; i < MAC_TEXT; i++)
        text[i] = i % 3 == 2 ? ':' : (char)tolower(bytes[i]);
    text[MAC_TEXT] = 0;
    return text;
}

/* An IANA address family number, then the address (IEEE 802.1AB-2016 section 8.5.2.3). */
static char *address(const uint8_t *bytes, size_t len)
{
    char text[FT_IP_TEXT_BYTES];
    struct ft_ip ip;

    if (len < 1 || (bytes[0] == 1 && len != 5) || (bytes[0] == 2 && len != 17) ||
        ft_ip_from_bytes(bytes + 1, len - 1, &ip) < 0)
        return NULL;
    ft_ip_format(&ip, text);
    return strdup(text);
}

static Fabrictrace__IdKind kind_of(uint32_t subtype, enum ft_identity_what what)
{
    static const Fabrictrace__IdKind chassis[] = {
        [2] = FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_ALIAS,
        [4] = FABRICTRACE__ID_KIND__ID_KIND_MAC,
        [5] = FABRICTRACE__ID_KIND__ID_KIND_ADDRESS,
        [6] = FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME,
        [7] = FABRICTRACE__ID_KIND__ID_KIND_LOCAL,
    };
    static const Fabrictrace__IdKind port[] = {
        [1] = FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_ALIAS,
        [3] = FABRICTRACE__ID_KIND__ID_KIND_MAC,
        [4] = FABRICTRACE__ID_KIND__ID_KIND_ADDRESS,
        [5] = FABRICTRACE__ID_KIND__ID_KIND_INTERFACE_NAME,
        [7] = FABRICTRACE__ID_KIND__ID_KIND_LOCAL,
    };

    if (subtype > 7)
        return FABRICTRACE__ID_KIND__ID_KIND_UNKNOWN;
    return what == FT_IDENTITY_CHASSIS ? chassis[subtype] : port[subtype];
}

void ft_identity_set(struct ft_switch_identity *id, const uint8_t *bytes, size_t len)
{
    free(id->bytes);
    id->len = len < OCTETS_MAX ? len : OCTETS_MAX;
    id->bytes = malloc(id->len + 1);
    if (!id->bytes)
        id->len = 0;
    else if (id->len)
        memcpy(id->bytes, bytes, id->len);
}

void ft_identity_decide(struct ft_switch_identity *id, enum ft_identity_what what)
{
    free(id->text);
    id->text = NULL;
    id->kind = kind_of(id->subtype, what);
    if (!id->bytes)
        return;
    if (id->kind == FABRICTRACE__ID_KIND__ID_KIND_MAC)
        id->text = ft_identity_mac(id->bytes, id->len);
    else if (id->kind == FABRICTRACE__ID_KIND__ID_KIND_ADDRESS)
        id->text = address(id->bytes, id->len);
    /* What is not as its subtype promises is kept as what it looks like. */
    if (!id->text) {
        if (id->kind == FABRICTRACE__ID_KIND__ID_KIND_MAC ||
            id->kind == FABRICTRACE__ID_KIND__ID_KIND_ADDRESS)
            id->kind = FABRICTRACE__ID_KIND__ID_KIND_UNKNOWN;
        id->text = ft_identity_text(id->bytes, id->len);
    }
}

void ft_identity_clear(struct ft_switch_identity *id)
{
    free(id->bytes);
    free(id->text);
    *id = (struct ft_switch_identity){0};
}
