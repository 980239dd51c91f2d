// SPDX-License-Identifier: Apache-2.0
// What every view looks at: the topology, and links, imbalance, events and doctor of the window that
// is shown. Refreshed when a window has closed; the daemon's stream says so, or a small question
// every two seconds.
import { all, changed, get, Refusal } from './api.ts';
import { Memory } from './history.ts';
import { fabricOf, type Fabric } from './model.ts';
import { joined } from './past.ts';
import type { Answer, Diagnosis, Event, Finding, Imbalance, Link, Rank, Topology, Window } from './records.ts';
import { moment, parse, type Route } from './route.ts';
import { Stream, type Ears, type Listening } from './stream.ts';
import { forgetToken, holdToken, token, whenRefused } from './token.ts';

const ASK_MS = 2000;
/** A small question that is not answered by then is not answered. */
const ASK_LIMIT_MS = 10_000;
/** Beside two windows: how long the stream may be silent before the daemon is asked whether it is there. */
const SILENT_MS = 5000;
const WINDOW_MS = 10_000;
const EVENT_MS = 500;
const TOPOLOGY_MS = 60_000;
const REMEMBERED = 720;
const REMEMBERED_GROUPS = 128;

export type Connection = 'asking' | 'live' | 'lost';
/** Why nothing is asked: the daemon wants a token, or refuses the one that it was shown. */
export type Locked = '' | 'needed' | 'refused';

export interface State {
    locked: Locked;
    route: Route;
    /** The moment that is looked at; undefined: what is now. */
    at: number | undefined;
    connection: Connection;
    trouble: string;
    /** Of what is shown. */
    window: Window | undefined;
    /** The moment that it was asked for: another than `at` while that is asked. */
    asked: number | undefined;
    /** The last one that has closed. */
    latest: Window | undefined;
    topology: Topology | undefined;
    links: Link[] | undefined;
    /** The end of the window that they are of. */
    linksOf: number | undefined;
    imbalance: Imbalance[];
    events: Event[];
    findings: Finding[];
    /** Jobs that hang or are slow now; none is kept of moments before. */
    diagnoses: Diagnosis[];
    ranks: Rank[];
    windows: Window[] | undefined;
    /** Whether the daemon keeps what was; undefined: not known yet. */
    keeps: boolean | undefined;
    /** How many times all of its windows were asked for: it may be another daemon each time. */
    epoch: number;
    fabric: Fabric | undefined;
}

type Listener = () => void;

function windowOf(a: Answer<unknown>): Window | undefined {
    return a.window_start_ms !== undefined && a.window_end_ms !== undefined
        ? { window_start_ms: a.window_start_ms, window_end_ms: a.window_end_ms } : undefined;
}

/** Of these views the links are part; at 512 x 32 they are most of what a window says. */
const WITH_LINKS = new Set(['fabric', 'links', 'link', 'switch', 'imbalance']);

/** Whether the links, and the fabric that they tell of, are of the window that is shown. */
export function hasLinks(state: State): boolean {
    return state.links !== undefined && state.linksOf === state.window?.window_end_ms;
}

/** A view of links does not show those of another window: it waits. */
export function waits(state: State): boolean {
    return state.fabric !== undefined && WITH_LINKS.has(state.route.view) && !hasLinks(state);
}

export function holds(window: Window | undefined, ms: number): boolean {
    return window !== undefined && ms >= window.window_start_ms && ms < window.window_end_ms;
}

/** Before the first answer. */
const NOTHING: Omit<State, 'route' | 'at' | 'locked' | 'epoch'> = {
    connection: 'asking', trouble: '', window: undefined, asked: undefined, latest: undefined,
    topology: undefined, links: undefined, linksOf: undefined, imbalance: [], events: [], findings: [], diagnoses: [], ranks: [], windows: undefined,
    keeps: undefined, fabric: undefined,
};

export class Store {
    state: State = { ...NOTHING, route: parse(''), at: undefined, locked: '', epoch: 0 };
    readonly memory = new Memory(REMEMBERED, REMEMBERED_GROUPS);
    private listeners = new Set<Listener>();
    private topologyAt = 0;
    private timer: ReturnType<typeof setTimeout> | undefined;
    private running = false;
    private again = false;
    private stream: Listening | undefined;
    /** The stream ended since it said something: what comes next may be another daemon. */
    private cut = false;
    private asking = false;
    /** Since the daemon was last heard of. */
    private silentMs = 0;
    private loading: AbortController | undefined;

    constructor(private readonly open: (ears: Ears) => Listening = (ears) => new Stream(ears)) {}

    subscribe(listener: Listener): () => void {
        this.listeners.add(listener);
        return () => this.listeners.delete(listener);
    }

    private set(change: Partial<State>): void {
        this.state = { ...this.state, ...change };
        for (const l of this.listeners) l();
    }

    start(): void {
        whenRefused(() => this.lock());
        addEventListener('hashchange', () => this.follow());
        document.addEventListener('visibilitychange', () => {
            if (!document.hidden) void this.onWindow();
        });
        this.follow();
        void this.listen();
    }

    /** Takes over what the address says. */
    follow(): void {
        const route = parse(location.hash);
        const at = moment(route.params);
        const moved = at !== this.state.at;
        this.set({ route, at });
        if (moved || this.state.window === undefined || waits(this.state)) void this.refresh();
    }

    /** Nothing more is asked, nor shown, until there is a token. */
    private lock(): void {
        if (this.state.locked) return;
        const locked = token() === undefined ? 'needed' : 'refused';
        forgetToken();
        this.endStream();
        this.loading?.abort();
        this.cut = true;
        this.set({ ...NOTHING, locked });
    }

    unlock(text: string): void {
        holdToken(text);
        this.set({ locked: '' });
        void this.onWindow();
    }

    /** Waits for windows: by the stream where there is one, by asking else. */
    private async listen(): Promise<void> {
        setInterval(() => void this.ask(), ASK_MS);
        await this.askWindows();
    }

    private openStream(): void {
        const stream = this.open({
            opened: () => {
                this.silentMs = 0;
                // What is shown may be of a daemon that is no more.
                if (this.cut) void this.onWindow();
            },
            said: (kind) => {
                if (kind === 'event') this.soon();
                if (kind !== 'window') return;
                this.silentMs = 0;
                void this.onWindow();
            },
            ended: () => {
                this.cut = true;
                if (stream.state === 'closed' && this.stream === stream) this.stream = undefined;
            },
        });
        this.stream = stream;
    }

    /** Events come in numbers, most of them beside a window. */
    private soon(): void {
        if (document.hidden) return;
        clearTimeout(this.timer);
        this.timer = setTimeout(() => void this.refresh(), EVENT_MS);
    }

    /** The cheapest question that tells whether a window has closed, or the daemon is gone. A stream that is
     * open says nothing of that: a network between may have lost it, or the daemon stands still. */
    private async ask(): Promise<void> {
        if (document.hidden || this.asking || this.state.locked) return;
        const { latest, connection } = this.state;
        const streams = this.stream?.state === 'open';
        this.silentMs += ASK_MS;
        const length = latest ? latest.window_end_ms - latest.window_start_ms : WINDOW_MS;
        if (streams && connection !== 'lost' && this.silentMs < 2 * length + SILENT_MS) return;
        this.asking = true;
        try {
            const answer = await get<Answer<Event>>('events', { kind: 'clock_skew', limit: 1 }, undefined, ASK_LIMIT_MS);
            const news = windowOf(answer)?.window_end_ms !== this.state.latest?.window_end_ms;
            this.silentMs = 0;
            if (streams && news) this.endStream();
            if (news || this.state.connection !== 'live') await this.onWindow();
        } catch (error) {
            this.cut = true;
            this.lost(error);
            this.loading?.abort(); // or what hangs holds up what comes after it
        } finally {
            this.asking = false;
        }
    }

    /** One that is silent while windows close; the next is opened with the windows. */
    private endStream(): void {
        this.stream?.close();
        this.stream = undefined;
    }

    private async onWindow(): Promise<void> {
        if (document.hidden || this.state.locked) return;
        clearTimeout(this.timer);
        if (this.state.keeps !== false) await this.askWindows();
        await this.refresh();
    }

    private lost(error: unknown): void {
        if (this.state.locked) return;
        const trouble = error instanceof Error ? error.message : String(error);
        this.set({ connection: 'lost', trouble });
    }

    /** Those that were there and are kept, and what came after; undefined where older ones came. */
    private async newWindows(before: Window[]): Promise<Window[] | undefined> {
        const [oldest, after] = await Promise.all([
            all<Window>('windows', { limit: 1 }), all<Window>('windows', { from_ms: before[before.length - 1]?.window_end_ms }),
        ]);
        const from = oldest.records[0]?.window_start_ms;
        return from === undefined || from < (before[0]?.window_start_ms ?? 0) ? undefined : joined(before, after.records, from);
    }

    private async askWindows(): Promise<void> {
        const { windows: before, epoch } = this.state;
        try {
            const news = this.cut || !before ? undefined : await this.newWindows(before);
            const windows = news ?? joined([], (await all<Window>('windows')).records, 0);
            if (this.state.locked) return;
            this.set({ windows, keeps: true, epoch: news ? epoch : epoch + 1 });
            if (!this.stream) this.openStream();
        } catch (error) {
            if (error instanceof Refusal && error.status === 404) this.set({ keeps: false });
        }
    }

    /** One at a time; what is asked meanwhile is done once after it. */
    async refresh(): Promise<void> {
        if (this.state.locked) return;
        if (this.running) {
            this.again = true;
            return;
        }
        this.running = true;
        do {
            this.again = false;
            const loading = new AbortController();
            this.loading = loading;
            await this.load(loading.signal).catch((error: unknown) => {
                // Who ended it has said why.
                if (!loading.signal.aborted) this.lost(error);
            });
        } while (this.again && !this.state.locked);
        this.running = false;
    }

    /** Of a moment; of now where that is not kept. */
    private async imbalanceAt(at: number | undefined, signal: AbortSignal): Promise<Answer<Imbalance>> {
        try {
            return await all<Imbalance>('imbalance', at === undefined ? {} : { at_ms: at }, signal);
        } catch (error) {
            if (at === undefined || !(error instanceof Refusal) || error.status !== 404) throw error;
            return all<Imbalance>('imbalance', {}, signal);
        }
    }

    private async load(signal: AbortSignal): Promise<void> {
        const { at } = this.state;
        const anew = this.cut;
        const imbalance = await this.imbalanceAt(at, signal);
        const shown = windowOf(imbalance);
        const isNow = at === undefined || !holds(shown, at);
        // Where that window is no longer kept, what is now is shown, whole.
        const query = isNow ? {} : { at_ms: at };
        const withLinks = WITH_LINKS.has(this.state.route.view);
        // A window's links stay as they are; events may come by the second.
        const have = !anew && shown !== undefined && this.state.linksOf === shown.window_end_ms;
        const wanted = anew || this.state.topology === undefined || Date.now() - this.topologyAt > TOPOLOGY_MS;
        const [topology, events, doctor, diagnoses, links, ranks] = await Promise.all([
            wanted ? changed<Topology>('topology', this.state.topology, signal) : Promise.resolve(this.state.topology as Topology),
            all<Event>('events', query, signal),
            all<Finding>('doctor', {}, signal),
            isNow ? all<Diagnosis>('diagnoses', {}, signal) : Promise.resolve({ records: [] }),
            withLinks && !have ? all<Link>('links', query, signal) : Promise.resolve({ records: this.state.links ?? [] }),
            wanted ? all<Rank>('ranks', {}, signal) : Promise.resolve({ records: this.state.ranks }),
        ]);
        if (this.state.locked) return;
        if (at !== this.state.at) {
            this.again = true;
            return;
        }
        if (anew) this.cut = false;
        if (wanted) this.topologyAt = Date.now();
        if (!withLinks && WITH_LINKS.has(this.state.route.view)) this.again = true;
        if (isNow && shown) this.memory.add(shown, imbalance.records);
        // The doctor says what is down now.
        const fabric = fabricOf(topology, links.records, events.records, isNow ? doctor.records : []);
        this.set({
            topology, imbalance: imbalance.records, events: events.records, findings: doctor.records, diagnoses: diagnoses.records,
            ...(withLinks ? { links: links.records, linksOf: shown?.window_end_ms } : {}),
            ranks: ranks.records, fabric, window: shown, asked: at, connection: 'live', trouble: '',
            ...(isNow ? { latest: shown } : {}),
        });
    }
}

export const store = new Store();
