/**
 * One HTTP request as a snapshot and its answer, which can be given once. All that the pipeline
 * sees of a transport; the native objects stay behind it.
 */

import type { ByteStream } from '../runtime/kernel/stream.js'

/** Header names are lower case; the values of a name that came several times are joined. */
export interface HeaderFields {
  get(name: string): string | undefined
  has(name: string): boolean
  /** By their names, which are lower case. */
  all(): Record<string, string>
}

/** `ambiguous` cuts the connection without an answer; the others are answered, then it is cut. */
export type HeadFault =
  | 'ambiguous'
  | 'too_large'
  | 'malformed'
  | 'target_too_long'
  /** CONNECT: this server opens no tunnels. */
  | 'tunnel'
  /** The head did not arrive in time. */
  | 'late'

export interface RequestHead {
  /** As sent, upper case; one of those the guard lets through. */
  readonly method: string
  /** The path alone, undecoded, beginning with "/"; `*` for OPTIONS of the server itself. */
  readonly path: string
  /** Without the question mark; empty when there is none. */
  readonly query: string
  readonly headers: HeaderFields
  /** Host header or :authority, lower case, with its port where it names one. */
  readonly host: string
  /** Address of the peer of the socket: textual IPv4 or IPv6, no brackets, no mapped form. */
  readonly peerAddress: string
  readonly secure: boolean
  /** False when the request cannot carry a body or announced none. */
  readonly hasBody: boolean
  /** What the guard found wrong with the head: the request is answered with that and no more. */
  readonly fault: HeadFault | null
}

export type HeaderPair = readonly [name: string, value: string]

export interface Answer {
  readonly status: number
  /** The headers that never change, prepared once; see `headerBlock`. */
  readonly block: HeaderBlock
  /** Values hold no CR, LF or NUL; the pipeline sees to it. */
  readonly headers: readonly HeaderPair[]
  readonly body: string | Uint8Array | null
  /** The connection (HTTP/1.1) is not used again: what follows on it cannot be trusted. */
  readonly close?: boolean | undefined
}

/** An answer whose body comes over time. */
export interface StreamedAnswer extends Omit<Answer, 'body' | 'close'> {
  readonly body: ByteStream
  /**
   * Length of the body where it is known: the answer has a content-length, and the stream is cancelled
   * once all of it was written. It need not end.
   */
  readonly bodyBytes?: number | undefined
  /** The connection (HTTP/1.1) is not used again. */
  readonly close?: boolean | undefined
  /**
   * What may stand in front of the body without a meaning there. A transport that can send no head without
   * a body sends it where the body lets wait for itself.
   */
  readonly filler?: Uint8Array | undefined
}

/** How a streamed answer came out. */
export type StreamEnd =
  /** To its last byte. */
  | 'complete'
  /** The client left. */
  | 'left'
  /** The body broke off; the connection was broken too, so that the client cannot miss it. */
  | 'broken'
  /** It broke off, for the reason told, before anything was sent: another answer may be given. */
  | { readonly unsent: string }

/** Headers that many answers share, in the two forms that transports want. */
export interface HeaderBlock {
  readonly pairs: readonly HeaderPair[]
  /** First name, and everything after it up to the last value, as on the wire; null when empty. */
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
   * The whole body. Counts bytes while they arrive and stops reading at the limit; `withinMs` is
   * the time it may take, beside the limits on standing still that every transport holds.
   * @throws {BodyUnreadable}
   */
  readBody(maxBytes: number, withinMs: number): Promise<Uint8Array>
  /**
   * The body as it comes, in place of `readBody`: the reader's pace is the client's. Its reads fail
   * when more than `maxBytes` come, the client stands still, or it leaves; `bodyFailure` tells which.
   */
  streamBody(maxBytes: number): ByteStream
  /** Why the body broke off; null as long as it did not. */
  readonly bodyFailure: BodyFailure | null
  /**
   * Sends the head at once (where the transport can send one without a body) and the body as it
   * comes, at the pace of the client. It settles when all of it was handed to the socket, or will
   * never be. A body that nobody takes is cancelled; a client that reads nothing for `UNREAD_MS_MAX`
   * is cut.
   */
  relay(answer: StreamedAnswer): Promise<StreamEnd>
  /**
   * Sends the answer. A second call and a call after the client left do nothing. For HEAD the
   * headers go out with the length of the body that GET would have had, and no body. A client that does
   * not read its answer within `UNREAD_MS_MAX` is cut.
   */
  send(answer: Answer): void
  /** Runs once when the client leaves before the answer was sent. A relayed body is told by itself. */
  onAborted(listener: () => void): void
  /** True once an answer was sent or the client left. */
  readonly done: boolean
}

/** What a transport hands its exchanges to. Must not throw. */
export type HttpExchangeHandler = (exchange: HttpExchange) => void

export interface Listener {
  /** Base URL of the socket, for logs and tests. */
  readonly url: string
  readonly port: number
  /** Name of the transport in use: uws, http1 (the fallback) or http2. */
  readonly transport: 'uws' | 'http1' | 'http2'
  /** Stops accepting; resolves when the last open exchange was answered, or with false at the deadline. */
  drain(deadlineMs: number): Promise<boolean>
  /** Cuts every connection. */
  close(): Promise<void>
}
