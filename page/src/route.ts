// SPDX-License-Identifier: Apache-2.0
// Where the page stands, as the part of its address after '#': #/view/name/name?key=value. Every view
// and moment has one, so that an address that is passed on shows the same. Pure.

export interface Route {
    view: string;
    /** What the view is of: ['leaf1', 'Ethernet51']. */
    names: string[];
    params: Record<string, string>;
}

export const VIEWS = [
    'fabric', 'imbalance', 'events', 'links', 'flows', 'jobs', 'hosts', 'unseen',
    'link', 'flow', 'job', 'switch', 'host',
] as const;

function decode(text: string): string {
    try {
        return decodeURIComponent(text.replace(/\+/g, ' '));
    } catch {
        return text;
    }
}

export function parse(hash: string): Route {
    const [path = '', query = ''] = hash.replace(/^#?\/?/, '').split(/\?(.*)/s);
    const [view = '', ...names] = path.split('/').map(decode);
    const params: Record<string, string> = {};
    for (const pair of query.split('&')) {
        const [key = '', value = ''] = pair.split(/=(.*)/s);
        if (key) params[decode(key)] = decode(value);
    }
    const known = (VIEWS as readonly string[]).includes(view);
    return { view: known ? view : 'fabric', names: known ? names.filter((n) => n !== '') : [], params };
}

/** Percent signs only where an address needs them: people read these. */
function encode(text: string): string {
    return encodeURIComponent(text).replace(/%(3A|2C|5B|5D|40|3E)/g, (all) => decodeURIComponent(all));
}

export function format(route: Route): string {
    const path = [route.view, ...route.names].map(encode).join('/');
    const query = Object.entries(route.params)
        .filter(([, value]) => value !== '')
        .map(([key, value]) => `${encode(key)}=${encode(value)}`)
        .join('&');
    return `#/${path}${query ? `?${query}` : ''}`;
}

/** What stays when one goes to another view: the moment and the marks. */
export function kept(params: Record<string, string>): Record<string, string> {
    const out: Record<string, string> = {};
    for (const key of ['at', 'a', 'b', 'by']) {
        const value = params[key];
        if (value !== undefined) out[key] = value;
    }
    return out;
}

/** The moment that is looked at; undefined: what is now. */
export function moment(params: Record<string, string>, name: string = 'at'): number | undefined {
    const text = params[name];
    return text !== undefined && /^\d{1,16}$/.test(text) ? Number(text) : undefined;
}
