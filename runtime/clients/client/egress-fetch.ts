/** `fetch` with a credential of the vault, which the program never sees (docs/guides/vault/egress-proxy.md). */
import { readAuthScheme } from '../../../actors/domain/vault/egress.js'
import {
  APPROVAL_FIELD,
  type CallApproval,
  NotApproved,
  readApproval,
  untilApproved,
} from './approval.js'
import { egressAddress } from './egress-address.js'
import { relayedFields, withoutParameter } from './egress-fields.js'
import { refusalOf } from './refusal.js'

export type EgressFetchOptions = {
  /** The service. It names the address of its egress proxy, which is asked for before the first call. */
  readonly baseUrl: string
  /** The address of the egress proxy (`SVC_EGRESS_URL`). With it the service is not asked. */
  readonly egressUrl?: string | undefined
  /** The id of the credential, which an active grant or lease gives to the agent or the delegation. */
  readonly credentialId: string
  /** An access token with `vault:read`, of an agent or a delegation. Asked for before each call. */
  readonly token: string | (() => Promise<string> | string)
  /**
   * The `auth_scheme` of the credential. With it, the header or parameter that the service injects is removed from calls:
   * many SDKs send a placeholder there, which the service would refuse.
   */
  readonly authScheme?: string | undefined
  /** False buffers the response of the upstream in the service. Default true. */
  readonly stream?: boolean | undefined
  /** Hears of a call that waits for a person, with the page where they answer. */
  readonly onApproval?: ((approval: CallApproval) => void) | undefined
  /** How long a call waits for a person. 0: not at all. Default: until the approval expires. */
  readonly approvalTimeoutMs?: number | undefined
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** A function with the signature of `fetch`. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * A `fetch` that sends calls through the egress proxy. SDKs of other services accept it as their `fetch` option. Redirects
 * are returned, not followed. A call that a person has to approve waits for them, and is then repeated. A body that is a
 * stream cannot be repeated.
 * @throws NotApproved (by the returned function) if the person denies, or does not answer in time.
 * @throws ServiceRefusal (by the returned function) if the service refuses a call. Errors of the upstream are responses.
 */
export function egressFetch(options: EgressFetchOptions): Fetch {
  const { baseUrl, egressUrl, credentialId, token, authScheme, stream = true } = options
  const fetch = options.fetch ?? globalThis.fetch
  const home = new URL(baseUrl)
  const read = async (url: URL) => {
    const answer = await fetch(url)
    if (!answer.ok) throw new Error(`${url.href} responded with ${answer.status}`)
    return answer.json()
  }
  /** Asked for once. Asked for again where the service did not answer. */
  let named =
    egressUrl === undefined ? undefined : Promise.resolve<URL | undefined>(new URL(egressUrl))
  const addressNow = async (path: string) => {
    named ??= egressAddress(home, read)
    const address = await named
    if (address === undefined) named = undefined
    return new URL(path, address ?? home)
  }
  const tokenNow = async () => `Bearer ${typeof token === 'string' ? token : await token()}`
  const scheme = readAuthScheme(authScheme ?? '')
  return async (input, init) => {
    const call = new Request(input, init)
    const url = scheme?.kind === 'query' ? withoutParameter(call.url, scheme.name) : call.url
    const streams = input instanceof Request || init?.body instanceof ReadableStream
    const body = call.body === null || streams ? call.body : await call.arrayBuffer()
    const sent: RequestInit & { duplex?: 'half'; headers: Record<string, string> } = {
      method: 'POST',
      headers: {
        ...relayedFields([...call.headers], scheme),
        'x-svc-credential-id': credentialId,
        ...(authScheme === undefined ? {} : { 'x-svc-auth-scheme': authScheme }),
        'x-svc-method': call.method,
        'x-svc-url': url,
        'x-svc-stream-response': String(stream),
      },
      body,
      redirect: 'manual',
      signal: call.signal,
      ...(streams && body !== null ? { duplex: 'half' } : {}),
    }
    const send = async (more: Record<string, string> = {}) =>
      fetch(await addressNow('/v1/proxy/body'), {
        ...sent,
        headers: { ...sent.headers, ...more, authorization: await tokenNow() },
      })
    let response = await send()
    if (response.headers.has(APPROVAL_FIELD)) {
      const asked = readApproval(await response.json())
      options.onApproval?.(asked)
      if (streams && body !== null) throw new NotApproved(asked)
      const state = async (path: string) => {
        const answer = await fetch(await addressNow(path), {
          headers: { authorization: await tokenNow() },
          signal: call.signal,
        })
        if (!answer.ok) throw await refusalOf(answer, { method: 'GET', path })
        return answer.json()
      }
      await untilApproved(asked, state, options.approvalTimeoutMs, call.signal)
      response = await send({ [APPROVAL_FIELD]: asked.id })
    }
    // The field says whether the upstream or the service wrote the response (RFC 9209).
    const status = response.headers.get('proxy-status')
    if (status !== null && !status.includes('error=')) return response
    throw await refusalOf(response, { method: 'POST', path: '/v1/proxy/body' })
  }
}
