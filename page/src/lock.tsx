// SPDX-License-Identifier: Apache-2.0
// What stands in place of a view while the daemon wants a token, and the way out again.
import type { JSX } from 'preact';
import { useEffect, useRef, useState } from 'preact/hooks';
import { store, type Locked } from './store.ts';
import { forgetToken, isToken } from './token.ts';

/** Nothing of what was shown stays in the page's memory. */
export function logOut(): void {
    forgetToken();
    location.reload();
}

function Clear(): JSX.Element {
    return (
        <p role="alert">
            <span aria-hidden="true">✕</span> This page came over plain HTTP: the token would go over the network for everybody to read.
            Open it by https://, or through <code>ssh -L</code> at localhost.
        </p>
    );
}

export function Lock({ locked }: { locked: Locked }): JSX.Element {
    const [wrong, setWrong] = useState(locked === 'refused' ? 'The daemon refuses this token.' : '');
    const field = useRef<HTMLInputElement>(null);
    useEffect(() => field.current?.focus(), []);
    const show = (e: Event) => {
        e.preventDefault();
        const text = field.current?.value.trim() ?? '';
        if (isToken(text)) store.unlock(text);
        else {
            setWrong(text === '' ? 'Enter the token.' : 'This is no token: it has characters that none has.');
            field.current?.focus();
        }
    };
    return (
        <form class="lock" onSubmit={show} aria-labelledby="lock">
            <h1 id="lock">This daemon wants a token</h1>
            {globalThis.isSecureContext
                ? <>
                    <p>Its administrator has it: the line of the file that <code>http_token_file</code> names.</p>
                    <p class="filters">
                        <label for="token">Token</label>
                        <input id="token" ref={field} type="password" autocomplete="off" spellcheck={false} required aria-invalid={wrong !== ''} aria-describedby="wrong" />
                        <button type="submit">Log in</button>
                    </p>
                    <p id="wrong" class="wrong" role="alert">{wrong ? <><span aria-hidden="true">✕</span> {wrong}</> : null}</p>
                    <p class="note">It is kept for this tab alone, until the tab is closed or you log out, and never is part of an address.</p>
                </>
                : <Clear />}
        </form>
    );
}
