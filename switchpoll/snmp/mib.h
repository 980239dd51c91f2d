// SPDX-License-Identifier: Apache-2.0
#ifndef FT_SWITCHPOLL_SNMP_MIB_H
#define FT_SWITCHPOLL_SNMP_MIB_H
/*
 * The objects of a switch that are read, as constant tables of object identifiers: IF-MIB (RFC
 * 2863), IP-MIB (RFC 4293), LLDP-MIB (IEEE 802.1AB-2005 section 12), IEEE8023-LAG-MIB (IEEE
 * 802.3-2002 section 30C), EtherLike-MIB (RFC 3635), IEEE8021-PFC-MIB (IEEE 802.1Q section
 * 17.7.17). No MIB file is needed.
 */
#include <stddef.h>
#include <stdint.h>

#include "lib/io/snmp/snmp.h"

/* Tables that are walked, each a set of columns side by side. */
enum ft_mib_table {
    FT_MIB_COUNTERS,      /* index: ifIndex */
    FT_MIB_NAMES,         /* index: ifIndex */
    FT_MIB_LAG,           /* index: ifIndex */
    FT_MIB_ADDRESSES,     /* ipAddressTable; index: type, length, address */
    FT_MIB_ADDRESSES_OLD, /* ipAddrTable, where the former is not answered; index: IPv4 address */
    FT_MIB_LLDP_REMOTE,   /* index: time mark, local port number, remote index */
    FT_MIB_LLDP_REMOTE_ADDRESSES, /* as above, address family, length, address */
    FT_MIB_LLDP_LOCAL,            /* index: local port number */
    FT_MIB_PAUSE,                 /* dot3PauseTable; index: dot3StatsIndex, which is the ifIndex */
    FT_MIB_PFC,                   /* ieee8021PfcIfTable, which augments ifEntry; index: ifIndex */
    FT_MIB_TABLES,
};

enum ft_mib_counters {
    FT_MIB_OPER_STATUS,
    FT_MIB_ADMIN_STATUS,
    FT_MIB_HIGH_SPEED,
    FT_MIB_DISCONTINUITY,
    FT_MIB_FIRST_COUNTER, /* the rest are counters */
    FT_MIB_IN_OCTETS = FT_MIB_FIRST_COUNTER,
    FT_MIB_OUT_OCTETS,
    FT_MIB_IN_UCAST,
    FT_MIB_IN_MULTICAST,
    FT_MIB_IN_BROADCAST,
    FT_MIB_OUT_UCAST,
    FT_MIB_OUT_MULTICAST,
    FT_MIB_OUT_BROADCAST,
    FT_MIB_FIRST_COUNTER32, /* these are 32 bits wide */
    FT_MIB_IN_DISCARDS = FT_MIB_FIRST_COUNTER32,
    FT_MIB_IN_ERRORS,
    FT_MIB_OUT_DISCARDS,
    FT_MIB_OUT_ERRORS,
    FT_MIB_COUNTER_COLUMNS,
    /* Counters of tables of their own, kept with those above. */
    FT_MIB_IN_PAUSE = FT_MIB_COUNTER_COLUMNS,
    FT_MIB_OUT_PAUSE,
    FT_MIB_IN_PFC,
    FT_MIB_OUT_PFC,
    FT_MIB_COUNTERS32_END, /* the rest is 64 bits wide */
    FT_MIB_IN_PAUSE_HC = FT_MIB_COUNTERS32_END,
    FT_MIB_OUT_PAUSE_HC,
    FT_MIB_COUNTERS_END,
};

enum ft_mib_names {
    FT_MIB_IF_NAME,
    FT_MIB_IF_ALIAS,
    FT_MIB_IF_DESCR,
    FT_MIB_IF_MAC,
    FT_MIB_IF_TYPE,
};

enum ft_mib_lldp_remote {
    FT_MIB_REM_CHASSIS_SUBTYPE,
    FT_MIB_REM_CHASSIS,
    FT_MIB_REM_PORT_SUBTYPE,
    FT_MIB_REM_PORT,
    FT_MIB_REM_PORT_DESCR,
    FT_MIB_REM_NAME,
    FT_MIB_REM_ENABLED,
};

enum ft_mib_pause {
    FT_MIB_PAUSE_IN,
    FT_MIB_PAUSE_OUT,
    FT_MIB_PAUSE_IN_HC,
    FT_MIB_PAUSE_OUT_HC,
    FT_MIB_PAUSE_COLUMNS,
};

/* Requests are what the port sends, indications what it receives. */
enum ft_mib_pfc { FT_MIB_PFC_REQUESTS, FT_MIB_PFC_INDICATIONS, FT_MIB_PFC_COLUMNS };

enum ft_mib_lldp_local { FT_MIB_LOC_SUBTYPE, FT_MIB_LOC_ID, FT_MIB_LOC_DESCR };

/* Columns of a table. */
size_t ft_mib_columns(enum ft_mib_table table);
const struct ft_snmp_oid *ft_mib_column(enum ft_mib_table table, size_t column);

/* "IF-MIB counters", for a person. */
const char *ft_mib_table_name(enum ft_mib_table table);

/* Scalars, asked for in one GET each, the values in this order. */
enum ft_mib_system {
    FT_MIB_UPTIME,
    FT_MIB_SYS_NAME,
    FT_MIB_IF_LAST_CHANGE,
    FT_MIB_ENGINE_BOOTS,
    FT_MIB_ENGINE_TIME,
    FT_MIB_SYSTEM_SCALARS,
};

enum ft_mib_lldp { FT_MIB_CHASSIS_SUBTYPE, FT_MIB_CHASSIS, FT_MIB_LLDP_SCALARS };

const struct ft_snmp_oid *ft_mib_system(void);
const struct ft_snmp_oid *ft_mib_lldp(void);

#endif
