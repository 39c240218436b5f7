/** CIBA for tests: an application that starts and polls, and a user who answers. */
import { type TestBrowser } from '../pages/browser.js'
import { sql } from '../storage/sql.js'
import type { RelyingParty } from './relying-party.js'
import type { TestService } from '../service.js'

export const CIBA_GRANT = 'urn:openid:params:grant-type:ciba'
export const REQUESTS = '/api/v1/identity/ciba/requests'
export const INBOX = '/auth/requests'

/** A browser whose user has signed in with a second factor. */
export type Inbox = { readonly browser: TestBrowser; readonly running: TestService }

export type Told = {
  readonly status: number
  readonly body: Readonly<Record<string, unknown>>
  readonly headers: Headers
}

/** Sends a form. The client authenticates with its secret in the form, unless the fields say otherwise. */
export function ciba(
  { baseUrl }: Pick<TestService, 'baseUrl'>,
  { clientId, secret }: Pick<RelyingParty, 'clientId' | 'secret'>,
) {
  const client = { client_id: clientId, client_secret: secret }
  async function post(path: string, fields: Readonly<Record<string, string>>): Promise<Told> {
    const body = new URLSearchParams(fields)
    const answer = await fetch(`${baseUrl}${path}`, { method: 'POST', body })
    const told = (await answer.json()) as Record<string, unknown>
    return { status: answer.status, body: told, headers: answer.headers }
  }
  return {
    post,
    start: (fields: Readonly<Record<string, string>>) =>
      post('/bc-authorize', { ...client, scope: 'openid email', ...fields }),
    poll: (authReqId: unknown, fields: Readonly<Record<string, string>> = {}) =>
      post('/oauth/token', {
        ...client,
        grant_type: CIBA_GRANT,
        auth_req_id: String(authReqId),
        ...fields,
      }),
    /** Answers the latest request in the user's inbox. */
    async answer({ browser }: Pick<Inbox, 'browser'>, action: 'approve' | 'deny') {
      const page = await browser.get(INBOX)
      const done = await browser.submit(page, { action }, /\/auth\/requests\//)
      if (done.status !== 200) throw new Error(`${done.status}: ${done.html}`)
      return done
    },
  }
}

/** Expires a request. */
export const expire = (running: TestService, authReqId: unknown) =>
  sql(running)`
    update backchannel_requests set expires_at = now()
    where code_sha256 = sha256(${Buffer.from(String(authReqId))}::bytea)`

/** Increases the interval of a request. */
export const lengthen = (running: TestService, authReqId: unknown, secs: number) =>
  sql(running)`
    update backchannel_requests set interval_secs = ${secs}
    where code_sha256 = sha256(${Buffer.from(String(authReqId))}::bytea)`
