/** Relays one request to an upstream and its answer back, both as streams (decisions.md section 5). */
import { address, type Ask } from '../../runtime/kernel/protocol.js'
import type { ByteStream } from '../../runtime/kernel/stream.js'

export type EgressProtocol = {
  relay: Ask<RelayRequest, RelayOutcome>
  /** Waits for the end of a relay and tells how it went. Answered once for each relay. */
  ended: Ask<RelayHandle, EndedOutcome>
}

/** One end-to-end header field; names are lower case once sanitized. */
export type HeaderPair = readonly [name: string, value: string]

export type RelayTarget = {
  method: string
  /** Absolute https URL without userinfo or fragment. */
  url: string
  headers: readonly HeaderPair[]
  /** The credential's header, put in after sanitizing; the caller may not send one of that name. */
  injected: HeaderPair | null
}

export type RelayLimits = {
  /** No byte in either direction for this long ends the relay. */
  idleGapMs: number
  /** The whole relay, from dispatch to the last byte. */
  hopTimeoutMs: number
  /** Request and response bytes together; null is unmetered. */
  byteBudget: number | null
}

export type RelayRequest = {
  target: RelayTarget
  limits: RelayLimits
  /** Null when the request has no body. */
  body: ByteStream | null
  /** Length of the body where it is known; otherwise it is sent chunked. */
  bodyBytes: number | null
}

export type RelayHandle = { relayId: string }

export type RelayOutcome =
  /** The upstream answered. `body` is its body; cancel it to give up. */
  | {
      tag: 'relaying'
      relayId: string
      status: number
      /** What of the answer may be handed on. */
      headers: readonly HeaderPair[]
      body: ByteStream
    }
  /** Nothing was sent: the request may not be made. */
  | { tag: 'refused'; fault: RequestFault }
  /** No answer came. */
  | { tag: 'failed'; report: RelayReport }

export type RequestFault = UrlFault | HeaderFault | 'method'
export type UrlFault =
  | 'url_syntax'
  | 'url_scheme'
  | 'url_userinfo'
  | 'url_fragment'
  | 'url_port'
  | 'url_host'
export type HeaderFault = 'header_name' | 'header_value' | 'header_duplicates_injected'

export type EndedOutcome = { tag: 'ended'; report: RelayReport } | { tag: 'unknown' }

/** How a relay ended (decisions.md section 5, `egress.stream.closed`). */
export type RelayEnd =
  | 'completed'
  | 'idle_timeout'
  | 'hop_timeout'
  | 'client_closed'
  | 'upstream_error'
  | 'budget_exhausted'

export type RelayReport = {
  outcome: RelayEnd
  /** Body bytes of both directions. */
  bytes: number
  requestBytes: number
  responseBytes: number
  /** Response chunks handed on. */
  chunks: number
  durationMs: number
  /** RFC 9209 section 2.3 error type when `outcome` is not `completed`, for Proxy-Status. */
  proxyError: string | null
}

export const egress = address<EgressProtocol>('egress')
