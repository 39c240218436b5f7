/**
 * Uses a credential for its caller: one request to an upstream with the secret put in, and its answer
 * back. interface.md, Egress proxy request; decisions.md sections 5 and 22.
 */
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { ByteStream } from '../../../runtime/kernel/stream.js'
import type { Caller } from '../../domain/audit.js'

export type EgressProtocol = {
  proxy: Ask<ProxyRequest, ProxyOutcome>
}

export const METHODS = ['GET', 'POST', 'PUT', 'PATCH', 'DELETE', 'HEAD', 'OPTIONS'] as const
export type ProxyMethod = (typeof METHODS)[number]

/** One end-to-end header field; names are lower case once sanitized. */
export type HeaderPair = readonly [name: string, value: string]

export type ProxyRequest = {
  readonly caller: Caller
  readonly credentialId: string
  readonly method: ProxyMethod
  /** Absolute https URL. */
  readonly url: string
  readonly headers: readonly HeaderPair[]
  /** Null when the request has none. */
  readonly body: ByteStream | Uint8Array | null
  /** Length of the body where it is known. */
  readonly bodyBytes: number | null
  /** The whole body is in memory until it was sent. */
  readonly isBodyHeld?: boolean | undefined
  /** What the caller believes the scheme to be; null when it says nothing. */
  readonly authScheme: string | null
  /** False: the whole answer is waited for, and nothing partial is given. */
  readonly stream: boolean
}

export type ProxyOutcome =
  /** The upstream answered. */
  | {
      readonly tag: 'relayed'
      readonly status: number
      /** What of the answer may be handed on. */
      readonly headers: readonly HeaderPair[]
      /** Bytes when all of it is there; of a stream, cancel it to give up. */
      readonly body: ByteStream | Uint8Array
      /**
       * Length of a stream whose bytes are all there. Such a stream does not end: cancel it once all
       * bytes were written, which gives back the bytes that the tenant holds.
       */
      readonly bodyBytes?: number | undefined
    }
  /** The request is malformed; nothing was sent. */
  | { readonly tag: 'invalid'; readonly pointer: string; readonly detail: string }
  /** The credential, its grant or the address does not allow it; nothing was sent. */
  | { readonly tag: 'denied'; readonly detail: string }
  /** There is none, it is another tenant's, or the caller has no grant. */
  | { readonly tag: 'unknown_credential' }
  /** A limit of the grant or the budget of the lease is used up. */
  | { readonly tag: 'budget_exceeded'; readonly detail: string }
  /** The agent or the tenant has its share of calls under way. */
  | { readonly tag: 'too_many_calls' }
  /** Something that calls share is in use: bytes for buffered answers, look-ups, or all calls. */
  | { readonly tag: 'busy' }
  /** The body is larger than this deployment relays. */
  | { readonly tag: 'body_too_large' }
  /** The client left, or its body did, before there was an answer. */
  | { readonly tag: 'client_closed' }
  /** No answer that can be relayed came; `error` is the type of RFC 9209 section 2.3. */
  | { readonly tag: 'upstream_failed'; readonly error: string; readonly detail?: string }
  | { readonly tag: 'upstream_timeout'; readonly error: string }

export type RelayLimits = {
  /** No byte in either direction for this long ends the relay. */
  readonly idleGapMs: number
  /** The whole relay, from dispatch to the last byte. */
  readonly hopTimeoutMs: number
}

export type UrlFault =
  | 'url_syntax'
  | 'url_scheme'
  | 'url_userinfo'
  | 'url_fragment'
  | 'url_port'
  | 'url_host'
export type HeaderFault =
  | 'header_name'
  | 'header_value'
  | 'header_repeated'
  | 'header_duplicates_injected'

/** How a relay ended (decisions.md section 5, `egress.stream.closed`); `revoked` is ours. */
export const RELAY_ENDS = [
  'completed',
  'budget_exhausted',
  'idle_timeout',
  'hop_timeout',
  'client_closed',
  'upstream_error',
  'revoked',
] as const
export type RelayEnd = (typeof RELAY_ENDS)[number]

export type RelayReport = {
  readonly outcome: RelayEnd
  /** Body bytes of both directions. */
  readonly bytes: number
  readonly requestBytes: number
  /** After decoding. */
  readonly responseBytes: number
  /** Response chunks handed on. */
  readonly chunks: number
  readonly durationMs: number
  /** Occurrences of the secret that were taken out of the answer. */
  readonly redactions: number
  /** What the answer says of its tokens. Advisory. */
  readonly tokens: { readonly input: number | null; readonly output: number | null }
  /** RFC 9209 section 2.3 error type when `outcome` is not `completed`, for Proxy-Status. */
  readonly proxyError: string | null
}

export const egress = address<EgressProtocol>('egress')
