/** `fetch` with a credential of the vault, which the program never sees (docs/guides/vault/egress-proxy.md). */
import { readAuthScheme } from '../../../actors/domain/vault/egress.js'
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
  readonly fetch?: typeof globalThis.fetch | undefined
}

/** A function with the signature of `fetch`. */
export type Fetch = (input: string | URL | Request, init?: RequestInit) => Promise<Response>

/**
 * A `fetch` that sends calls through the egress proxy. SDKs of other services accept it as their `fetch` option. Redirects
 * are returned, not followed.
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
  const addressNow = async () => {
    named ??= egressAddress(home, read)
    const address = await named
    if (address === undefined) named = undefined
    return new URL('/v1/proxy/body', address ?? home)
  }
  const scheme = readAuthScheme(authScheme ?? '')
  return async (input, init) => {
    const call = new Request(input, init)
    const url = scheme?.kind === 'query' ? withoutParameter(call.url, scheme.name) : call.url
    const streams = input instanceof Request || init?.body instanceof ReadableStream
    const body = call.body === null || streams ? call.body : await call.arrayBuffer()
    const sent: RequestInit & { duplex?: 'half' } = {
      method: 'POST',
      headers: {
        ...relayedFields([...call.headers], scheme),
        authorization: `Bearer ${typeof token === 'string' ? token : await token()}`,
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
    const response = await fetch(await addressNow(), sent)
    // The field says whether the upstream or the service wrote the response (RFC 9209).
    const status = response.headers.get('proxy-status')
    if (status !== null && !status.includes('error=')) return response
    throw await refusalOf(response, { method: 'POST', path: '/v1/proxy/body' })
  }
}
