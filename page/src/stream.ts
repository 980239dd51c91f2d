// SPDX-License-Identifier: Apache-2.0
// What the daemon sends by itself (text/event-stream): the kinds of its messages, as they come. An EventSource
// could not show a token.
import { target } from './api.ts';
import { authorization, heed, token } from './token.ts';

const AGAIN_MS = 3000;

export interface Ears {
    opened: () => void;
    said: (kind: string) => void;
    /** It ended; it is tried again unless it is closed. */
    ended: () => void;
}

export type StreamState = 'trying' | 'open' | 'closed';

/** What a store needs of a stream. */
export interface Listening {
    readonly state: StreamState;
    close(): void;
}

/** Text in pieces, the kinds of the messages that are complete by then out. What messages say is not kept. */
export class Messages {
    private rest = '';
    private kind = '';
    private hasData = false;

    feed(text: string): string[] {
        const found: string[] = [];
        const lines = (this.rest + text).split(/\r\n|\n|\r(?!$)/);
        this.rest = lines.pop() ?? '';
        for (const line of lines) {
            if (line === '') {
                if (this.hasData) found.push(this.kind || 'message');
                this.kind = '';
                this.hasData = false;
            } else if (line.startsWith('event:')) this.kind = line.slice(6).trim();
            else if (line.startsWith('data:')) this.hasData = true;
        }
        return found;
    }
}

export class Stream implements Listening {
    state: StreamState = 'trying';
    private readonly stop = new AbortController();

    constructor(private readonly ears: Ears) {
        void this.run();
    }

    close(): void {
        this.state = 'closed';
        this.stop.abort();
    }

    private async run(): Promise<void> {
        while (this.state !== 'closed') {
            await this.listen().catch(() => undefined);
            if (this.stop.signal.aborted) return;
            if (this.state === 'open') this.state = 'trying';
            this.ears.ended();
            if (this.state === 'trying') await new Promise((done) => setTimeout(done, AGAIN_MS));
        }
    }

    /** To its end; one that is refused is closed. */
    private async listen(): Promise<void> {
        const shown = token();
        const response = await fetch(target('stream'), { signal: this.stop.signal, cache: 'no-store', headers: { Accept: 'text/event-stream', ...authorization() } });
        if (!response.ok || !response.body || !/^text\/event-stream/.test(response.headers.get('content-type') ?? '')) {
            this.state = 'closed';
            heed(response, shown);
            await response.body?.cancel();
            return;
        }
        this.state = 'open';
        this.ears.opened();
        const messages = new Messages();
        const text = new TextDecoder();
        for (const reader = response.body.getReader();;) {
            const { done, value } = await reader.read();
            if (done) return;
            for (const kind of messages.feed(text.decode(value, { stream: true }))) this.ears.said(kind);
        }
    }
}
