/** A person at their browser, in the words of the audit chain. decisions.md 22, audit record. */
import type { BrowserSession } from '../../identity/sessions/protocol.js'

export function byPerson({ sub }: Pick<BrowserSession, 'sub'>, address: string) {
  return {
    subject: { sub, subject_type: 'human' },
    actors: [],
    clientId: null,
    grantId: null,
    ip: address,
  }
}
