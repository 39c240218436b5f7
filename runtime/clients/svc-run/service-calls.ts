/** Sends a program's request to the egress proxy of the service: POST /v1/proxy/body. */
import type { Readable } from 'node:stream'
import { type Dispatcher, request } from 'undici'
import { serviceAgent } from '../client/connections.js'
import { APPROVAL_FIELD } from '../client/approval.js'
import { egressAddress } from '../client/egress-address.js'
import { readAuthScheme } from '../../../actors/domain/vault/egress.js'
import { type HeaderPairs, relayedFields, withoutParameter } from '../client/egress-fields.js'
import type { TokenSource } from '../client/token-source.js'
import type { ChosenCredential } from './credential-choice.js'

export type OutboundCall = {
  readonly method: string
  /** Absolute, https. */
  readonly url: string
  readonly headers: HeaderPairs
  readonly body: Readable | Uint8Array | null
  /** Length of the body; null when unknown. */
  readonly bodyBytes: number | null
  readonly credential: ChosenCredential
  readonly stream: boolean
  readonly signal: AbortSignal
  /** The id of an approval of this call. */
  readonly approvalId?: string | undefined
}

export type ServiceAnswer = Dispatcher.ResponseData

export interface ServiceCalls {
  /** The state of an approval. @throws for another status than 200. */
  read(path: string): Promise<unknown>
  /** Resolves with any status. @throws when the service is unavailable or has no egress proxy. */
  send(call: OutboundCall): Promise<ServiceAnswer>
  close(): Promise<void>
}

export function serviceCalls(baseUrl: string, token: TokenSource): ServiceCalls {
  // Without timeouts, because the service has its own for a call.
  const agent = serviceAgent({ headersTimeout: 0, bodyTimeout: 0 })
  const home = new URL(baseUrl)
  let named: URL | undefined
  return {
    close: () => agent.destroy(),
    async read(path) {
      const authorization = `Bearer ${await token()}`
      return jsonOf(new URL(path, named ?? home), agent, { authorization })
    },
    async send({ method, url, headers, body, bodyBytes, credential, stream, signal, approvalId }) {
      const scheme = readAuthScheme(credential.authScheme)
      named ??= await egressAddress(home, (from) => jsonOf(from, agent))
      const answer = await request(new URL('/v1/proxy/body', named ?? home), {
        dispatcher: agent,
        method: 'POST',
        signal,
        headers: {
          ...relayedFields(headers, scheme),
          authorization: `Bearer ${await token()}`,
          'x-svc-credential-id': credential.id,
          'x-svc-auth-scheme': credential.authScheme,
          'x-svc-method': method,
          'x-svc-url': scheme?.kind === 'query' ? withoutParameter(url, scheme.name) : url,
          'x-svc-stream-response': String(stream),
          ...(approvalId === undefined ? {} : { [APPROVAL_FIELD]: approvalId }),
          ...(bodyBytes === null ? {} : { 'content-length': String(bodyBytes) }),
        },
        body,
      })
      const { 'proxy-status': status, [APPROVAL_FIELD]: asked } = answer.headers
      if (status === undefined && asked === undefined) {
        await answer.body.dump()
        throw new Error(
          `${baseUrl} responded with ${answer.statusCode} and is not an svc with egress proxy`,
        )
      }
      return answer
    },
  }
}

async function jsonOf(
  url: URL,
  dispatcher: Dispatcher,
  headers: Record<string, string> = {},
): Promise<unknown> {
  const { statusCode, body } = await request(url, { dispatcher, headers })
  const text = await body.text()
  if (statusCode !== 200) throw new Error(`${url.href} responded with ${statusCode}`)
  return JSON.parse(text)
}
