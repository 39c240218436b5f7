/**
 * One HTTP request, copied from its transport, and its answer, which is sent once. The pipeline knows transports
 * only through this interface.
 */

import type { ByteStream } from '../runtime/kernel/stream.js'

/** Header names are lower case. The values of a repeated name are joined. */
export interface HeaderFields {
  get(name: string): string | undefined
  has(name: string): boolean
  /** All fields by lower-case name. */
  all(): Record<string, string>
}

/** `ambiguous` closes the connection without an answer. The others close it after an answer. */
export type HeadFault =
  | 'ambiguous'
  | 'too_large'
  | 'malformed'
  | 'target_too_long'
  /** A transfer coding other than chunked (RFC 9112 section 6.1). */
  | 'unknown_coding'
  /** Another version than HTTP/1.0 and HTTP/1.1 (RFC 9110 section 15.6.6). */
  | 'unknown_version'
  /** CONNECT, which is not supported. */
  | 'tunnel'
  /** The head did not arrive in time. */
  | 'late'

export interface RequestHead {
  /** Upper case, as sent, and admitted by the request smuggling guard. */
  readonly method: string
  /** Undecoded path that begins with "/", or `*` for OPTIONS of the server. */
  readonly path: string
  /** Without the question mark. Empty without a query. */
  readonly query: string
  readonly headers: HeaderFields
  /** Host header or `:authority`, lower case, with its port if it has one. */
  readonly host: string
  /** Address of the socket's peer: IPv4 or IPv6 text without brackets, IPv4 never mapped. */
  readonly peerAddress: string
  readonly secure: boolean
  /** False if the request has no body. */
  readonly hasBody: boolean
  /** The fault of the head, which is the answer to the request. */
  readonly fault: HeadFault | null
  /** A health check in HTTP/1.0, which needs no host. Default false. */
  readonly isHostless?: boolean
}

export type HeaderPair = readonly [name: string, value: string]

export interface Answer {
  readonly status: number
  /** Header fields that never change, see `headerBlock`. */
  readonly block: HeaderBlock
  /** The pipeline guarantees values without CR, LF and NUL. */
  readonly headers: readonly HeaderPair[]
  readonly body: string | Uint8Array | null
  /** Closes the connection (HTTP/1.1) after the answer, because later bytes cannot be trusted. */
  readonly close?: boolean | undefined
}

/** An answer with a streamed body. */
export interface StreamedAnswer extends Omit<Answer, 'body' | 'close'> {
  readonly body: ByteStream
  /**
   * Length of the body if it is known. The answer has a content-length then, and the stream is cancelled after
   * that many bytes: it need not end.
   */
  readonly bodyBytes?: number | undefined
  /** Closes the connection (HTTP/1.1) after the answer. */
  readonly close?: boolean | undefined
}

/** How a streamed answer ended. */
export type StreamEnd =
  /** The last byte was written. */
  | 'complete'
  /** The client left. */
  | 'left'
  /** The body failed. The connection was broken as well, so that the client notices. */
  | 'broken'
  /** The body failed for this reason before anything was sent: another answer may be sent. */
  | { readonly unsent: string }

/** Header fields that many answers share, in the two forms that transports need. */
export interface HeaderBlock {
  readonly pairs: readonly HeaderPair[]
  /** The first name, and all text up to the last value as on the wire. Null if there are no fields. */
  readonly wire: readonly [name: string, rest: string] | null
}

export function headerBlock(pairs: readonly HeaderPair[]): HeaderBlock {
  const [first, ...more] = pairs
  if (first === undefined) return { pairs, wire: null }
  const rest = more.map(([name, value]) => `\r\n${name}: ${value}`).join('')
  return { pairs, wire: [first[0], first[1] + rest] }
}

/** Why a body could not be read. */
export type BodyFailure = 'too_large' | 'timeout' | 'aborted' | 'malformed'

/** Thrown by `readBody`. */
export class BodyUnreadable extends Error {
  override readonly name = 'BodyUnreadable'
  readonly reason: BodyFailure

  constructor(reason: BodyFailure) {
    super(`request body: ${reason}`)
    this.reason = reason
  }
}

export interface HttpExchange extends RequestHead {
  /**
   * Call it before the work that makes an answer. It waits until the connection has room for an answer of about
   * `expectedBytes`: on HTTP/1.1 until the answers before it are written, on HTTP/2 until few enough bytes are unread.
   * After the wait the client may have left (`done`).
   */
  turn(expectedBytes: number): true | Promise<void>
  /**
   * Reads the whole body. It stops at `maxBytes`. `withinMs` bounds the total time, in addition to the limits for
   * stalled bodies.
   * @throws {BodyUnreadable}
   */
  readBody(maxBytes: number, withinMs: number): Promise<Uint8Array>
  /**
   * The body as a stream, in place of `readBody`, with back pressure. Reads fail if more than `maxBytes` arrive, or
   * if the client stalls or leaves. `bodyFailure` has the reason.
   */
  streamBody(maxBytes: number): ByteStream
  /** Why the body failed, or null. */
  readonly bodyFailure: BodyFailure | null
  /**
   * Sends the head immediately (if the transport can send a head without a body) and the body with back pressure. It
   * settles when the body was written to the socket, or cannot be. In the second case the body is cancelled. A
   * client that reads nothing for `UNREAD_MS_MAX` is disconnected.
   */
  relay(answer: StreamedAnswer): Promise<StreamEnd>
  /**
   * Sends the answer. A second call, and a call after the client has left, do nothing. HEAD gets the header fields
   * of GET, its content-length included, and no body. A client that does not read its answer within
   * `UNREAD_MS_MAX` is disconnected.
   */
  send(answer: Answer): void
  /** Calls the listener once if the client leaves before the answer was sent. A relayed body is cancelled instead. */
  onAborted(listener: () => void): void
  /** True after an answer was sent or the client left. */
  readonly done: boolean
}

/** Handles the exchanges of a transport. Must not throw. */
export type HttpExchangeHandler = (exchange: HttpExchange) => void

export interface Listener {
  /** Base URL of the listener, for logs and tests. */
  readonly url: string
  readonly port: number
  /** The transport in use. `tls` is HTTP/2 and HTTP/1.1 by ALPN. */
  readonly transport: 'uws' | 'uws_tls' | 'http1' | 'http1_tls' | 'http2' | 'tls'
  /** What parses HTTP. HTTP/2 is parsed by node:http2. */
  readonly parser: 'uwebsockets' | 'node'
  /** Seconds after which an idle connection is closed. */
  readonly keepAliveSecs: number
  /** Stops accepting connections. Resolves with true after the last answer, or with false at the deadline. */
  drain(deadlineMs: number): Promise<boolean>
  /** Closes all connections. */
  close(): Promise<void>
}
