/** Asks a person to connect an account at another service, and waits (docs/guides/vault/connected-accounts.md). */
import { setTimeout as sleep } from 'node:timers/promises'
import { type Clock, systemClock } from '../../kernel/clock.js'
import { nextWait } from './delegation.js'
import type { HttpClient, Request } from './http.js'
import {
  expectAnswer,
  member,
  type Members,
  numberMember,
  ServiceRefusal,
  textMember,
} from './refusal.js'

const CONNECTIONS = '/api/v1/vault/connections'

export type ConnectAccountOptions = {
  readonly http: HttpClient
  /** A delegated token with `vault:connect`. Requested at each poll, because it may expire before the decision. */
  readonly token: () => Promise<string>
  /** The name of the connector. */
  readonly connector: string
  readonly scopes?: readonly string[] | undefined
  /** Shown to the person. */
  readonly reason?: string | undefined
  readonly maxBytes?: number | undefined
  readonly expiresAt?: Date | undefined
  /** Gets the address that the person opens. Default: writes it to the standard error output. */
  readonly onLink?: ((connectUrl: string) => void) | undefined
  readonly signal?: AbortSignal | undefined
  readonly clock?: Clock | undefined
}

export type ConnectedAccount = {
  readonly connectionId: string
  /** `active`, `denied`, `expired` or `revoked`. */
  readonly status: string
  /** For the egress proxy. Null unless it is active. */
  readonly credentialId: string | null
  readonly accountLabel: string | null
}

/** @throws ServiceRefusal for a request that is refused; the signal's reason. */
export async function connectAccount(options: ConnectAccountOptions): Promise<ConnectedAccount> {
  const { http, token, connector, scopes, reason, signal, clock = systemClock } = options
  const asked = await expectAnswer(http, 201, {
    method: 'POST',
    path: CONNECTIONS,
    token: await token(),
    json: {
      connector,
      scopes,
      reason,
      max_bytes: options.maxBytes,
      expires_at: options.expiresAt?.toISOString(),
    },
  })
  const onLink = options.onLink ?? ((url: string) => process.stderr.write(`${url}\n`))
  onLink(textMember(asked, 'connect_url'))
  const connectionId = textMember(asked, 'id')
  const intervalSecs = numberMember(asked, 'interval')
  const deadlineMs = clock.monotonicMs() + (numberMember(asked, 'expires_in') + 60) * 1000
  const poll: Request = { method: 'GET', path: `${CONNECTIONS}/${connectionId}` }
  for (let waitSecs = intervalSecs; ; ) {
    await sleep(waitSecs * 1000, undefined, signal === undefined ? {} : { signal })
    const answer = await http.request({ ...poll, token: await token() })
    const status = member(answer.body, 'status')
    if (answer.status === 200 && status !== 'pending') {
      const body = answer.body as Members
      return {
        connectionId,
        status: textMember(body, 'status'),
        credentialId: textOrNull(body, 'credential_id'),
        accountLabel: textOrNull(body, 'account_label'),
      }
    }
    const next = answer.status === 200 ? intervalSecs : nextWait(answer, intervalSecs)
    if (next === null || clock.monotonicMs() >= deadlineMs) throw new ServiceRefusal(answer, poll)
    waitSecs = next
  }
}

function textOrNull(body: Members, name: string): string | null {
  const value = member(body, name)
  return typeof value === 'string' ? value : null
}
