// SPDX-License-Identifier: Apache-2.0
#include "config.h"

#include <stdlib.h>

#include "lib/io/snmp/snmp_impl.h"

#include <net-snmp/net-snmp-config.h>

#include <net-snmp/net-snmp-includes.h>

static void set_value(struct ft_snmp_varbind *v, const netsnmp_variable_list *var)
{
    *v = (struct ft_snmp_varbind){.type = FT_SNMP_NULL};
    switch (var->type) {
    case ASN_INTEGER:
        v->type = FT_SNMP_INTEGER;
        v->number = (uint64_t)*var->val.integer;
        break;
    case ASN_GAUGE:
    case ASN_TIMETICKS:
        v->type = FT_SNMP_UNSIGNED;
        v->number = (uint32_t)*var->val.integer;
        break;
    case ASN_COUNTER:
        v->type = FT_SNMP_COUNTER32;
        v->number = (uint32_t)*var->val.integer;
        break;
    case ASN_COUNTER64:
        v->type = FT_SNMP_COUNTER64;
        v->number =
            (uint64_t)(uint32_t)var->val.counter64->high << 32 | (uint32_t)var->val.counter64->low;
        break;
    case ASN_OCTET_STR:
    case ASN_OPAQUE:
    case ASN_IPADDRESS:
        v->type = var->type == ASN_IPADDRESS ? FT_SNMP_ADDRESS : FT_SNMP_STRING;
        v->bytes = var->val.string;
        v->len = var->val_len;
        break;
    case ASN_OBJECT_ID:
        v->type = FT_SNMP_OID;
        break;
    case SNMP_NOSUCHOBJECT:
    case SNMP_NOSUCHINSTANCE:
        v->type = FT_SNMP_NONE;
        break;
    case SNMP_ENDOFMIBVIEW:
        v->type = FT_SNMP_END;
        break;
    }
}

static bool make_room(struct ft_snmp_room *room, size_t varbinds, size_t ids)
{
    if (varbinds > room->varbinds_max) {
        void *items = reallocarray(room->varbinds, varbinds, sizeof(*room->varbinds));

        if (!items)
            return false;
        room->varbinds = items;
        room->varbinds_max = varbinds;
    }
    if (ids > room->ids_max) {
        void *items = reallocarray(room->ids, ids, sizeof(*room->ids));

        if (!items)
            return false;
        room->ids = items;
        room->ids_max = ids;
    }
    return true;
}

/* Copies the names, whose elements are of another width in net-snmp. False without memory. */
bool ft_snmp_values(struct ft_snmp_room *room, const netsnmp_pdu *pdu, struct ft_snmp_reply *reply)
{
    size_t ids = 0;
    size_t count = 0;
    uint32_t *id;

    for (const netsnmp_variable_list *v = pdu->variables; v; v = v->next_variable) {
        ids += v->name_length;
        count++;
    }
    if (!make_room(room, count, ids))
        return false;
    id = room->ids;
    count = 0;
    for (const netsnmp_variable_list *v = pdu->variables; v; v = v->next_variable) {
        struct ft_snmp_varbind *varbind = &room->varbinds[count++];

        set_value(varbind, v);
        varbind->oid = id;
        varbind->oid_len = v->name_length;
        for (size_t i = 0; i < v->name_length; i++)
            *id++ = (uint32_t)v->name[i];
    }
    reply->varbinds = room->varbinds;
    reply->count = count;
    return true;
}
