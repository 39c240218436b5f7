/** The words of the egress engine: what is relayed, within which limits, and how it ended. */

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
