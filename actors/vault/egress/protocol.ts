/**
 * The egress proxy: relays a request to an upstream with the secret of a credential injected, and the
 * response back (docs/reference/vault.md).
 */
import type { ApprovalNeeded, TooManyApprovals } from '../../domain/vault/approvals.js'
import type { Denied } from '../../domain/vault/denied.js'
import { address, type Ask } from '../../../runtime/kernel/protocol.js'
import type { ByteStream } from '../../../runtime/kernel/stream.js'
import type { SharedText } from '../../../runtime/kernel/text/shared-text.js'
import type { BudgetRefusal } from '../../domain/vault/budgets.js'
import type { ProxyMethod } from '../../domain/vault/egress.js'

export type EgressProtocol = {
  proxyRequest: Ask<ProxyRequest, ProxyOutcome>
  /** The signature of a request that the agent sends itself. Nothing is sent. */
  signRequest: Ask<ProxyRequest, SignRequestOutcome>
  /** A credential, grant or lease of the tenant has changed: the next call reads it again. */
  forget: Ask<{ readonly tenantId: string }, { readonly tag: 'forgotten' }>
}

/** One end-to-end header field; names are lower case once sanitized. */
export type HeaderPair = readonly [name: string, value: string]

export type ProxyRequest = {
  /** `packPrincipal` of the verified token. */
  readonly principal: SharedText
  /** Address of the client behind trusted proxies. */
  readonly clientAddress: string
  readonly credentialId: string
  readonly method: ProxyMethod
  /** Absolute https URL. */
  readonly url: string
  readonly headers: readonly HeaderPair[]
  /** Null when the request has none. */
  readonly body: ByteStream | Uint8Array | null
  /** Length of the body; null when unknown. */
  readonly bodyBytes: number | null
  /** The whole body is in memory and counts against the tenant's share. */
  readonly isBodyHeld?: boolean | undefined
  /** The scheme that the caller expects; null when the request names none. */
  readonly authScheme: string | null
  /** The approval of this call, as the caller sent it; null when it named none. */
  readonly approvalId: string | null
  /** False to buffer the whole response: the caller gets it complete or an error. */
  readonly stream: boolean
}

export type ProxyOutcome =
  /** The upstream responded. */
  | {
      readonly tag: 'relayed'
      readonly status: number
      /** The response headers that are relayed. */
      readonly headers: readonly HeaderPair[]
      /** Bytes of a complete small body, else a stream; cancel the stream to abort the relay. */
      readonly body: ByteStream | Uint8Array
      /**
       * Length of a stream over a buffered body. Such a stream does not end: cancel it after all bytes
       * are written, which releases the tenant's memory share.
       */
      readonly bodyBytes?: number | undefined
    }
  /** The request is malformed; nothing was sent. */
  | { readonly tag: 'invalid'; readonly pointer: string; readonly detail: string }
  /** The credential, its grant or the address rules forbid it; nothing was sent. */
  | Denied
  /** No such credential in the tenant, or the caller has no grant. */
  | { readonly tag: 'unknown_credential' }
  /** The upstream refuses the refresh token of the credential for good; nothing was sent. */
  | {
      readonly tag: 'reauthorization_required'
      /** The code of the page where the person of a connected account connects it again. */
      readonly connectCode?: string | undefined
    }
  /** A limit or the budget of the grant, or the byte budget of the lease, is exhausted. */
  | {
      readonly tag: 'budget_exceeded'
      readonly detail: string
      /** The budget of the grant that has too little left. */
      readonly budget?: BudgetRefusal | undefined
      readonly retryAfterSecs?: number | undefined
    }
  /** The agent has the maximum number of concurrent calls. */
  | { readonly tag: 'too_many_calls' }
  /** The part of the tenant of a shared resource is exhausted: calls, memory for buffered bodies, name look-ups. */
  | { readonly tag: 'busy' }
  /** A person has to approve the call; nothing was sent. */
  | ApprovalNeeded
  /** Too many calls of the agent or the tenant wait for a person. */
  | TooManyApprovals
  /** The request body exceeds the limit of the deployment. */
  | { readonly tag: 'body_too_large' }
  /** The client disconnected, or its body broke off, before the response. */
  | { readonly tag: 'client_closed' }
  /** No usable response; `error` is an error type of RFC 9209 section 2.3. */
  | { readonly tag: 'upstream_failed'; readonly error: string; readonly detail?: string }
  | { readonly tag: 'upstream_timeout'; readonly error: string }

export type NotRelayed = Exclude<ProxyOutcome, { readonly tag: 'relayed' }>

export type SignRequestOutcome =
  | {
      readonly tag: 'signed_request'
      /** The fields to add, by their names. */
      readonly headers: Readonly<Record<string, string>>
    }
  | NotRelayed

export type RelayLimits = {
  /** A relay without a byte in either direction for this long ends. */
  readonly idleGapMs: number
  /** The whole relay, from dispatch to the last byte. */
  readonly hopTimeoutMs: number
  /** From the end of the request to the response head. Absent: the other limits apply. */
  readonly headTimeoutMs?: number | undefined
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

/** Outcomes of a relay, as in `egress.stream.closed`. */
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
  /** The status that the upstream sent. Null without a response. */
  readonly status: number | null
  /** Body bytes of both directions. */
  readonly bytes: number
  readonly requestBytes: number
  /** After decoding. */
  readonly responseBytes: number
  /** Relayed response chunks. */
  readonly chunks: number
  readonly durationMs: number
  /** Redacted occurrences of the secret. */
  readonly redactions: number
  /** False: the request never reached a connection to the upstream. */
  readonly isHeard: boolean
  /** Token counts that the response reports. */
  readonly tokens: { readonly input: number | null; readonly output: number | null }
  /** An estimate of all tokens, if the response does not report them; else 0. */
  readonly unreportedTokens: number
  /** RFC 9209 section 2.3 error type when `outcome` is not `completed`, for Proxy-Status. */
  readonly proxyError: string | null
}

export const egress = address<EgressProtocol>('egress', {
  idempotent: ['forget'],
  passive: ['forget'],
})
